//! What `async` promises beside the data: bounded memory, errors told once, time-outs, reads ahead that are never stale.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Bytes, Communicator, Container, Datatype, Durability, ErrorKind, EventSet, Format, MemoryLayout,
    MemoryView, MemoryViewMut, OpenMode, Request, Result, Selection, Stack, TransferMode,
};
use hyperslab_testkit::{Fault, Faulty, Memory, watchdog};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_millis(20);
const ROW: u64 = 1024;
const ROWS: u64 = 64;

/// An array of rows behind `async`, above a format that does as the test says.
struct Subject {
    faulty: Faulty,
    format: Arc<dyn Format>,
    path: PathBuf,
    container: Arc<dyn Container>,
    array: Arc<dyn Array>,
}

impl Subject {
    fn new(layer: &str, name: &str) -> Self {
        let faulty = Faulty::new(Arc::new(Memory));
        let stack: Stack = format!("{layer}/faulty").parse().unwrap();
        let format = hyperslab_layers::build(&stack, Arc::new(faulty.clone())).unwrap();
        let path = PathBuf::from(format!("async_io/{name}"));
        let container = open(&*format, &path, OpenMode::Truncate);
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[ROWS, ROW])).unwrap();
        Self { faulty, format, path, container, array }
    }

    fn submit(&self, row: u64) -> Result<Request> {
        let data = Bytes::from(vec![row as u8 + 1; ROW as usize]);
        self.array.submit_write(&rows(row), data, &MemoryLayout::packed(), TransferMode::Independent)
    }

    fn write(&self, row: u64) -> Result<()> {
        write(&*self.array, row, row as u8 + 1)
    }

    /// Once so many calls of the format below have been made.
    fn wait_for_calls(&self, calls: u64) {
        let from = Instant::now();
        while self.faulty.calls() < calls {
            assert!(from.elapsed() < LIMIT, "only {} calls", self.faulty.calls());
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn open(format: &dyn Format, path: &Path, how: OpenMode) -> Arc<dyn Container> {
    let comm: Arc<dyn Communicator> = Arc::new(Solo);
    format.open(path, how, &comm).unwrap()
}

fn rows(row: u64) -> Selection {
    Selection::dense(&[row, 0], &[1, ROW]).unwrap()
}

fn write(array: &dyn Array, row: u64, value: u8) -> Result<()> {
    array.write(&rows(row), MemoryView::packed(&[value; ROW as usize]), TransferMode::Independent)
}

fn read(array: &dyn Array, row: u64) -> Vec<u8> {
    let mut found = vec![0xEE; ROW as usize];
    array.read(&rows(row), MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
    found
}

fn in_time(work: impl FnOnce() + Send + 'static) {
    let done = watchdog::within(LIMIT, move || {
        work();
        Ok(())
    });
    done.unwrap_or_else(|failed| panic!("{}", failed.message().unwrap_or("failed")));
}

#[test]
fn callers_wait_when_memory_is_in_use() {
    const MEMORY: u64 = 16 << 10;
    for submits in [false, true] {
        in_time(move || {
            let subject = Subject::new("async(memory=16KiB,threads=2)", &format!("memory {submits}"));
            subject.faulty.hold();
            let written = AtomicU64::new(0);
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    for row in 0..ROWS {
                        match submits {
                            true => drop(subject.submit(row).unwrap()),
                            false => subject.write(row).unwrap(),
                        }
                        written.fetch_add(1, Ordering::SeqCst);
                    }
                });
                subject.faulty.wait_until_held(2);
                // As many as fit, then no more, however long it takes.
                let mut before = u64::MAX;
                while before != written.load(Ordering::SeqCst) {
                    before = written.load(Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(100));
                }
                assert!(before > 4 && before * ROW < MEMORY, "{before} writes were taken");
                assert!(!writer.is_finished());
                subject.faulty.release();
            });
            subject.container.flush(Durability::Visible).unwrap();
            let peak = subject.container.background().memory;
            assert!(peak <= MEMORY && peak > MEMORY / 2, "{peak} bytes");
            (0..ROWS).for_each(|row| assert_eq!(read(&*subject.array, row), [row as u8 + 1; ROW as usize]));
            subject.container.close().unwrap();
        });
    }
}

