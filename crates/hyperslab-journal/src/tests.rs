//! Tests of the journal as a whole.
#![allow(clippy::unwrap_used)]

mod ahead;
mod damage;
mod device;
mod modes;
mod power;
mod private;
mod room;
mod starved;
mod stored;

use super::*;
use hyperslab_core::{Datatype, Selection};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stored::Stored;

/// A write as tests see it: array, first element, bytes.
type Seen = (String, u64, Vec<u8>);

fn header() -> Header {
    Header::new(Id::random().unwrap(), 0, 1, "posix", PathBuf::from("/somewhere/x")).unwrap()
}

fn journal(files: &Arc<dyn JournalStorage>, bytes: u64) -> Arc<Journal> {
    Journal::create(files.clone(), header(), Limits::new(bytes)).unwrap()
}

fn directory(path: &Path) -> Arc<dyn JournalStorage> {
    Arc::new(Directory::open(path).unwrap())
}

/// Appends bytes at a place.
fn append(journal: &Journal, array: &str, start: u64, bytes: &[u8]) -> Append {
    let selection = Selection::dense(&[start], &[bytes.len() as u64]).unwrap();
    journal.append(array, &Datatype::Opaque(1), &selection, &[bytes]).unwrap()
}

fn logged(append: Append) -> RecordHandle {
    match append {
        Append::Logged(logged) => logged,
        other => panic!("{other:?}"),
    }
}

/// What recovery would find: the writes that count, and the damage.
fn left(files: &Arc<dyn JournalStorage>) -> (Vec<Seen>, Option<Damage>) {
    let found = find(&**files).unwrap();
    let found = found.iter().find(|found| found.stage == Stage::Written).expect("a journal");
    let (head, _) = found.open(&**files).unwrap();
    let header = found.header(&**files, &*head).unwrap();
    let mut first = found.reader(files, &header);
    while first.next_write(u64::MAX).unwrap().is_some() {}
    let done_before = first.done_before();
    let mut reader = found.reader(files, &header);
    let mut out = Vec::new();
    while let Some(write) = reader.next_write(done_before).unwrap() {
        if write.sequence >= done_before {
            let mut bytes = vec![0; write.len() as usize];
            write.read_into(&mut bytes).unwrap();
            out.push((write.array.name.clone(), write.selection.bounds().map_or(0, |(low, _)| low[0]), bytes));
        }
    }
    (out, reader.damage().cloned())
}

#[test]
fn what_was_appended_is_found_in_order_and_can_be_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    let journal = journal(&files, 64 << 20);
    let sizes = [1usize, 100, 0, 16 << 10, (16 << 10) + 1, 3 << 20, 7];
    let mut expected = Vec::new();
    for (n, size) in sizes.iter().enumerate() {
        let bytes: Vec<u8> = (0..*size).map(|i| (i * 7 + n) as u8).collect();
        let name = format!("array{}", n % 3);
        let handle = logged(append(&journal, &name, n as u64, &bytes));
        let mut back = vec![0; *size];
        handle.read_into(&mut back).unwrap();
        assert_eq!(back, bytes);
        assert!(handle.read_into(&mut vec![0; size + 1]).is_err());
        let start = if *size == 0 { 0 } else { n as u64 };
        expected.push((name, start, bytes));
    }
    assert_eq!(journal.pending(), sizes.len() as u64);
    assert!(!journal.close_and_remove().unwrap());
    drop(journal);
    assert_eq!(left(&files), (expected, None));
}

#[test]
fn parts_make_one_payload() {
    let files: Arc<dyn JournalStorage> = Arc::new(Stored::default());
    let journal = journal(&files, 64 << 20);
    for size in [10usize, 2 << 20] {
        let bytes: Vec<u8> = (0..size).map(|i| (i / 3) as u8).collect();
        let parts: Vec<&[u8]> = bytes.chunks(size / 7).collect();
        let all = Selection::dense(&[0], &[size as u64]).unwrap();
        let handle = logged(journal.append("x", &Datatype::Opaque(1), &all, &parts).unwrap());
        let mut back = vec![0; size];
        handle.read_into(&mut back).unwrap();
        assert_eq!(back, bytes);
    }
    let wrong = journal.append("x", &Datatype::F64, &Selection::dense(&[0], &[1]).unwrap(), &[&[0; 7]]);
    assert!(wrong.is_err());
}

#[test]
fn an_array_with_another_type_is_another_array() {
    let files: Arc<dyn JournalStorage> = Arc::new(Stored::default());
    let journal = journal(&files, 1 << 20);
    let one = Selection::dense(&[0], &[1]).unwrap();
    for dtype in [Datatype::F32, Datatype::I32, Datatype::F32] {
        logged(journal.append("a", &dtype, &one, &[&[1, 2, 3, 4]]).unwrap());
        logged(journal.append("b", &Datatype::F64, &one, &[&[0; 8]]).unwrap());
    }
    drop(journal);
    let names: Vec<String> = left(&files).0.into_iter().map(|seen| seen.0).collect();
    assert_eq!(names, ["a", "b", "a", "b", "a", "b"]);
}
