//! Stored chunks with wrong bytes: an error that says where, and nothing else is harmed.

use crate::common::{Noise, directory, open, read, same, seed, write};
use crate::python::files;
use crate::raw::{self, Stored};
use hyperslab_core::{ArraySpec, Datatype, ErrorKind, Filter, OpenMode, Selection};
use hyperslab_testkit::watchdog;
use libtest_mimic::{Failed, Trial};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const SHAPE: [u64; 2] = [20, 24];
const CHUNK: [u64; 2] = [8, 10];
/// The damaged chunk, by coordinates in chunks and in elements.
const VICTIM: ([u64; 2], [u64; 2]) = ([1, 1], [8, 10]);

/// What is done to the file.
type Harm = fn(&Path, &Stored, &mut Noise) -> Result<(), Failed>;

pub fn trials() -> Vec<Trial> {
    let deflate = || vec![Filter::Deflate(4)];
    let kinds: [(&str, Vec<Filter>, Harm); 9] = [
        ("a changed byte, checksum", vec![Filter::Fletcher32], one_byte),
        ("a changed byte, deflate and checksum", vec![Filter::Deflate(4), Filter::Fletcher32], one_byte),
        ("garbage, deflate", deflate(), garbage),
        ("garbage, shuffle and deflate", vec![Filter::Shuffle, Filter::Deflate(4)], garbage),
        ("zeros, deflate", deflate(), zeros),
        ("said to be shorter, deflate", deflate(), shorter),
        ("said to be shorter, checksum", vec![Filter::Fletcher32], shorter),
        ("said to be empty, deflate", deflate(), empty),
        ("said to be of 2 GiB, deflate", deflate(), enormous),
    ];
    let trial = |name: String, filters: Vec<Filter>, harm: Harm| {
        Trial::test(format!("damage::{name}"), move || {
            watchdog::within(Duration::from_secs(120), move || {
                (0..20).try_for_each(|turn| damaged(&filters, harm, turn))
            })
        })
    };
    let mut out: Vec<Trial> =
        kinds.into_iter().map(|(name, filters, harm)| trial(name.into(), filters, harm)).collect();
    for filter in [Filter::Zstd(3), Filter::Lz4, Filter::Lzf, Filter::Bitshuffle, Filter::Blosc(5), Filter::Blosc2(5)] {
        for (name, harm) in [("shorter", shorter as Harm), ("of 2 GiB", enormous)] {
            out.push(trial(format!("said to be {name}, {filter:?}"), vec![filter], harm));
        }
    }
    out.push(Trial::test("damage::more than a chunk, deflate", bomb));
    out
}

fn bytes(path: &Path) -> Result<File, Failed> {
    Ok(File::options().read(true).write(true).open(path)?)
}

fn one_byte(path: &Path, stored: &Stored, noise: &mut Noise) -> Result<(), Failed> {
    let (file, mut byte) = (bytes(path)?, [0]);
    let at = stored.address + noise.below(stored.bytes);
    file.read_exact_at(&mut byte, at)?;
    byte[0] ^= 1 << noise.below(8);
    Ok(file.write_all_at(&byte, at)?)
}

fn garbage(path: &Path, stored: &Stored, noise: &mut Noise) -> Result<(), Failed> {
    // The head may be left as it is, so that the decoder begins.
    let kept = noise.below(stored.bytes / 2);
    let noise: Vec<u8> = (kept..stored.bytes).map(|_| noise.next() as u8).collect();
    Ok(bytes(path)?.write_all_at(&noise, stored.address + kept)?)
}

fn zeros(path: &Path, stored: &Stored, noise: &mut Noise) -> Result<(), Failed> {
    let kept = noise.below(stored.bytes / 2);
    Ok(bytes(path)?.write_all_at(&vec![0; (stored.bytes - kept) as usize], stored.address + kept)?)
}

/// Changes the size in the key of the B-tree: size, mask, and the first element.
fn said(path: &Path, stored: &Stored, size: u32) -> Result<(), Failed> {
    let mut key = (stored.bytes as u32).to_le_bytes().to_vec();
    key.extend(0u32.to_le_bytes());
    stored.origin.iter().for_each(|first| key.extend(first.to_le_bytes()));
    let whole = std::fs::read(path)?;
    let found: Vec<usize> = (0..whole.len() - key.len()).filter(|&at| whole[at..].starts_with(&key)).collect();
    let [at] = found.as_slice() else { return Err(format!("{} keys look like it", found.len()).into()) };
    Ok(bytes(path)?.write_all_at(&size.to_le_bytes(), *at as u64)?)
}

fn shorter(path: &Path, stored: &Stored, noise: &mut Noise) -> Result<(), Failed> {
    // By half at least: what some formats have at the end is not needed to decode them.
    said(path, stored, 1 + noise.below(stored.bytes / 2) as u32)
}

fn empty(path: &Path, stored: &Stored, _: &mut Noise) -> Result<(), Failed> {
    said(path, stored, 0)
}

fn enormous(path: &Path, stored: &Stored, _: &mut Noise) -> Result<(), Failed> {
    said(path, stored, i32::MAX as u32)
}

/// The most memory that this process ever had, in MiB.
fn peak() -> Result<u64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? >> 10)
}

