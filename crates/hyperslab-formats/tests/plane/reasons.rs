//! Every reason to leave an array or a transfer to libhdf5: it is named, and the data are right.

use crate::common::{directory, numbers, open, read, same, write};
use crate::python;
use crate::raw::Paged;
use hyperslab_core::{
    Array, ArraySpec, Container, Datatype, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection, Slab,
    TransferMode,
};
use libtest_mimic::{Completion, Failed, Trial};
use std::path::Path;

const ON: &str = "hdf5(plane=on)";

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, run: fn(&Path) -> Result<(), Failed>| {
        Trial::test(format!("reasons::{name}"), move || {
            let (_files, folder) = (python::files(), directory()?);
            run(&folder.path().join("a.h5"))
        })
    };
    let mut out = vec![
        trial("compact", compact),
        trial("page buffer", page_buffer),
        trial("chunk cache of another handle", chunk_cache),
        trial("sieve of another handle", sieve),
        trial("another handle without the plane", without_plane),
        trial("no place yet", no_place),
        trial("places not known", places_not_known),
        trial("scattered memory", scattered),
    ];
    for (name, reason) in [
        ("external", "external files"),
        ("virtual", "virtual dataset"),
        ("edges", "edge are stored without filters"),
        ("scale-offset", "filter scale-offset (6) is not coded here"),
        ("grows", "another dimension than the first"),
        ("terminated", "not stored as they are in memory"),
    ] {
        out.push(Trial::ignorable_test(format!("reasons::{name} (h5py)"), move || match python::python() {
            None => Ok(Completion::ignored_with(python::MISSING)),
            Some(_) => theirs(name, reason),
        }));
    }
    out
}

fn named(container: &dyn Container, reason: &str) -> Result<(), Failed> {
    let diagnostics = container.diagnostics();
    match diagnostics.iter().any(|diagnostic| diagnostic.contains(reason)) {
        true => Ok(()),
        false => Err(format!("{reason:?} is not among the remarks {diagnostics:?}").into()),
    }
}

fn unnamed(container: &dyn Container) -> Result<(), Failed> {
    match container.diagnostics().as_slice() {
        [] => Ok(()),
        diagnostics => Err(format!("the plane should do all of it: {diagnostics:?}").into()),
    }
}

fn plain(shape: &[u64], chunk: Option<&[u64]>) -> ArraySpec {
    ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(Datatype::I32, shape) }
}

/// Writes and reads all, and some.
fn works(array: &dyn Array, shape: &[u64]) -> Result<(), Failed> {
    let all = Selection::all(shape)?;
    write(array, &all, &numbers(7, all.len()))?;
    same(&read(array, &all, 4)?, &numbers(7, all.len()), "all")?;
    let one = Selection::dense(&vec![1; shape.len()], &vec![1; shape.len()])?;
    write(array, &one, &numbers(5, 1))?;
    same(&read(array, &one, 4)?, &numbers(5, 1), "one")
}

fn again(path: &Path, shape: &[u64]) -> Result<(), Failed> {
    for stack in ["hdf5", ON] {
        let container = open(stack, path, OpenMode::Read)?;
        let found = read(&*container.array("array")?, &Selection::all(shape)?, 4)?;
        let at: u64 = (0..shape.len()).map(|d| shape[d + 1..].iter().product::<u64>()).sum();
        let mut wanted = numbers(7, shape.iter().product());
        wanted[at as usize * 4..][..4].copy_from_slice(&5u32.to_ne_bytes());
        same(&found, &wanted, stack)?;
        container.close()?;
    }
    Ok(())
}

fn compact(path: &Path) -> Result<(), Failed> {
    let container = open("hdf5(plane=on,layout=compact)", path, OpenMode::Create)?;
    works(&*container.create("array", &plain(&[9, 8], None))?, &[9, 8])?;
    named(&*container, "compact arrays are part of the metadata")?;
    container.close()?;
    again(path, &[9, 8])
}

fn page_buffer(path: &Path) -> Result<(), Failed> {
    let paged = Paged::create(path)?;
    let container = open(ON, path, OpenMode::Update)?;
    works(&*container.create("array", &plain(&[9, 8], Some(&[4, 3])))?, &[9, 8])?;
    named(&*container, "page buffer")?;
    container.close()?;
    drop(paged);
    again(path, &[9, 8])
}

/// A handle of `beside` opens the array first.
fn beside(path: &Path, stack: &str, chunk: Option<&[u64]>, reason: &str) -> Result<(), Failed> {
    let other = open(stack, path, OpenMode::Create)?;
    let theirs = other.create("array", &plain(&[9, 8], chunk))?;
    let container = open(ON, path, OpenMode::Update)?;
    let ours = container.array("array")?;
    for (turn, (to, from)) in (0..).zip([(&ours, &theirs), (&theirs, &ours), (&ours, &theirs)]) {
        let row = Selection::dense(&[turn, 1], &[1, 6])?;
        write(&**to, &row, &numbers(turn as u32 * 50, 6))?;
        same(&read(&**from, &row, 4)?, &numbers(turn as u32 * 50, 6), &format!("turn {turn}"))?;
    }
    works(&*ours, &[9, 8])?;
    named(&*container, reason)?;
    other.close()?;
    container.close()?;
    again(path, &[9, 8])
}

fn chunk_cache(path: &Path) -> Result<(), Failed> {
    beside(path, "hdf5", Some(&[4, 3]), "with a chunk cache of libhdf5")
}

