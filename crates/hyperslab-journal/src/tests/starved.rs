//! Storage that does not take what was gathered: nothing that was acknowledged is lost, and where only space is missing the
//! journal goes on.

use super::modes::{bytes_of, check, places, stored, with_mode};
use super::*;
use hyperslab_core::ErrorKind;
use std::sync::atomic::Ordering;
use std::time::Duration;

const NO_SPACE: i32 = 28;
const FAULT: i32 = 5;

fn try_append(journal: &Journal, n: u64, len: usize) -> Result<Append, hyperslab_core::Error> {
    let selection = Selection::dense(&[n], &[len as u64]).unwrap();
    journal.append("a", &Datatype::Opaque(1), &selection, &[&bytes_of(n, len)])
}

/// A journal with ten writes, the first four with the kernel, the others not.
fn gathered() -> (Stored, Arc<Journal>, Vec<RecordHandle>) {
    let (stored, files) = stored();
    let journal = with_mode(&files, SyncMode::None);
    let mut all = Vec::new();
    for n in 0..10u64 {
        if n == 4 {
            journal.write_out().unwrap();
        }
        all.push(logged(try_append(&journal, n, [50, 30_000, 70_000][n as usize % 3]).unwrap()));
    }
    assert_eq!(
        all.iter().map(RecordHandle::is_written_out).collect::<Vec<_>>(),
        [[true; 4].as_slice(), &[false; 6]].concat()
    );
    (stored, journal, all)
}

/// Brings everything to the container as a layer should, looking after each step at what a crash would leave.
fn drain(stored: &Stored, journal: &Journal, all: &[RecordHandle]) {
    for logged in all.iter().filter(|logged| logged.is_written_out()) {
        check(logged, logged.sequence() - 2);
        logged.done();
    }
    journal.write_out().unwrap();
    // Nothing that is older could be replayed over what comes now.
    let written = find(stored).unwrap().iter().any(|found| found.has_segments());
    assert!(!written || all.iter().all(RecordHandle::is_written_out));
    for logged in all {
        check(logged, logged.sequence() - 2);
        logged.done();
    }
}

