//! Arrays that only the program's threads may enter: layers with background threads leave them to the program.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Bytes, Communicator, Container, Datatype, Durability, Format, MemoryLayout, MemoryView,
    MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use hyperslab_testkit::{Memory, Pinned, watchdog};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
const ROWS: u64 = 64;
const ROW: u64 = 1000;
/// Stacks whose background has something to do all the time.
const STACKS: &[&str] = &[
    "async(threads=2)",
    "async(memory=8KiB)",
    "cache(memory=64KiB)",
    "cache(dir=DIR,stage=64KiB)",
    "log(dir=DIR,drain=4KiB,age=1ms)",
    "log(dir=DIR,drain=4KiB,limit=64KiB)",
    "log(dir=DIR,drain=4KiB,limit=64KiB,durability=none)",
    "log(dir=DIR,memory=4KiB)",
    "log(dir=DIR,drain=off)",
    "log(dir=DIR,drain=off)/twophase(buffer=4KiB,unit=4KiB)",
    "twophase(buffer=4KiB,unit=4KiB)",
    "trace/async/slow(1GB/s,10us)",
];

fn within_limit(work: impl FnOnce() + Send + 'static) {
    let work = move || {
        work();
        Ok(())
    };
    watchdog::within(LIMIT, work).unwrap();
}

fn build(stack: &str, folder: &Path) -> Arc<dyn Format> {
    let text = format!("{stack}/pinned").replace("DIR", &folder.display().to_string());
    let stack: Stack = text.parse().unwrap();
    hyperslab_layers::build(&stack, Arc::new(Pinned::new(Arc::new(Memory), "free"))).unwrap()
}

fn rows(first: u64, count: u64) -> Selection {
    Selection::dense(&[first, 0], &[count, ROW]).unwrap()
}

fn read(array: &dyn Array, selection: &Selection, transfer: TransferMode) -> Result<Vec<u8>> {
    let mut found = vec![0xEE; selection.len() as usize];
    array.read(selection, MemoryViewMut::packed(&mut found), transfer).map(|()| found)
}

/// An array and what has to be in it.
struct Twin {
    array: Arc<dyn Array>,
    model: Vec<u8>,
}

impl Twin {
    fn new(container: &dyn Container, name: &str) -> Result<Self> {
        let shape = [ROWS, ROW];
        let spec = ArraySpec { max_shape: Some(vec![None, Some(ROW)]), ..ArraySpec::new(Datatype::U8, &shape) };
        let array = container.create(name, &spec)?;
        Ok(Self { array, model: vec![0; (ROWS * ROW) as usize] })
    }

    /// One of many kinds of accesses.
    fn step(&mut self, step: u64) -> Result<()> {
        let (first, count) = (step * 7919 % 60, 1 + step % 4);
        let (selection, value) = (rows(first, count), step as u8);
        let data = vec![value; selection.len() as usize];
        let memory = MemoryView::packed(&data);
        match step % 5 {
            0 => self.array.write_many(&[(&selection, memory)], TransferMode::Independent)?,
            1 => {
                let layout = MemoryLayout::packed();
                drop(self.array.submit_write(&selection, Bytes::from(data), &layout, TransferMode::Independent)?);
            }
            _ => self.array.write(&selection, memory, TransferMode::Independent)?,
        }
        self.model[(first * ROW) as usize..((first + count) * ROW) as usize].fill(value);
        if step.is_multiple_of(16) {
            // Equal distances: a pattern.
            for first in (0..ROWS).step_by(8) {
                self.array.prefetch(&rows((first + 8) % ROWS, 2));
                let found = read(&*self.array, &rows(first, 2), TransferMode::Independent)?;
                assert!(found == self.model[(first * ROW) as usize..][..2 * ROW as usize], "step {step}, row {first}");
            }
        }
        Ok(())
    }

    fn check(&self, when: &str) {
        assert!(read(&*self.array, &rows(0, ROWS), TransferMode::Independent).unwrap() == self.model, "{when}");
    }
}