fn sieve(path: &Path) -> Result<(), Failed> {
    beside(path, "hdf5", None, "with a sieve buffer of libhdf5")
}

fn without_plane(path: &Path) -> Result<(), Failed> {
    beside(path, "hdf5(cache=0,sieve=0)", Some(&[4, 3]), "without the data plane")
}

/// An array in one piece has no place until something is written.
fn no_place(path: &Path) -> Result<(), Failed> {
    let container = open(ON, path, OpenMode::Create)?;
    let array = container.create("array", &plain(&[9, 8], None))?;
    same(&read(&*array, &Selection::all(&[9, 8])?, 4)?, &[0; 288], "never written")?;
    named(&*container, "no place in the file yet")?;
    container.close()?;
    let container = open(ON, path, OpenMode::Update)?;
    works(&*container.array("array")?, &[9, 8])?;
    unnamed(&*container)?;
    // A fill value makes its allocation costly, so libhdf5 writes first.
    let filled = ArraySpec { fill_value: Some(numbers(9, 1)), ..plain(&[9, 8], None) };
    let array = container.create("filled", &filled)?;
    let row = Selection::dense(&[3, 0], &[1, 8])?;
    write(&*array, &row, &numbers(1, 8))?;
    named(&*container, "no place in the file yet")?;
    let wanted = [numbers(9, 1).repeat(24), numbers(1, 8), numbers(9, 1).repeat(40)].concat();
    same(&read(&*array, &Selection::all(&[9, 8])?, 4)?, &wanted, "filled")?;
    container.close()?;
    again(path, &[9, 8])
}

/// A chunk that was just made, of many: asking for its place would be a walk over all.
fn places_not_known(path: &Path) -> Result<(), Failed> {
    let container = open(ON, path, OpenMode::Create)?;
    let shape = [100, 100];
    let array = container.create("array", &plain(&shape, Some(&[1, 10])))?;
    let all = Selection::all(&shape)?;
    write(&*array, &Selection::dense(&[50, 50], &[1, 10])?, &numbers(100, 10))?;
    write(&*array, &Selection::dense(&[50, 52], &[1, 3])?, &numbers(500, 3))?;
    named(&*container, "places are not known yet")?;
    let row = read(&*array, &Selection::dense(&[50, 49], &[1, 7])?, 4)?;
    let wanted = [vec![0; 4], numbers(100, 2), numbers(500, 3), numbers(105, 1)].concat();
    same(&row, &wanted, "one row")?;
    same(&read(&*array, &all, 4)?[..200], &[0; 200], "never written")?;
    works(&*array, &shape)?;
    container.close()?;
    again(path, &shape)
}

/// Memory that is a union of slabs, and too large to be packed first.
fn scattered(path: &Path) -> Result<(), Failed> {
    let count = 5u64 << 20;
    let container = open(ON, path, OpenMode::Create)?;
    for (name, chunk) in [("contiguous", None), ("chunked", Some([1u64 << 20].as_slice()))] {
        let array = container.create(name, &plain(&[count], chunk))?;
        let all = Selection::all(&[count])?;
        // Of unequal length, or they would be one slab with a stride.
        let (first, second) = (count / 2 + 3, count / 2 - 3);
        let parts = [Slab::dense(&[1], &[first])?, Slab::dense(&[first + 7], &[second])?];
        let layout = MemoryLayout::strided(&[count + 9], Selection::union(1, parts.into_iter().flatten())?);
        let (ours, cut, end) = (numbers(3, count + 9), first as usize * 4, count as usize * 4);
        let view = MemoryView { data: &ours, layout: &layout };
        array.write(&all, view, TransferMode::Independent)?;
        let found = read(&*array, &all, 4)?;
        same(&found[..cut], &ours[4..cut + 4], "first part")?;
        same(&found[cut..], &ours[cut + 28..end + 28], "second part")?;
        let mut back = vec![0xA5; ours.len()];
        array.read(&all, MemoryViewMut { data: &mut back, layout: &layout }, TransferMode::Independent)?;
        let wanted = [&[0xA5; 4], &ours[4..cut + 4], &[0xA5; 24], &ours[cut + 28..end + 28], &[0xA5; 8]].concat();
        same(&back, &wanted, "read back")?;
        array.close()?;
    }
    named(&*container, "irregular selection of a larger buffer")?;
    Ok(container.close()?)
}

/// Arrays that h5py made.
fn theirs(name: &'static str, reason: &str) -> Result<Completion, Failed> {
    let folder = directory()?;
    let missing = python::script("reasons.py", &[folder.path()])?;
    if let Some(line) = missing.lines().find(|line| line.starts_with(name)) {
        return Ok(Completion::ignored_with(line.replace('\t', ": ")));
    }
    let _files = python::files();
    let container = open(ON, &folder.path().join("theirs.h5"), OpenMode::Update)?;
    let array = container.array(name)?;
    if name == "terminated" {
        let text: Vec<u8> = (0..60).flat_map(|n: u32| format!("{n:\0<4}").into_bytes()).collect();
        same(&read(&*array, &Selection::all(&[60])?, 4)?, &text, name)?;
    } else {
        let shape = [10, 6];
        same(&read(&*array, &Selection::all(&shape)?, 4)?, &numbers(0, 60), name)?;
        let box_ = Selection::dense(&[1, 2], &[5, 3])?;
        write(&*array, &box_, &numbers(0, 15))?;
        same(&read(&*array, &box_, 4)?, &numbers(0, 15), name)?;
    }
    named(&*container, reason)?;
    container.close()?;
    Ok(Completion::Completed)
}
