//! When appends reach the kernel and the device.

use super::*;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const MODES: [SyncMode; 4] = [SyncMode::None, SyncMode::OnFlush, SyncMode::Every(HOUR), SyncMode::EveryWrite];

pub(super) fn with_mode(files: &Arc<dyn JournalStorage>, sync: SyncMode) -> Arc<Journal> {
    Journal::create(files.clone(), header(), Limits { sync, ..Limits::new(64 << 20) }).unwrap()
}

pub(super) fn stored() -> (Stored, Arc<dyn JournalStorage>) {
    let stored = Stored::default();
    (stored.clone(), Arc::new(stored))
}

/// Places of the writes that a recovery would find if the process ended now.
pub(super) fn places(stored: &Stored) -> Vec<u64> {
    let files: Arc<dyn JournalStorage> = Arc::new(stored.copy());
    let (seen, damage) = left(&files);
    assert!(damage.is_none_or(|damage| damage.unfinished));
    seen.iter().map(|seen| seen.1).collect()
}

pub(super) fn bytes_of(n: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u64 * 11 + n) as u8).collect()
}

pub(super) fn check(logged: &RecordHandle, n: u64) {
    let mut back = vec![0; logged.len() as usize];
    logged.read_into(&mut back).unwrap();
    assert_eq!(back, bytes_of(n, back.len()));
}

#[test]
fn in_every_mode_writes_are_read_back_and_found_after_closing() {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let files = directory(folder.path());
        let journal =
            Journal::create(files.clone(), header(), Limits { sync: mode, ..Limits::new(256 << 20) }).unwrap();
        let sizes = [1, 3000, 16 << 10, 17 << 10, 64 << 10, 65 << 10, 1, 900 << 10, 3 << 20, 20 << 10, 5];
        let mut kept = Vec::new();
        for n in 0..44u64 {
            let bytes = bytes_of(n, sizes[n as usize % sizes.len()]);
            kept.push((logged(append(&journal, "a", n, &bytes)), bytes));
        }
        for (n, (logged, _)) in kept.iter().enumerate() {
            check(logged, n as u64);
        }
        assert!(!journal.close_and_remove().unwrap());
        for (n, (logged, _)) in kept.iter().enumerate() {
            assert!(logged.is_written_out());
            assert!(!mode.covers_power() || logged.is_durable());
            check(logged, n as u64);
        }
        let (seen, damage) = left(&files);
        assert_eq!(damage, None, "{mode:?}");
        assert!(seen.into_iter().map(|seen| seen.2).eq(kept.iter().map(|kept| kept.1.clone())), "{mode:?}");
        kept.iter().for_each(|(logged, _)| logged.done());
        assert!(journal.close_and_remove().unwrap(), "done meanwhile");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// Past the cache where the file system can, with it where it cannot, the content is the same.
#[test]
fn data_written_directly_are_found() {
    let shared = std::path::Path::new("/dev/shm");
    let folders = [Some(tempfile::tempdir().unwrap()), tempfile::tempdir_in(shared).ok()];
    for folder in folders.into_iter().flatten() {
        for mode in MODES {
            let files = directory(folder.path());
            let limits = Limits { sync: mode, direct: true, ..Limits::new(256 << 20) };
            let journal = Journal::create(files.clone(), header(), limits).unwrap();
            let sizes = [5, (16 << 10) + 1, 40_000, 64 << 10, (1 << 20) - 1, 1 << 20, (3 << 20) + 777];
            let mut kept = Vec::new();
            for n in 0..28u64 {
                let bytes = bytes_of(n, sizes[n as usize % sizes.len()]);
                let parts: Vec<&[u8]> = bytes.chunks([bytes.len(), 4096, 70_001][n as usize % 3].max(1)).collect();
                let selection = Selection::dense(&[n], &[bytes.len() as u64]).unwrap();
                kept.push(logged(journal.append("a", &Datatype::Opaque(1), &selection, &parts).unwrap()));
            }
            kept.iter().enumerate().for_each(|(n, logged)| check(logged, n as u64));
            let refused = journal.direct_was_refused();
            if refused {
                eprintln!("direct writes are refused in {}", folder.path().display());
            }
            assert!(!journal.close_and_remove().unwrap());
            for entry in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
                let is_data = entry.path().extension().is_some_and(|end| end == "data");
                assert!(!is_data || refused || entry.metadata().unwrap().len().is_multiple_of(4096));
            }
            let (seen, damage) = left(&files);
            assert_eq!((seen.len(), damage), (28, None));
            assert!(seen.iter().enumerate().all(|(n, seen)| seen.2 == bytes_of(n as u64, seen.2.len())));
            kept.iter().for_each(RecordHandle::done);
            assert!(journal.close_and_remove().unwrap());
        }
    }
}