#[test]
fn no_more_waits_than_the_storage_takes_within_the_lag() {
    in_time(|| {
        const MIB: u64 = 1 << 20;
        // Of a burst that is over before the lag is, all would wait.
        let stack: Stack = "async(memory=256MiB,lag=2s)/slow(4MB/s,0ms)/null".parse().unwrap();
        let format = hyperslab_layers::build(&stack, hyperslab_formats::build(&stack.format).unwrap()).unwrap();
        let container = open(&*format, Path::new("async_io/lag"), OpenMode::Truncate);
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[12, MIB])).unwrap();
        let data = vec![1; MIB as usize];
        for row in 0..12 {
            let place = Selection::dense(&[row, 0], &[1, MIB]).unwrap();
            array.write(&place, MemoryView::packed(&data), TransferMode::Independent).unwrap();
        }
        // At 4 MB/s it is 8 MB, and 8 MiB may always wait.
        let most = container.background().memory;
        assert!(most < 10 * MIB, "{most} bytes waited");
        array.close().unwrap();
        container.close().unwrap();
    });
}

#[test]
fn a_transfer_larger_than_memory_is_made_at_once() {
    in_time(|| {
        let subject = Subject::new("async(memory=4KiB)", "large");
        let (all, data) = (Selection::dense(&[0, 0], &[ROWS, ROW]).unwrap(), vec![7; (ROWS * ROW) as usize]);
        subject.write(3).unwrap();
        subject.array.write(&all, MemoryView::packed(&data), TransferMode::Independent).unwrap();
        assert_eq!(read(&*subject.array, 3), [7; ROW as usize], "in the order of the calls");
        assert!(subject.container.background().memory <= 4096);
        subject.container.close().unwrap();
    });
}

#[test]
fn requests_can_be_tested_and_waited_for_with_a_limit() {
    in_time(|| {
        let subject = Subject::new("async(threads=2)", "requests");
        subject.faulty.hold();
        let mut request = subject.submit(0).unwrap();
        assert!(request.test().is_none() && request.wait_for(SOON).is_none());
        let mut set = EventSet::new();
        assert_eq!([1, 2, 3].map(|row| set.insert(subject.submit(row).unwrap())), [0, 1, 2]);
        assert!(set.test().is_none() && set.wait_any(Some(SOON)).is_none());
        assert!(set.wait_all(Some(SOON)).is_empty() && set.len() == 3, "still under way");
        subject.faulty.release();
        request.wait().unwrap();
        let (first, result) = set.wait_any(None).unwrap();
        assert!(result.is_ok() && first < 3 && set.len() == 2);
        assert!(set.wait_all(None).is_empty() && set.is_empty());
        subject.container.close().unwrap();
    });
}

#[test]
fn an_error_belongs_to_its_request_and_is_told_once() {
    in_time(|| {
        let subject = Subject::new("async", "request error");
        subject.faulty.fail_at(2, Fault::Io);
        subject.faulty.hold();
        let requests = [0, 1, 2].map(|row| subject.submit(row).unwrap());
        subject.faulty.release();
        let [good, bad, never] = requests.map(Request::wait);
        good.unwrap();
        let (bad, never) = (bad.unwrap_err(), never.unwrap_err());
        assert_eq!(bad.kind(), ErrorKind::Io);
        assert!(bad.to_string().contains('a') && !bad.to_string().contains("refused"), "{bad}");
        assert!(never.to_string().contains("refused, because"), "what waited was not done, and says so: {never}");
        // Poisoned: everything refuses, with the cause, until close.
        for refused in [subject.write(5), subject.container.flush(Durability::Visible), subject.array.resize(&[1, 1])] {
            let error = refused.unwrap_err();
            assert!(error.to_string().contains("refused, because") && error.what_to_try().is_some(), "{error}");
        }
        let mut found = [0; ROW as usize];
        let read = subject.array.read(&rows(0), MemoryViewMut::packed(&mut found), TransferMode::Independent);
        assert!(read.unwrap_err().to_string().contains("refused, because"));
        subject.container.close().unwrap(); // all errors were told
        subject.container.close().unwrap();
    });
}

