//! Short writes to storage that answers late, such as across a network: several are under way at a time.

use crate::file;
use crate::workers::FirstError;
use hyperslab_core::Result;
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// So many writes tell how fast the storage answers.
const TRIED: usize = 4;
/// Slower answers than this are waited for together. Starting a thread takes a tenth of it.
const LATE: Duration = Duration::from_micros(500);
/// Longer writes are limited by how much the storage takes, not by how late it answers.
const SHORT: usize = 256 << 10;
/// Writes under way at a time. The threads do nothing but wait.
const TOGETHER: usize = 32;
/// Writes that are gathered for that.
const GATHERED: usize = 4096;

/// The writes of one call, to places that do not overlap.
pub(crate) struct LateWrites<'a, 'm> {
    file: &'a File,
    tried: usize,
    took: Duration,
    bytes: usize,
    gathered: Vec<(u64, &'m [u8])>,
}

impl<'a, 'm> LateWrites<'a, 'm> {
    pub(crate) fn new(file: &'a File) -> Self {
        Self { file, tried: 0, took: Duration::ZERO, bytes: 0, gathered: Vec::new() }
    }

    /// Writes, or has [`Self::finish`] write.
    pub(crate) fn write(&mut self, packed: &'m [u8], range: Range<usize>, at: u64) -> Result<()> {
        let data = &packed[range];
        if self.tried < TRIED {
            let begin = Instant::now();
            file::write(self.file, None, data, at)?;
            self.took += begin.elapsed();
            (self.tried, self.bytes) = (self.tried + 1, self.bytes + data.len());
            return Ok(());
        }
        if self.took < LATE * TRIED as u32 || self.bytes > SHORT * TRIED {
            return file::write(self.file, None, data, at);
        }
        self.gathered.push((at, data));
        if self.gathered.len() < GATHERED { Ok(()) } else { self.finish() }
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let (file, writes) = (self.file, std::mem::take(&mut self.gathered));
        let (next, errors) = (AtomicUsize::new(0), FirstError::default());
        let work = || {
            while let Some((at, data)) = writes.get(next.fetch_add(1, Ordering::Relaxed)) {
                if errors.is_set() {
                    return;
                }
                if let Err(error) = file::write(file, None, data, *at) {
                    errors.note(error);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..TOGETHER.min(writes.len()) {
                // With fewer threads it only takes longer.
                if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        errors.into_result()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn late_writes_reach_their_places_and_errors_are_told() {
        let data: Vec<u8> = (0..100u8).flat_map(|byte| [byte; 10]).collect();
        let write = |file: &File| {
            let mut late = LateWrites::new(file);
            (late.tried, late.took) = (TRIED, Duration::from_secs(1));
            for piece in 0..100 {
                late.write(&data, piece * 10..piece * 10 + 10, piece as u64 * 20)?;
            }
            assert_eq!(late.gathered.len(), 100);
            late.finish()
        };
        let file = tempfile::tempfile().unwrap();
        write(&file).unwrap();
        let mut back = [0; 1990];
        file.read_exact_at(&mut back, 0).unwrap();
        assert!((0..100).all(|piece| back[piece * 20..piece * 20 + 10] == data[piece * 10..piece * 10 + 10]));
        assert!(write(&File::open("/dev/null").unwrap()).is_err());
    }
}
