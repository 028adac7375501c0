//! Limits, removal of segments, checkpoints, failures of the storage.

use super::*;
use hyperslab_core::ErrorKind;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[test]
fn files_never_exceed_the_limit_and_everything_fits_again_when_it_is_done() {
    // In small segments nothing is written ahead.
    for limit in [256 << 10, 4 << 20] {
        stay_within(limit);
    }
}

fn stay_within(limit: u64) {
    let stored = Stored::default();
    let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
    let journal = journal(&files, limit);
    let mut pending = VecDeque::new();
    let mut waited = 0;
    for n in 0..2000u64 {
        let bytes = vec![n as u8; [10, 5000, 20_000, 60_000][n as usize % 4]];
        loop {
            assert!(stored.bytes() <= limit, "{}", stored.bytes());
            assert!(journal.used() >= stored.bytes());
            match append(&journal, ["a", "b", "c"][n as usize % 3], n, &bytes) {
                Append::Logged(logged) => break pending.push_back(logged),
                Append::Full { needed } => {
                    assert!(!journal.wait_for_room(needed, Duration::ZERO), "all writes are pending");
                    // The last of those that are there first.
                    waited += 1;
                    let half = pending.len() / 2;
                    let late = pending.drain(half..).collect::<Vec<_>>();
                    late.iter().rev().for_each(RecordHandle::done);
                    pending.drain(..).for_each(|logged| logged.done());
                    assert!(journal.wait_for_room(needed, Duration::ZERO));
                }
                Append::TooLarge => panic!(),
            }
        }
    }
    assert!(waited > 5, "{waited}");
    let whole = vec![0; limit as usize - limit as usize / 100];
    assert!(matches!(append(&journal, "a", 0, &whole), Append::Full { .. }));
    pending.drain(..).for_each(|logged| logged.done());
    let last = logged(append(&journal, "a", 0, &whole));
    assert!(matches!(append(&journal, "a", 0, &vec![0; limit as usize]), Append::TooLarge));
    last.done();
    last.done();
    assert!(journal.close_and_remove().unwrap());
    assert_eq!(stored.names(), [""; 0]);
    assert!(journal.append("a", &Datatype::F32, &Selection::empty(1), &[]).is_err());
}

#[test]
fn room_that_is_reserved_stays_within_the_limit_and_is_used() {
    const LIMIT: u64 = 64 << 20;
    let modes = [SyncMode::None, SyncMode::OnFlush, SyncMode::Every(Duration::from_secs(3600))];
    // To the data log, also past the end of a segment, and both next to records and to the data log.
    for (sync, sizes) in
        modes.iter().flat_map(|sync| [&[60_000][..], &[3 << 20], &[16 << 10, 17 << 10]].map(|s| (*sync, s)))
    {
        let folder = tempfile::tempdir().unwrap();
        let files = directory(folder.path());
        let journal = Journal::create(files, header(), Limits { sync, ..Limits::new(LIMIT) }).unwrap();
        let (mut pending, mut bytes) = (Vec::new(), 0);
        for n in 0.. {
            let size = sizes[n as usize % sizes.len()];
            match append(&journal, "a", n, &vec![n as u8; size]) {
                Append::Logged(logged) => pending.push(logged),
                Append::Full { .. } => break,
                Append::TooLarge => panic!(),
            }
            bytes += size as u64;
            assert!(journal.used() <= LIMIT);
        }
        journal.write_out().unwrap();
        let blocks =
            |entry: std::fs::DirEntry| std::os::unix::fs::MetadataExt::blocks(&entry.metadata().unwrap()) * 512;
        let stored: u64 = std::fs::read_dir(folder.path()).unwrap().map(|entry| blocks(entry.unwrap())).sum();
        // Two files of a segment end with a block each.
        assert!(stored <= LIMIT + (64 << 10), "{sync:?}, {sizes:?}: {stored}");
        assert!(bytes >= LIMIT / 100 * 86, "{sync:?}, {sizes:?}: {bytes}");
        pending.iter().for_each(RecordHandle::done);
        assert!(journal.close_and_remove().unwrap());
    }
}

