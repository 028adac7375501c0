//! `.npy` files: numpy reads what we write, and the other way round.

use super::python;
use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Format, MemoryView, MemoryViewMut, OpenMode, Selection, Stack, TransferMode, dims::element_count,
};
use libtest_mimic::{Completion, Failed, Trial};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const TYPES: [&str; 12] = ["|i1", "|u1", "<i2", ">i2", "<i4", "<u8", "<f2", "<f4", ">f4", "<f8", ">f8", "|b1"];
const SHAPES: [&[u64]; 5] = [&[], &[0], &[7], &[3, 5], &[2, 3, 4]];

const THEIRS: &str = r#"
import sys, pathlib, numpy
folder, what = pathlib.Path(sys.argv[1]), sys.argv[2]
if what == "write":
    folder.mkdir()
for line in sys.stdin:
    name, dtype, *shape = line.split()
    shape = tuple(map(int, shape))
    size = int(numpy.prod(shape, dtype=int))
    wanted = ((7 * numpy.arange(size) + 3) % 2).astype(dtype).reshape(shape)
    if what == "write":
        numpy.save(folder / name, wanted)
    else:
        for mode in (None, "r"):
            found = numpy.load(folder / (name + ".npy"), mmap_mode=mode if size else None)
            assert found.dtype == numpy.dtype(dtype) and found.shape == shape, (name, found.dtype, found.shape)
            assert (found == wanted).all(), name
"#;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, check: fn() -> Result<(), Failed>| {
        Trial::ignorable_test(name, move || match python() {
            None => Ok(Completion::ignored_with("HYPERSLAB_PYTHON is not set: cargo xtask test sets it")),
            Some(_) => check().map(|()| Completion::Completed),
        })
    };
    vec![trial("npy::we write, numpy reads", we_write), trial("npy::numpy writes, we read", they_write)]
}

fn format() -> Result<Arc<dyn Format>, Failed> {
    Ok(hyperslab_formats::build(&"npy".parse::<Stack>()?.format)?)
}

/// Names and specifications, and their elements as bytes.
fn cases() -> Result<Vec<(String, ArraySpec, Vec<u8>)>, Failed> {
    let mut out = Vec::new();
    for (number, dtype) in TYPES.iter().enumerate() {
        for shape in SHAPES {
            let spec = ArraySpec::new(dtype.parse()?, shape);
            let one = one(dtype);
            let count = element_count(shape)?;
            let bytes = (0..count).flat_map(|i| if (7 * i + 3) % 2 == 1 { one.clone() } else { vec![0; one.len()] });
            out.push((
                format!("x{number}_{}", shape.len() * 10 + shape.len().min(count as usize)),
                spec,
                bytes.collect(),
            ));
        }
    }
    Ok(out)
}

/// The number 1.
fn one(dtype: &str) -> Vec<u8> {
    let (kind, size) = (&dtype[1..2], dtype[2..].parse::<usize>().unwrap_or(1));
    let mut bytes = match (kind, size) {
        ("f", 2) => 0x3c00_u16.to_le_bytes().to_vec(),
        ("f", 4) => 1_f32.to_le_bytes().to_vec(),
        ("f", _) => 1_f64.to_le_bytes().to_vec(),
        _ => 1_u64.to_le_bytes()[..size].to_vec(),
    };
    if dtype.starts_with('>') {
        bytes.reverse();
    }
    bytes
}

fn theirs(what: &str, folder: &Path) -> Result<(), Failed> {
    let python = python().ok_or("HYPERSLAB_PYTHON is not set")?;
    let lines: String = cases()?
        .iter()
        .map(|(name, spec, _)| {
            let shape: Vec<String> = spec.shape.iter().map(u64::to_string).collect();
            format!("{name} {} {}\n", spec.dtype, shape.join(" "))
        })
        .collect();
    let list = folder.with_extension("list");
    std::fs::write(&list, lines)?;
    let input = std::fs::File::open(&list)?;
    let output = Command::new(python).args(["-c", THEIRS]).arg(folder).arg(what).stdin(input).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn we_write() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("ours");
    let container = format()?.open(&path, OpenMode::Create, &Solo::shared())?;
    for (name, spec, bytes) in cases()? {
        let array = container.create(&name, &spec)?;
        array.write(&Selection::all(&spec.shape)?, MemoryView::packed(&bytes), TransferMode::Independent)?;
    }
    container.close()?;
    theirs("check", &path)
}

fn they_write() -> Result<(), Failed> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("theirs");
    theirs("write", &path)?;
    let container = format()?.open(&path, OpenMode::Read, &Solo::shared())?;
    let cases = cases()?;
    if container.arrays()?.len() != cases.len() {
        return Err(format!("the arrays are {:?}", container.arrays()?).into());
    }
    for (name, spec, bytes) in cases {
        let array = container.array(&name)?;
        let mut found = vec![0xee; bytes.len()];
        array.read(&Selection::all(&spec.shape)?, MemoryViewMut::packed(&mut found), TransferMode::Independent)?;
        if array.spec()? != spec || found != bytes {
            return Err(format!("{name}: {:?} {found:?}, expected {spec:?} {bytes:?}", array.spec()?).into());
        }
    }
    Ok(container.close()?)
}