#[test]
fn errors_without_a_request_are_told_by_flush_or_by_close() {
    in_time(|| {
        for closes in [false, true] {
            let subject = Subject::new("async", &format!("late error {closes}"));
            subject.faulty.fail_at(1, Fault::NoSpace);
            subject.write(0).unwrap();
            drop(subject.submit(1)); // nobody will ask
            let told = if closes { subject.container.close() } else { subject.container.flush(Durability::Visible) };
            assert_eq!(told.unwrap_err().kind(), ErrorKind::NoSpace);
            subject.container.close().unwrap();
        }
    });
}

#[test]
fn dropping_everything_loses_nothing() {
    in_time(|| {
        let Subject { faulty, format, path, container, array } = Subject::new("async(threads=2)", "dropped");
        faulty.hold();
        (0..8).for_each(|row| write(&*array, row, 9).unwrap());
        let data = Bytes::from(vec![9; ROW as usize]);
        let request = array.submit_write(&rows(8), data, &MemoryLayout::packed(), TransferMode::Independent).unwrap();
        array.prefetch(&rows(20));
        faulty.wait_until_held(2);
        let dropping = std::thread::spawn(move || drop((request, array, container)));
        std::thread::sleep(SOON);
        assert!(!dropping.is_finished(), "it does what is left");
        faulty.release();
        dropping.join().unwrap();
        let again = open(&*format, &path, OpenMode::Read);
        let array = again.array("a").unwrap();
        (0..9).for_each(|row| assert_eq!(read(&*array, row), [9; ROW as usize]));
    });
}

#[test]
fn elements_read_ahead_are_used_and_never_stale() {
    in_time(|| {
        let subject = Subject::new("async", "ahead");
        (0..ROWS).for_each(|row| subject.write(row).unwrap());
        subject.container.flush(Durability::Visible).unwrap();
        let calls = subject.faulty.calls();
        subject.array.prefetch(&rows(5));
        subject.wait_for_calls(calls + 1);
        assert_eq!(read(&*subject.array, 5), [6; ROW as usize]);
        assert_eq!(subject.faulty.calls(), calls + 1, "not read again");
        // Three reads at equal distances, and the fourth and fifth are there already.
        for row in [10, 12, 14] {
            assert_eq!(read(&*subject.array, row), [row as u8 + 1; ROW as usize]);
        }
        subject.wait_for_calls(calls + 6);
        assert_eq!(read(&*subject.array, 16), [17; ROW as usize]);
        // A write of the rank itself makes it stale, and a flush may show writes of others.
        subject.array.prefetch(&rows(30));
        write(&*subject.array, 30, 200).unwrap();
        assert_eq!(read(&*subject.array, 30), [200; ROW as usize]);
        subject.array.prefetch(&rows(31));
        let other = open(&Memory, &subject.path, OpenMode::Update);
        write(&*other.array("a").unwrap(), 31, 201).unwrap();
        subject.container.flush(Durability::Visible).unwrap();
        assert_eq!(read(&*subject.array, 31), [201; ROW as usize]);
        subject.container.close().unwrap();
    });
}

#[test]
fn what_cannot_be_read_ahead_is_no_error() {
    in_time(|| {
        let subject = Subject::new("async", "ahead fails");
        subject.write(1).unwrap();
        subject.container.flush(Durability::Visible).unwrap();
        for fault in Fault::ALL {
            subject.faulty.fail_at(1, fault);
            subject.array.prefetch(&rows(1));
            subject.wait_for_calls(1);
            assert_eq!(read(&*subject.array, 1), [2; ROW as usize], "{fault:?}");
        }
        subject.array.prefetch(&rows(ROWS + 1));
        subject.container.close().unwrap();
    });
}
