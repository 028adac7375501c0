//! Files to measure on, and the two sides.

use hyperslab_comm::Solo;
use hyperslab_core::{Array, ArraySpec, Container, Format, OpenMode, Stack};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

/// A folder in memory, if the system has one.
pub struct Stage {
    folder: TempDir,
}

impl Stage {
    pub fn new() -> Self {
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { folder: folder.unwrap() }
    }

    pub fn where_it_is(&self) -> String {
        self.folder.path().parent().unwrap().display().to_string()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A new file in the place of an old one.
    pub fn create(&self, stack: &str, name: &str) -> Arc<dyn Container> {
        let _ = std::fs::remove_file(self.path(name));
        format(stack).open(&self.path(name), OpenMode::Create, &Solo::shared()).unwrap()
    }

    pub fn open(&self, stack: &str, name: &str) -> Arc<dyn Container> {
        format(stack).open(&self.path(name), OpenMode::Read, &Solo::shared()).unwrap()
    }

    pub fn size(&self, name: &str) -> u64 {
        self.path(name).metadata().unwrap().len()
    }

    pub fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }
}

pub fn format(stack: &str) -> Arc<dyn Format> {
    hyperslab_formats::build(&stack.parse::<Stack>().unwrap().format).unwrap()
}

pub fn array(file: &Arc<dyn Container>, spec: &ArraySpec) -> Arc<dyn Array> {
    file.create("array", spec).unwrap()
}

/// Seconds.
pub fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Medians of two sides that take turns; who goes first changes.
pub fn compare<const N: usize>(turns: usize, mut sides: [Box<dyn FnMut() -> f64 + '_>; N]) -> [f64; N] {
    let mut times: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for turn in 0..turns {
        for step in 0..N {
            let side = (turn + step) % N;
            times[side].push(sides[side]());
        }
    }
    times.map(median)
}