#[test]
fn only_a_prefix_of_the_segments_is_removed() {
    let stored = Stored::default();
    let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
    let journal = journal(&files, 1 << 20);
    let all: Vec<RecordHandle> = (0..60u64).map(|n| logged(append(&journal, "a", n, &vec![n as u8; 10_000]))).collect();
    let segments = |stored: &Stored| stored.names().iter().filter(|name| name.ends_with("meta")).count();
    let before = segments(&stored);
    assert!(before > 3);
    all[1..].iter().for_each(RecordHandle::done);
    assert_eq!(segments(&stored), before, "the first write is not done");
    let expected: Vec<u64> =
        left(&(Arc::new(stored.copy()) as Arc<dyn JournalStorage>)).0.iter().map(|seen| seen.1).collect();
    assert_eq!(expected, (0..60).collect::<Vec<_>>());
    all[0].done();
    assert!(segments(&stored) <= 1);
    drop(all);
    drop(journal);
    assert_eq!(stored.names(), [""; 0], "dropping removes what is done");
}

#[test]
fn a_checkpoint_hides_what_is_done() {
    let stored = Stored::default();
    let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
    let journal = journal(&files, 1 << 20);
    let all: Vec<RecordHandle> = (0..10u64).map(|n| logged(append(&journal, "a", n, &[n as u8]))).collect();
    [0usize, 1, 2, 5].iter().for_each(|n| all[*n].done());
    let places = |stored: &Stored| -> Vec<u64> {
        left(&(Arc::new(stored.copy()) as Arc<dyn JournalStorage>)).0.iter().map(|seen| seen.1).collect()
    };
    assert_eq!(places(&stored), (0..10).collect::<Vec<_>>());
    journal.checkpoint().unwrap();
    assert_eq!(places(&stored), (3..10).collect::<Vec<_>>());
    all.iter().for_each(RecordHandle::done);
    journal.checkpoint().unwrap();
    assert_eq!(stored.bytes(), 0, "nothing is left but the head");
    let kept = logged(append(&journal, "b", 77, &[1]));
    assert_eq!(places(&stored), [77]);
    journal.sync().unwrap();
    drop(journal);
    assert_eq!(places(&stored), [77]);
    kept.done();
}

/// At every call in turn: an error reaches the caller, and what was acknowledged before is found, and no more.
#[test]
fn failing_storage_loses_nothing_that_was_acknowledged() {
    for (error, kind) in [(28, ErrorKind::NoSpace), (5, ErrorKind::Io)] {
        for nth in 0..40 {
            let stored = Stored::default();
            *stored.fate.error.lock().unwrap() = error;
            let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
            let journal = journal(&files, 128 << 10);
            stored.fate.left.store(nth, Ordering::SeqCst);
            let mut acknowledged = Vec::new();
            let mut failures = 0;
            for n in 0..20u64 {
                let bytes = vec![n as u8; if n % 3 == 0 { 17_000 } else { 300 }];
                let selection = Selection::dense(&[n], &[bytes.len() as u64]).unwrap();
                match journal.append("a", &Datatype::Opaque(1), &selection, &[&bytes]) {
                    Ok(Append::Logged(_)) => acknowledged.push(n),
                    Ok(_) => {}
                    Err(error) => {
                        assert_eq!(error.kind(), kind, "{error}");
                        failures += 1;
                    }
                }
            }
            let reached = stored.fate.left.load(Ordering::SeqCst) < 0;
            assert_eq!(failures > 0, reached, "call {nth}");
            assert!(kind == ErrorKind::Io || failures <= 1, "goes on after there was no space");
            drop(journal);
            if acknowledged.is_empty() {
                assert_eq!(stored.names(), [""; 0]);
                continue;
            }
            let (seen, damage) = left(&files);
            assert_eq!(seen.iter().map(|seen| seen.1).collect::<Vec<_>>(), acknowledged, "call {nth}");
            // The storage that failed may have kept half a record at the end.
            assert!(damage.is_none_or(|damage| damage.unfinished));
        }
    }
}

