//! Several handles of one array in a process, and many one after the other.

use crate::common::{Noise, directory, numbers, open, read, same, seed, write};
use crate::python::files;
use hyperslab_core::{ArraySpec, Datatype, Durability, Filter, OpenMode, Selection};
use libtest_mimic::{Failed, Trial};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("handles::closed ones leave nothing behind", nothing_left),
        Trial::test("handles::a reader first", reader_first),
        Trial::test("handles::more than a million chunks", million_chunks),
        Trial::test("handles::one without the plane closes last", closes_last),
    ]
}

fn spec() -> ArraySpec {
    let chunk = Some([4, 6].as_slice().into());
    ArraySpec { chunk, filters: vec![Filter::Deflate(1)], ..ArraySpec::new(Datatype::I32, &[10, 15]) }
}

fn descriptors(folder: &std::path::Path) -> Result<usize, Failed> {
    let mut count = 0;
    for entry in std::fs::read_dir("/proc/self/fd")? {
        count += usize::from(std::fs::read_link(entry?.path()).is_ok_and(|path| path.starts_with(folder)));
    }
    Ok(count)
}

/// Neither descriptors nor memory.
fn nothing_left() -> Result<(), Failed> {
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    open("hdf5(plane=on)", &path, OpenMode::Create)?.create("array", &spec())?.close()?;
    let all = Selection::all(&[10, 15])?;
    for turn in 0..300u32 {
        let container = open("hdf5(plane=on)", &path, OpenMode::Update)?;
        let array = container.array("array")?;
        write(&*array, &all, &numbers(turn, 150))?;
        same(&read(&*array, &all, 4)?, &numbers(turn, 150), "just written")?;
        match turn % 3 {
            0 => array.close()?,
            1 => drop(array),
            _ => {}
        }
        if turn % 2 == 0 {
            container.close()?;
        }
    }
    match descriptors(folder.path())? {
        0 => Ok(()),
        left => Err(format!("{left} descriptors are left open").into()),
    }
}

/// A handle that may only read opens the array first; one that may write shares its plane.
fn reader_first() -> Result<(), Failed> {
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    let container = open("hdf5(plane=on)", &path, OpenMode::Create)?;
    container.create("coded", &spec())?;
    container.create("plain", &ArraySpec { filters: vec![], ..spec() })?;
    container.create("contiguous", &ArraySpec { filters: vec![], chunk: None, ..spec() })?;
    container.close()?;
    let all = Selection::all(&[10, 15])?;
    for (turn, name) in (0..).zip(["coded", "plain", "contiguous"].repeat(2)) {
        let writing = open("hdf5(plane=on)", &path, OpenMode::Update)?;
        let reading = open("hdf5(plane=on)", &path, OpenMode::Read)?;
        let reader = reading.array(name)?;
        read(&*reader, &all, 4)?;
        let writer = writing.array(name)?;
        write(&*writer, &all, &numbers(turn, 150))?;
        write(&*writer, &Selection::dense(&[3, 0], &[1, 15])?, &numbers(turn + 45, 15))?;
        same(&read(&*reader, &all, 4)?, &numbers(turn, 150), name)?;
        reading.close()?;
        writing.flush(Durability::Visible)?;
        same(&read(&*writer, &all, 4)?, &numbers(turn, 150), name)?;
        writing.close()?;
    }
    Ok(())
}

/// What waits in a plane is not lost with the handle that wrote it.
fn closes_last() -> Result<(), Failed> {
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    open("hdf5(plane=on)", &path, OpenMode::Create)?.create("array", &spec())?.close()?;
    let (row, all) = (Selection::dense(&[5, 2], &[1, 9])?, Selection::all(&[10, 15])?);
    for beside in ["hdf5", "hdf5(cache=0,sieve=0)"] {
        for on_first in [true, false] {
            let stacks = if on_first { ["hdf5(plane=on)", beside] } else { [beside, "hdf5(plane=on)"] };
            let containers = [open(stacks[0], &path, OpenMode::Update)?, open(stacks[1], &path, OpenMode::Update)?];
            let arrays = [containers[0].array("array")?, containers[1].array("array")?];
            for (turn, writer) in [(100, 0), (200, 1), (300, 0)] {
                write(&*arrays[writer], &row, &numbers(turn, 9))?;
                same(&read(&*arrays[1 - writer], &row, 4)?, &numbers(turn, 9), &format!("{stacks:?}, {turn}"))?;
            }
            arrays[0].close()?;
            containers[0].close()?;
            same(&read(&*arrays[1], &row, 4)?, &numbers(300, 9), &format!("{stacks:?}, first closed"))?;
            containers[1].close()?;
            let container = open("hdf5", &path, OpenMode::Update)?;
            let array = container.array("array")?;
            same(&read(&*array, &row, 4)?, &numbers(300, 9), &format!("{stacks:?}, opened again"))?;
            write(&*array, &all, &numbers(0, 150))?;
            container.close()?;
        }
    }
    Ok(())
}

/// So many that only those which exist are kept in mind.
fn million_chunks() -> Result<(), Failed> {
    let (_files, folder) = (files(), directory()?);
    let path = folder.path().join("a.h5");
    let noise = &mut Noise::new(seed()?);
    let shape = [3000, 3000];
    for (turn, filters) in [vec![], vec![Filter::Deflate(1)]].into_iter().enumerate() {
        let name = format!("array {turn}");
        let chunk = Some([2, 3].as_slice().into());
        let spec = ArraySpec { chunk, filters, ..ArraySpec::new(Datatype::I32, &shape) };
        open("hdf5", &path, if turn == 0 { OpenMode::Create } else { OpenMode::Update })?
            .create(&name, &spec)?
            .close()?;
        let mut written: Vec<(Selection, Vec<u8>)> = Vec::new();
        for stack in ["hdf5(plane=on)", "hdf5", "hdf5(plane=on,cache=0)"] {
            let container = open(stack, &path, OpenMode::Update)?;
            let array = container.array(&name)?;
            for _ in 0..40 {
                let some = Selection::dense(&[noise.below(2990), noise.below(2990)], &[1 + noise.below(9), 7])?;
                if written.iter().any(|(other, _)| other.overlaps(&some)) {
                    continue;
                }
                let data = numbers(noise.next() as u32 >> 1, some.len());
                write(&*array, &some, &data)?;
                written.push((some, data));
                for (some, data) in &written {
                    same(&read(&*array, some, 4)?, data, &format!("{name}, {stack}, {some:?}"))?;
                }
            }
            container.close()?;
        }
        let container = open("hdf5", &path, OpenMode::Read)?;
        let array = container.array(&name)?;
        for (some, data) in &written {
            same(&read(&*array, some, 4)?, data, &format!("{name} at the end, {some:?}"))?;
        }
        let rows = Selection::dense(&[0, 0], &[100, 3000])?;
        let by_library = read(&*array, &rows, 4)?;
        container.close()?;
        let container = open("hdf5(plane=on)", &path, OpenMode::Read)?;
        same(&read(&*container.array(&name)?, &rows, 4)?, &by_library, "mostly never written")?;
        container.close()?;
    }
    Ok(())
}