fn elements(noise: &mut Noise, count: u64) -> Vec<u8> {
    // Deflate finds something to do, but not everything.
    (0..count).flat_map(|i| ((noise.next() as u32 & 0xFFF) | (i as u32) << 16).to_ne_bytes()).collect()
}

fn damaged(filters: &[Filter], harm: Harm, turn: u64) -> Result<(), Failed> {
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    let noise = &mut Noise::new(seed()?.wrapping_mul(1000) + turn);
    let all = Selection::all(&SHAPE)?;
    let data = elements(noise, all.len());
    let container = open("hdf5(plane=on)", &path, OpenMode::Create)?;
    let spec = ArraySpec {
        chunk: Some(CHUNK.as_slice().into()),
        filters: filters.to_vec(),
        ..ArraySpec::new(Datatype::I32, &SHAPE)
    };
    write(&*container.create("group/victim", &spec)?, &all, &data)?;
    container.close()?;
    let stored = raw::chunks(&path, "group/victim", 2)?;
    let victim = stored.iter().find(|one| one.origin == VICTIM.1).ok_or("the chunk is not there")?;
    harm(&path, victim, noise)?;
    let one = Selection::dense(&VICTIM.1, &CHUNK)?;
    let others = all.subtract(&one)?;
    for stack in ["hdf5(plane=on,threads=1)", "hdf5(plane=on,cache=0)"] {
        let container = open(stack, &path, OpenMode::Update)?;
        let array = container.array("group/victim")?;
        let some = Selection::dense(&[9, 11], &[2, 3])?;
        let row = elements(noise, 6);
        for (what, result) in [
            ("whole chunk", read(&*array, &one, 4).map(drop)),
            ("part of it", read(&*array, &some, 4).map(drop)),
            ("everything", read(&*array, &all, 4).map(drop)),
            ("writing a part", write(&*array, &some, &row)),
        ] {
            let Err(error) = result else { return Err(format!("{what}: no error ({turn})").into()) };
            let text = error.to_string();
            if error.kind() != ErrorKind::Corrupt || !text.contains("group/victim, chunk [1, 1]") {
                return Err(format!("{what}: {error:?}").into());
            }
        }
        same(&read(&*array, &others, 4)?, &picked(&data, &others)?, "the other chunks")?;
        container.close()?;
    }
    if raw::chunks(&path, "group/victim", 2)?.iter().any(|one| one.bytes == 0) {
        return Ok(()); // libhdf5 refuses to give back no bytes, and so to write the chunk anew
    }
    // Written as a whole it is sound again.
    let container = open("hdf5(plane=on)", &path, OpenMode::Update)?;
    write(&*container.array("group/victim")?, &one, &picked(&data, &one)?)?;
    container.close()?;
    for stack in ["hdf5", "hdf5(plane=on)"] {
        let container = open(stack, &path, OpenMode::Read)?;
        same(&read(&*container.array("group/victim")?, &all, 4)?, &data, "written anew")?;
        container.close()?;
    }
    match peak()? {
        ..1000 => Ok(()),
        mib => Err(format!("{mib} MiB of memory were used").into()),
    }
}

fn picked(data: &[u8], selection: &Selection) -> Result<Vec<u8>, Failed> {
    let runs = selection.runs(&SHAPE, 4)?;
    Ok(runs.flat_map(|run| data[run.offset as usize..run.end() as usize].to_vec()).collect())
}

/// A stream that decodes to far more than a chunk.
fn bomb() -> Result<(), Failed> {
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    let container = open("hdf5(plane=on)", &path, OpenMode::Create)?;
    let (large, small) = (4u64 << 20, 8u64 << 10);
    for (name, count) in [("large", large), ("small", small)] {
        let chunk = Some([count].as_slice().into());
        let spec = ArraySpec { chunk, filters: vec![Filter::Deflate(9)], ..ArraySpec::new(Datatype::I32, &[count]) };
        let array = container.create(name, &spec)?;
        let noise = &mut Noise::new(3);
        let mut random = || (0..count).flat_map(|_| (noise.next() as u32).to_ne_bytes()).collect();
        let data: Vec<u8> = if name == "large" { vec![0; count as usize * 4] } else { random() };
        write(&*array, &Selection::all(&[count])?, &data)?;
    }
    container.close()?;
    let (from, to) = (&raw::chunks(&path, "large", 1)?[0], &raw::chunks(&path, "small", 1)?[0]);
    if from.bytes > to.bytes {
        return Err(format!("{} bytes do not fit in {}", from.bytes, to.bytes).into());
    }
    let mut stream = vec![0; from.bytes as usize];
    let file = bytes(&path)?;
    file.read_exact_at(&mut stream, from.address)?;
    file.write_all_at(&stream, to.address)?;
    let container = open("hdf5(plane=on)", &path, OpenMode::Read)?;
    let result = read(&*container.array("small")?, &Selection::all(&[small])?, 4);
    container.close()?;
    match result {
        Err(error) if error.kind() == ErrorKind::Corrupt && error.to_string().contains("small, chunk [0]") => Ok(()),
        other => Err(format!("{:?}", other.map(drop)).into()),
    }
}