#[test]
fn direct_writes_that_nobody_can_do_are_said_to_be_refused() {
    let (_, files) = stored();
    let journal = Journal::create(files, header(), Limits { direct: true, ..Limits::new(1 << 20) }).unwrap();
    logged(append(&journal, "a", 0, &[1; 100]));
    assert!(!journal.direct_was_refused(), "nothing had to be");
    logged(append(&journal, "a", 0, &[1; 20_000]));
    assert!(journal.direct_was_refused());
}

#[test]
fn what_is_gathered_goes_to_the_kernel_when_asked_for_or_when_it_is_enough() {
    for mode in [SyncMode::None, SyncMode::Every(HOUR)] {
        let (stored, files) = stored();
        let journal = with_mode(&files, mode);
        let add = |n: u64, len| logged(append(&journal, "a", n, &bytes_of(n, len)));
        let first = add(0, 100);
        let second = add(1, 40_000);
        assert!(!first.is_written_out() && places(&stored).is_empty(), "{mode:?}");
        journal.write_out().unwrap();
        assert!(first.is_written_out() && second.is_written_out() && !second.is_durable());
        assert_eq!(places(&stored), [0, 1]);
        let third = add(2, 10);
        journal.sync().unwrap();
        assert!(third.is_written_out() && third.is_durable() && journal.durable_before() > third.sequence());
        add(3, 10);
        first.done();
        journal.checkpoint().unwrap();
        assert_eq!(places(&stored), [1, 2, 3]);
        let mut n = 4;
        while places(&stored).len() == 3 {
            add(n, 50_000);
            n += 1;
        }
        assert!((20..=24).contains(&(n - 4)), "a batch of 1 MiB, not {} writes", n - 4);
        // A write that is larger goes with those before it.
        add(n, 7);
        assert_eq!(places(&stored).len() as u64, n - 1);
        add(n + 1, 2 << 20);
        assert_eq!(places(&stored).len() as u64, n + 1);
        add(n + 2, 7);
        drop(journal);
        assert_eq!(places(&stored).len() as u64, n + 2);
    }
}

#[test]
fn nothing_is_synced_that_was_not_asked_for() {
    for mode in [SyncMode::None, SyncMode::OnFlush, SyncMode::Every(HOUR)] {
        let (stored, files) = stored();
        let journal = with_mode(&files, mode);
        // A mode that covers power loss syncs the header when it is created, and nothing else.
        let at_creation = u64::from(mode.covers_power());
        assert_eq!(stored.fate.syncs.load(Ordering::SeqCst), at_creation);
        let all: Vec<RecordHandle> = (0..100).map(|n| logged(append(&journal, "a", n, &[1; 30_000]))).collect();
        assert_eq!(stored.fate.syncs.load(Ordering::SeqCst), at_creation);
        assert!(all.iter().all(|logged| !logged.is_durable()));
        let begin = Instant::now();
        all.iter().for_each(RecordHandle::done);
        drop(journal);
        assert!(begin.elapsed() < Duration::from_secs(60), "the thread ends with the journal");
        assert_eq!(stored.names(), [""; 0]);
    }
}

