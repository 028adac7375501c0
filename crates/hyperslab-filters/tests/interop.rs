//! Chunks that h5py and hdf5plugin store are read here, and those stored here are read by them, with every filter.
//! `HYPERSLAB_PYTHON` names a Python that has both; without it the test is skipped.

#![allow(clippy::unwrap_used)]

use hyperslab_core::ErrorKind;
use hyperslab_filters::{BitshuffleCodec, BloscCodec, BloscShuffle, Filter, FilterSpec, Pipeline, Workspace};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

const SCRIPT: &str = include_str!("support/interop.py");

/// A chunk that Python wrote.
struct Case {
    number: String,
    what: String,
    filters: Vec<FilterSpec>,
    mask: u32,
    plain: Vec<u8>,
    stored: Vec<u8>,
}

#[test]
#[allow(clippy::print_stdout)]
fn chunks_go_both_ways() {
    let Some(python) = std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()) else {
        println!("skipped: HYPERSLAB_PYTHON is not set: cargo xtask test sets it");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let run = |mode: &str, file: &Path| {
        let output = Command::new(&python).args(["-c", SCRIPT, mode]).arg(file).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    };
    let theirs = folder.path().join("theirs");
    let (fine, text) = run("write", &theirs);
    if text.contains("No module named 'hdf5plugin'") {
        println!("skipped: the Python of HYPERSLAB_PYTHON has no hdf5plugin: cargo xtask setup --tests installs it");
        return;
    }
    assert!(fine, "{text}");
    let cases = parse(&fs::read(&theirs).unwrap());
    assert!(cases.len() > 1000, "{}", cases.len());

    let mut workspace = Workspace::default();
    let (mut ours, mut wrong) = (Vec::new(), Vec::new());
    let mut sizes = BTreeMap::<u32, (usize, usize)>::new();
    for case in &cases {
        let before = ours.len();
        if let Err(error) = check(case, &mut workspace, &mut ours) {
            wrong.push(format!("{} {}: {error}", case.number, case.what));
        }
        let (our_size, their_size) = sizes.entry(case.filters.iter().map(|f| f.id).max().unwrap_or(0)).or_default();
        *our_size += ours.len() - before;
        *their_size += case.stored.len();
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));

    for (filter, (our_size, their_size)) in sizes {
        assert!(our_size * 100 < their_size * 102, "filter {filter}: {our_size} bytes, theirs are {their_size}");
    }

    let file = folder.path().join("ours");
    fs::write(&file, ours).unwrap();
    let (fine, text) = run("read", &file);
    assert!(fine, "{text}");
    assert!(text.contains(&format!("read {}", cases.len())), "{text}");
}

/// Decodes what Python stored, all at once and filter by filter, and encodes it anew.
fn check(case: &Case, workspace: &mut Workspace, ours: &mut Vec<u8>) -> hyperslab_core::Result<()> {
    let wrong = |what: &str| Err(hyperslab_core::Error::invalid("compare", what));
    let pipeline = Pipeline::new(&case.filters, case.plain.len())?;
    if case.stored.len() > pipeline.stored_limit() {
        return wrong("the stored form is larger than the limit");
    }
    let mut back = vec![0x55; case.plain.len()];
    pipeline.decode(&case.stored, case.mask, &mut back, workspace)?;
    if back != case.plain {
        return wrong("what is decoded differs");
    }
    let mut bytes = case.stored.clone();
    for (bit, filter) in case.filters.iter().enumerate().rev() {
        if case.mask & (1 << bit) == 0 {
            let mut before = Vec::new();
            let (expected, limit) = (case.plain.len(), pipeline.stored_limit());
            Filter::new(filter)?.decode(&bytes, expected, limit, &mut before, workspace)?;
            bytes = before;
        }
    }
    if bytes != case.plain {
        return wrong("what is decoded filter by filter differs");
    }
    let encoded = pipeline.encode(&case.plain, workspace)?;
    ours.extend(format!("{}\t{}\t{}\n", case.number, encoded.mask, encoded.bytes.len()).bytes());
    ours.extend_from_slice(encoded.bytes);
    let (stored, mask) = (encoded.bytes.to_vec(), encoded.mask);
    pipeline.decode(&stored, mask, &mut back, workspace)?;
    if back != case.plain {
        return wrong("what is encoded and decoded differs");
    }
    damage(case, &pipeline, workspace)
}