#[test]
fn an_error_is_final_and_everything_can_still_be_read_and_brought_to_the_container() {
    let (stored, journal, all) = gathered();
    stored.fate.left.store(0, Ordering::SeqCst);
    assert_eq!(journal.write_out().unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(try_append(&journal, 10, 10).unwrap_err().kind(), ErrorKind::Io, "for good");
    assert_eq!(journal.sync().unwrap_err().kind(), ErrorKind::Io);
    assert!(journal.close_and_remove().is_err(), "it would lose writes");
    // Half of the records were written.
    assert_eq!(places(&stored), [0, 1, 2, 3, 4, 5, 6]);
    drain(&stored, &journal, &all);
    assert!(try_append(&journal, 10, 10).is_err());
    assert!(journal.close_and_remove().unwrap());
    assert_eq!(stored.names(), [""; 0]);
}

#[test]
fn an_error_while_a_batch_is_full_is_told_by_the_next_append() {
    let (stored, files) = stored();
    let journal = with_mode(&files, SyncMode::None);
    let all: Vec<RecordHandle> = (0..10).map(|n| logged(try_append(&journal, n, 50_000).unwrap())).collect();
    stored.fate.strike(FAULT);
    let mut more = Vec::new();
    let error = loop {
        match try_append(&journal, 10 + more.len() as u64, 50_000) {
            Ok(appended) => more.push(logged(appended)),
            Err(error) => break error,
        }
    };
    assert!(error.kind() == ErrorKind::Io && (11..=13).contains(&more.len()), "{error} {}", more.len());
    stored.fate.relent();
    for (n, logged) in all.iter().chain(&more).enumerate() {
        check(logged, n as u64);
        logged.done();
    }
    assert!(journal.close_and_remove().unwrap());
}

#[test]
fn without_space_a_journal_is_full_and_goes_on_when_there_is_some() {
    let (stored, journal, mut all) = gathered();
    stored.fate.strike(NO_SPACE);
    assert_eq!(journal.write_out().unwrap_err().kind(), ErrorKind::NoSpace);
    for len in [10, 30_000, 70_000] {
        let Append::Full { needed } = try_append(&journal, 10, len).unwrap() else { panic!() };
        assert!(!journal.wait_for_room(needed, Duration::from_millis(1)), "nothing has changed");
    }
    assert_eq!(journal.sync().unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(all.iter().all(|logged| !logged.is_durable()));
    assert!(journal.close_and_remove().is_err(), "it would lose writes");
    stored.fate.relent();
    // Closed by the attempt above: a second journal for the rest.
    assert!(!journal.close_and_remove().unwrap());
    assert_eq!(places(&stored), (0..10).collect::<Vec<_>>());
    let (stored, journal, others) = gathered();
    all.clear();
    stored.fate.strike(NO_SPACE);
    assert!(journal.write_out().is_err());
    assert!(matches!(try_append(&journal, 10, 10).unwrap(), Append::Full { .. }));
    stored.fate.relent();
    all.extend(others);
    all.push(logged(try_append(&journal, 10, 10).unwrap()));
    journal.sync().unwrap();
    assert!(all.iter().all(RecordHandle::is_durable));
    assert_eq!(places(&stored), (0..11).collect::<Vec<_>>());
}

#[test]
fn without_space_everything_can_be_done_from_memory_and_the_journal_goes_on() {
    for is_asked in [true, false] {
        let (stored, journal, all) = gathered();
        stored.fate.strike(NO_SPACE);
        assert!(journal.write_out().is_err());
        assert!(matches!(try_append(&journal, 10, 10).unwrap(), Append::Full { .. }));
        // Files can be removed where there is no space.
        stored.fate.relent();
        stored.fate.writes_fail.store(true, Ordering::SeqCst);
        if is_asked {
            drain(&stored, &journal, &all[..9]);
            assert!(matches!(try_append(&journal, 10, 10).unwrap(), Append::Full { .. }), "one is not done");
            assert_eq!(journal.sync().unwrap_err().kind(), ErrorKind::NoSpace);
            journal.checkpoint().unwrap();
            check(&all[9], 9);
        }
        all.iter().for_each(RecordHandle::done);
        // Nothing is pending: there is nothing to wait for.
        assert_eq!(try_append(&journal, 10, 10).unwrap_err().kind(), ErrorKind::NoSpace);
        assert!(journal.wait_for_room(100, Duration::ZERO));
        stored.fate.writes_fail.store(false, Ordering::SeqCst);
        let more: Vec<RecordHandle> = (10..13).map(|n| logged(try_append(&journal, n, 50_000).unwrap())).collect();
        journal.sync().unwrap();
        assert_eq!(places(&stored), [10, 11, 12], "{is_asked}");
        more.iter().for_each(RecordHandle::done);
        assert!(journal.close_and_remove().unwrap());
        assert_eq!(stored.names(), [""; 0]);
    }
}

/// At every call in turn, in every mode: what is acknowledged can be read, and what a crash leaves is a beginning of it.
#[test]
fn whichever_call_fails_nothing_acknowledged_is_lost() {
    let modes = [SyncMode::None, SyncMode::OnFlush, SyncMode::EveryWrite, SyncMode::Every(Duration::from_secs(3600))];
    for (mode, error, lasting, short) in modes.into_iter().flat_map(|mode| {
        [(NO_SPACE, false), (NO_SPACE, true), (FAULT, false), (FAULT, true)]
            .into_iter()
            .flat_map(move |(error, lasting)| [true, false].map(|short| (mode, error, lasting, short)))
    }) {
        for nth in 0..60 {
            let (stored, files) = stored();
            let limits = Limits { sync: mode, segment: 150_000, direct: nth % 2 == 0, ..Limits::new(4 << 20) };
            let journal = Journal::create(files, header(), limits).unwrap();
            *stored.fate.error.lock().unwrap() = error;
            stored.fate.lasting.store(lasting, Ordering::SeqCst);
            stored.fate.short.store(short, Ordering::SeqCst);
            stored.fate.left.store(nth, Ordering::SeqCst);
            let mut kept: Vec<(u64, RecordHandle)> = Vec::new();
            for n in 0..20u64 {
                let len = [300, 17_000, 66_000][n as usize % 3];
                if let Ok(Append::Logged(logged)) = try_append(&journal, n, len) {
                    kept.push((n, logged));
                }
                match n % 5 {
                    2 => drop(journal.write_out()),
                    3 => drop(journal.sync()),
                    4 => drop(journal.checkpoint()),
                    _ => {}
                }
                if n % 5 < 3 {
                    continue;
                }
                kept.iter().for_each(|(n, logged)| check(logged, *n));
                let found = places_or_none(&stored);
                let all: Vec<u64> = kept.iter().map(|kept| kept.0).collect();
                let safe = kept.iter().take_while(|(_, logged)| logged.is_written_out()).count();
                assert!(found.starts_with(&all[..safe]), "{mode:?} {error} {nth}: {found:?} of {all:?}, {safe} safe");
                // A write that was refused may have been left by storage that then failed altogether.
                let known = found
                    .iter()
                    .all(|place| all.contains(place) || (lasting && *place <= n) || mode == SyncMode::EveryWrite);
                assert!(known, "{mode:?} {error} {nth}: {found:?} of {all:?}");
            }
            stored.fate.relent();
            kept.iter().for_each(|(_, logged)| logged.done());
            assert!(journal.close_and_remove().unwrap());
            assert_eq!(stored.names(), [""; 0], "{mode:?} {error} {nth}");
        }
    }
}

fn places_or_none(stored: &Stored) -> Vec<u64> {
    let found = find(stored).unwrap();
    if found.iter().any(|found| found.stage == Stage::Written) { places(stored) } else { Vec::new() }
}