#[test]
fn a_failed_sync_or_removal_is_final() {
    for sync in [true, false] {
        let stored = Stored::default();
        let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
        let journal = journal(&files, 1 << 20);
        let handle = logged(append(&journal, "a", 0, &[1]));
        stored.fate.left.store(0, Ordering::SeqCst);
        match sync {
            true => assert!(journal.sync().is_err()),
            false => {
                handle.done();
                assert!(journal.checkpoint().is_err());
            }
        }
        assert!(journal.append("a", &Datatype::Opaque(1), &Selection::dense(&[0], &[1]).unwrap(), &[&[1]]).is_err());
        assert!(stored.names().iter().any(|name| name.ends_with(".journal")));
        handle.done();
        assert!(journal.close_and_remove().unwrap(), "what is done can go");
        assert!(journal.close_and_remove().unwrap());
        assert_eq!(stored.names(), [""; 0]);
    }
}

/// Once closing has said yes, nothing is ever replayed, wherever the removal fails.
#[test]
fn a_closed_journal_is_not_replayed() {
    for nth in 0.. {
        let stored = Stored::default();
        let files: Arc<dyn JournalStorage> = Arc::new(stored.clone());
        let journal = journal(&files, 1 << 20);
        let all: Vec<RecordHandle> = (0..8u64).map(|n| logged(append(&journal, "a", n, &[1; 20_000]))).collect();
        all[1..].iter().for_each(RecordHandle::done);
        stored.fate.left.store(nth, Ordering::SeqCst);
        all[0].done();
        let closed = journal.close_and_remove();
        let written = || find(&stored).unwrap().iter().any(|found| found.stage == Stage::Written);
        match closed {
            Ok(gone) => assert!(gone && stored.names().is_empty(), "call {nth}"),
            Err(_) => {
                stored.fate.left.store(i64::MAX, Ordering::SeqCst);
                // Before the head got its other name, the writes are still a suffix of all.
                let seen: Vec<u64> =
                    if written() { left(&files).0.iter().map(|seen| seen.1).collect() } else { vec![] };
                assert!(seen.iter().copied().eq(8 - seen.len() as u64..8), "call {nth}: {seen:?}");
                drop(journal);
            }
        }
        if stored.fate.left.load(Ordering::SeqCst) > 0 && stored.fate.left.load(Ordering::SeqCst) < 1000 {
            assert_ne!(nth, 0);
            break;
        }
    }
}

#[test]
fn threads_append_and_finish_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let files = directory(folder.path());
    let limit = 400 << 10;
    let journal = journal(&files, limit);
    std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel::<RecordHandle>();
        for thread in 0..3u64 {
            let (journal, send) = (&journal, send.clone());
            scope.spawn(move || {
                for n in 0..400u64 {
                    let bytes = vec![(thread * 50 + n) as u8; 1000 + (n as usize % 7) * 3000];
                    let logged = loop {
                        match append(journal, "a", n, &bytes) {
                            Append::Logged(logged) => break logged,
                            Append::Full { needed } => drop(journal.wait_for_room(needed, Duration::from_secs(5))),
                            Append::TooLarge => panic!(),
                        }
                    };
                    let mut back = vec![0; bytes.len()];
                    logged.read_into(&mut back).unwrap();
                    assert_eq!(back, bytes);
                    send.send(logged).unwrap();
                    if n % 50 == 0 {
                        journal.sync().unwrap();
                        journal.checkpoint().unwrap();
                    }
                }
            });
        }
        drop(send);
        scope.spawn(move || receive.into_iter().for_each(|logged| logged.done()));
    });
    assert_eq!(journal.pending(), 0);
    assert!(journal.used() <= limit && journal.close_and_remove().unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
