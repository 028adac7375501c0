//! The data log of the next segment, which a sync makes.

use super::modes::{bytes_of, check, stored};
use super::*;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

const LIMIT: u64 = 64 << 20;
const SEGMENT: u64 = LIMIT / 8;
const WRITE: usize = 1 << 20;

/// It syncs when it is told to.
fn journal(files: &Arc<dyn JournalStorage>) -> Arc<Journal> {
    let sync = SyncMode::Every(Duration::from_secs(3600));
    Journal::create(files.clone(), header(), Limits { sync, ..Limits::new(LIMIT) }).unwrap()
}

fn write(journal: &Journal, n: u64) -> RecordHandle {
    logged(append(journal, "a", n, &bytes_of(n, WRITE)))
}

/// The data logs: numbers of their segments, and the room that they take.
fn data(folder: &Path) -> Vec<(u64, u64)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            let number = name.strip_suffix(".data")?.rsplit_once('.')?.1.parse().unwrap();
            Some((number, entry.metadata().unwrap().blocks() * 512))
        })
        .collect();
    found.sort_unstable();
    found
}

fn numbers(folder: &Path) -> Vec<u64> {
    data(folder).iter().map(|(number, _)| *number).collect()
}

fn room(folder: &Path) -> u64 {
    data(folder).iter().map(|(_, room)| room).sum()
}

#[test]
fn it_is_there_before_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    let journal = journal(&files);
    let mut all = vec![write(&journal, 0)];
    assert_eq!(data(folder.path()).len(), 1);
    journal.sync().unwrap();
    assert_eq!(numbers(folder.path()), [1, 2]);
    assert!(room(folder.path()) >= 2 * SEGMENT);
    journal.sync().unwrap();
    assert_eq!(data(folder.path()).len(), 2, "one is enough");
    assert!(journal.used() >= 2 * SEGMENT);
    // The second segment takes it.
    all.extend((1..12).map(|n| write(&journal, n)));
    assert_eq!(numbers(folder.path()), [1, 2]);
    assert!(room(folder.path()) >= 2 * SEGMENT);
    journal.sync().unwrap();
    assert_eq!(numbers(folder.path()), [1, 2, 3]);
    // If the process ended now, it would be nothing.
    let (seen, damage) = left(&files);
    assert_eq!((seen.len(), damage), (12, None));
    all.iter().zip(0..).for_each(|(logged, n)| check(logged, n));
    assert!(!journal.close_and_remove().unwrap());
    assert_eq!(numbers(folder.path()), [1, 2]);
    assert_eq!(left(&files).0.len(), 12);
}

#[test]
fn one_that_a_dead_process_left_goes_with_the_others() {
    let (folder, dead) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = directory(folder.path());
    let journal = journal(&files);
    let kept = write(&journal, 0);
    journal.sync().unwrap();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dead.path().join(entry.file_name())).unwrap();
    }
    let copy = directory(dead.path());
    let found = find(&*copy).unwrap();
    assert_eq!((found.len(), data(dead.path()).len()), (1, 2));
    found[0].remove(&*copy).unwrap();
    assert_eq!(std::fs::read_dir(dead.path()).unwrap().count(), 0);
    // And with a journal that is done.
    kept.done();
    assert!(journal.close_and_remove().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn it_goes_where_everything_is_done_or_its_room_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    let journal = journal(&files);
    for n in 0..3 {
        let kept = write(&journal, n);
        journal.sync().unwrap();
        assert_eq!(data(folder.path()).len(), 2);
        kept.done();
        journal.checkpoint().unwrap();
        assert_eq!((journal.used(), data(folder.path())), (0, vec![]), "no room is kept");
    }
    let mut all = Vec::new();
    while let Append::Logged(logged) = append(&journal, "a", 0, &bytes_of(0, WRITE)) {
        all.push(logged);
        journal.sync().unwrap();
        assert!(journal.used() <= LIMIT && room(folder.path()) <= LIMIT + (64 << 10));
    }
    assert!(all.len() as u64 >= LIMIT / WRITE as u64 - 2, "{}", all.len());
    all.iter().for_each(|logged| check(logged, 0));
    all.iter().for_each(RecordHandle::done);
    journal.checkpoint().unwrap();
    // One that is larger than what is left besides it.
    let kept = write(&journal, 0);
    journal.sync().unwrap();
    assert_eq!(data(folder.path()).len(), 2);
    let large = logged(append(&journal, "a", 1, &bytes_of(1, LIMIT as usize - SEGMENT as usize - (1 << 20))));
    assert!(journal.used() <= LIMIT && room(folder.path()) <= LIMIT + (64 << 10));
    check(&large, 1);
    drop((kept, large));
}

#[test]
fn storage_that_reserves_nothing_gets_none() {
    let (stored, files) = stored();
    let journal = journal(&files);
    let all: Vec<RecordHandle> = (0..20).map(|n| write(&journal, n)).collect();
    let files = stored.names();
    journal.sync().unwrap();
    assert_eq!(stored.names(), files);
    assert!(journal.used() <= stored.bytes() + (4 << 10), "{} {}", journal.used(), stored.bytes());
    all.iter().zip(0..).for_each(|(logged, n)| check(logged, n));
}