/// What others store, damaged, is an error or harmless.
fn damage(case: &Case, pipeline: &Pipeline, workspace: &mut Workspace) -> hyperslab_core::Result<()> {
    let mut state = case.stored.len() as u64 + 1;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let mut back = vec![0; case.plain.len()];
    for round in 0..(2_000_000 / (case.plain.len() + 1000)).min(40) {
        let mut damaged = case.stored.clone();
        let near = damaged.len().min(if round % 2 == 0 { 200 } else { usize::MAX });
        for _ in 0..1 + random(3) {
            damaged[random(near)] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
        }
        if round % 7 == 0 {
            damaged.truncate(random(case.stored.len()));
        }
        match pipeline.decode(&damaged, case.mask, &mut back, workspace) {
            Err(error) if ![ErrorKind::Corrupt, ErrorKind::Unsupported].contains(&error.kind()) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn parse(mut bytes: &[u8]) -> Vec<Case> {
    let mut cases = Vec::new();
    while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let words: Vec<&str> = line.split('\t').collect();
        let sizes: Vec<usize> = words[4..].iter().map(|size| size.parse().unwrap()).collect();
        let (plain, behind) = bytes[end + 1..].split_at(sizes[0]);
        let (stored, behind) = behind.split_at(sizes[1]);
        bytes = behind;
        cases.push(Case {
            number: words[0].to_owned(),
            what: words[1].to_owned(),
            filters: words[2].split(';').filter(|filter| !filter.is_empty()).map(parse_filter).collect(),
            mask: words[3].parse().unwrap(),
            plain: plain.to_vec(),
            stored: stored.to_vec(),
        });
    }
    cases
}

fn parse_filter(text: &str) -> FilterSpec {
    let words: Vec<&str> = text.splitn(3, ' ').collect();
    let parameters = words[2].split(',').filter(|word| !word.is_empty()).map(|word| word.parse().unwrap()).collect();
    FilterSpec { id: words[0].parse().unwrap(), optional: words[1] == "1", parameters }
}

/// What hdf5plugin 7.1 and h5py 3.16 store, taken from there.
#[test]
fn new_arrays_state_what_others_do() {
    let spec = |id, parameters: &[u32]| FilterSpec { id, optional: true, parameters: parameters.to_vec() };
    let (lz4, zstd) = (BloscCodec::Lz4, BloscCodec::Zstd);
    assert_eq!(FilterSpec::deflate(4), spec(1, &[4]));
    assert_eq!(FilterSpec::shuffle(4), spec(2, &[4]));
    assert_eq!(FilterSpec::fletcher32(), FilterSpec { id: 3, optional: false, parameters: vec![] });
    assert_eq!(FilterSpec::lzf(16384), spec(32000, &[4, 261, 16384]));
    assert_eq!(FilterSpec::lz4(0), spec(32004, &[0]));
    assert_eq!(FilterSpec::zstd(3), spec(32015, &[3]));
    assert_eq!(FilterSpec::bitshuffle(4, BitshuffleCodec::None), spec(32008, &[0, 4, 4, 0, 0]));
    assert_eq!(FilterSpec::bitshuffle(4, BitshuffleCodec::Lz4), spec(32008, &[0, 4, 4, 0, 2]));
    assert_eq!(FilterSpec::bitshuffle(4, BitshuffleCodec::Zstd(3)), spec(32008, &[0, 4, 4, 0, 3, 3]));
    assert_eq!(FilterSpec::blosc(4, 16384, 5, BloscShuffle::Bytes, lz4), spec(32001, &[2, 2, 4, 16384, 5, 1, 1]));
    assert_eq!(FilterSpec::blosc2(4, &[4096], 5, BloscShuffle::Bits, zstd), spec(32026, &[1, 0, 4, 16384, 5, 2, 5]));
    assert_eq!(
        FilterSpec::blosc2(4, &[64, 64], 5, BloscShuffle::Bytes, BloscCodec::Zlib),
        spec(32026, &[1, 0, 4, 16384, 5, 1, 4, 2, 64, 64])
    );
}