#[test]
fn only_the_program_enters_them() {
    for (number, stack) in STACKS.iter().enumerate() {
        within_limit(move || {
            let folder = tempfile::tempdir().unwrap();
            let (format, path) = (build(stack, folder.path()), folder.path().join("container"));
            let container = format.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
            let mut pinned = Twin::new(&*container, "pinned").unwrap();
            let mut free = Twin::new(&*container, "free").unwrap();
            assert!(!pinned.array.allows_background_io() && free.array.allows_background_io(), "{stack}");
            for step in 0..200 {
                pinned.step(step).unwrap();
                if step % 3 == number as u64 % 3 {
                    free.step(step).unwrap();
                }
                match step % 91 {
                    30 => container.flush(Durability::Visible).unwrap(),
                    60 => pinned.array.write_back().unwrap(),
                    90 => container.write_back().unwrap(),
                    _ => {}
                }
            }
            pinned.check(stack);
            free.check(stack);
            // With writes that wait.
            pinned.array.resize(&[ROWS + 1, ROW]).unwrap();
            pinned.step(1000).unwrap();
            pinned.array.close().unwrap();
            container.close().unwrap();
            let again = format.open(&path, OpenMode::Read, &Solo::shared()).unwrap();
            for (name, twin) in [("pinned", &pinned), ("free", &free)] {
                let found = read(&*again.array(name).unwrap(), &rows(0, ROWS), TransferMode::Independent).unwrap();
                assert!(found == twin.model, "{stack}: {name}");
            }
            again.close().unwrap();
        });
    }
}

#[test]
fn ranks_write_them_together() {
    for stack in STACKS {
        within_limit(move || {
            let folder = tempfile::tempdir().unwrap();
            let (format, path) = (build(stack, folder.path()), folder.path().join("container"));
            Threads::run(3, |comm| {
                let container = format.open(&path, OpenMode::Create, &comm)?;
                let array = container.create("pinned", &ArraySpec::new(Datatype::U8, &[ROWS, ROW]))?;
                let mine = |step: u64| rows((step * 3 + comm.rank() as u64) % 63, 1);
                for step in 0..63 {
                    let data = vec![(step % 21) as u8 + 1; ROW as usize];
                    let transfer = if step % 2 == 0 { TransferMode::Collective } else { TransferMode::Independent };
                    array.write(&mine(step), MemoryView::packed(&data), transfer)?;
                    if step % 30 == 29 {
                        container.flush(Durability::Visible)?;
                    }
                }
                // A rank that is refused still takes part.
                let wrong = MemoryView::packed(&[0; 3]);
                if comm.rank() == 0 {
                    array.write(&mine(0), wrong, TransferMode::Collective).unwrap_err();
                } else {
                    let data = vec![1; ROW as usize];
                    // Some layers tell all ranks.
                    let _ = array.write(&mine(0), MemoryView::packed(&data), TransferMode::Collective);
                }
                container.flush(Durability::Visible)?;
                let found = read(&*array, &rows(0, 63), TransferMode::Collective)?;
                let expected = (0..63).flat_map(|row| vec![(row / 3) as u8 + 1; ROW as usize]);
                assert!(found.into_iter().eq(expected), "{stack}");
                container.close()
            })
            .unwrap();
        });
    }
}

/// What is there without the layer.
fn below(path: &Path, name: &str) -> Vec<u8> {
    let container = Memory.open(path, OpenMode::Read, &Solo::shared()).unwrap();
    read(&*container.array(name).unwrap(), &rows(0, 1), TransferMode::Independent).unwrap()
}

#[test]
fn the_background_moves_the_others_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("container");
    let format = build("log(dir=DIR,age=1ms,drain=1KiB)", folder.path());
    let comm: Arc<dyn Communicator> = Solo::shared();
    let container = format.open(&path, OpenMode::Create, &comm).unwrap();
    let pinned = Twin::new(&*container, "pinned").unwrap();
    let free = Twin::new(&*container, "free").unwrap();
    for twin in [&pinned, &free] {
        twin.array.write(&rows(0, 1), MemoryView::packed(&[7; ROW as usize]), TransferMode::Independent).unwrap();
    }
    let from = Instant::now();
    while below(&path, "free") != [7; ROW as usize] {
        assert!(from.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(below(&path, "pinned"), [0; ROW as usize], "only the program moves it");
    assert_eq!(read(&*pinned.array, &rows(0, 1), TransferMode::Independent).unwrap(), [7; ROW as usize]);
    pinned.array.write_back().unwrap();
    assert_eq!(below(&path, "pinned"), [7; ROW as usize]);
    container.close().unwrap();
}