fn wait_until(mut ready: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !ready() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_thread_syncs_what_was_appended_and_nothing_else() {
    let (stored, files) = stored();
    let journal = with_mode(&files, SyncMode::Every(Duration::from_millis(3)));
    for n in 0..20 {
        let logged = logged(append(&journal, "a", n, &[1; 100]));
        wait_until(|| logged.is_durable());
        assert_eq!(places(&stored).len() as u64, n + 1);
    }
    let syncs = stored.fate.syncs.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(stored.fate.syncs.load(Ordering::SeqCst), syncs, "idle");
}

#[test]
fn a_sync_of_the_thread_that_fails_is_seen_by_the_next_append() {
    let (stored, files) = stored();
    let journal = with_mode(&files, SyncMode::Every(Duration::from_millis(3)));
    let kept = logged(append(&journal, "a", 0, &bytes_of(0, 100)));
    wait_until(|| kept.is_durable());
    stored.fate.strike(5);
    let one = Selection::dense(&[0], &[100]).unwrap();
    let mut acknowledged = vec![kept];
    wait_until(|| match journal.append("a", &Datatype::Opaque(1), &one, &[&bytes_of(0, 100)]) {
        Ok(appended) => {
            acknowledged.push(logged(appended));
            false
        }
        Err(error) => error.kind() == hyperslab_core::ErrorKind::Io,
    });
    assert!(journal.sync().is_err());
    acknowledged.iter().for_each(|logged| check(logged, 0));
    stored.fate.relent();
    acknowledged.iter().for_each(RecordHandle::done);
    assert!(journal.close_and_remove().unwrap());
    assert_eq!(stored.names(), [""; 0]);
}

#[test]
fn every_write_is_durable_when_it_returns_and_threads_share_a_sync() {
    let folder = tempfile::tempdir().unwrap();
    let slow = Slow(directory(folder.path()), Arc::default());
    let count = slow.1.clone();
    let files: Arc<dyn JournalStorage> = Arc::new(slow);
    let journal = with_mode(&files, SyncMode::EveryWrite);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let journal = &journal;
            scope.spawn(move || {
                for n in 0..20 {
                    let logged = logged(append(journal, "a", thread * 100 + n, &[1; 5000]));
                    assert!(logged.is_durable());
                }
            });
        }
    });
    let syncs = count.load(Ordering::SeqCst);
    assert!(syncs < 100, "{syncs} syncs for 160 writes");
    drop(journal);
    assert_eq!(left(&files).0.len(), 160);
}

#[test]
fn a_write_whose_sync_fails_is_not_left_over() {
    let (stored, files) = stored();
    let journal = with_mode(&files, SyncMode::EveryWrite);
    let kept = logged(append(&journal, "a", 0, &bytes_of(0, 100)));
    // Its record is written, and the sync fails.
    stored.fate.left.store(1, Ordering::SeqCst);
    assert!(journal.append("a", &Datatype::Opaque(1), &Selection::dense(&[0], &[1]).unwrap(), &[&[1]]).is_err());
    assert_eq!(journal.pending(), 1);
    check(&kept, 0);
    kept.done();
    assert!(journal.close_and_remove().unwrap());
    assert_eq!(stored.names(), [""; 0]);
}

/// Files that take a while to sync, and count how often.
#[derive(Debug)]
struct Slow(Arc<dyn JournalStorage>, Arc<std::sync::atomic::AtomicU64>);

#[derive(Debug)]
struct SlowFile(Arc<dyn LogFile>, Arc<std::sync::atomic::AtomicU64>);

impl JournalStorage for Slow {
    fn create(&self, name: &str) -> std::io::Result<Arc<dyn LogFile>> {
        Ok(Arc::new(SlowFile(self.0.create(name)?, self.1.clone())))
    }

    fn open(&self, name: &str) -> std::io::Result<Arc<dyn LogFile>> {
        self.0.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }

    fn list(&self) -> std::io::Result<Vec<String>> {
        self.0.list()
    }

    fn sync_directory(&self) -> std::io::Result<()> {
        Ok(())
    }

    fn place(&self) -> String {
        self.0.place()
    }
}

impl LogFile for SlowFile {
    fn write_at(&self, parts: &[std::io::IoSlice<'_>], offset: u64) -> std::io::Result<()> {
        self.0.write_at(parts, offset)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> std::io::Result<usize> {
        self.0.read_at(into, offset)
    }

    fn truncate(&self, len: u64) -> std::io::Result<()> {
        self.0.truncate(len)
    }

    fn len(&self) -> std::io::Result<u64> {
        self.0.len()
    }

    fn sync(&self) -> std::io::Result<()> {
        self.1.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    fn lock(&self) -> std::io::Result<Lock> {
        self.0.lock()
    }
}
