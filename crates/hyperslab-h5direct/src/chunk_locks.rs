//! Per-chunk reader-writer locks. Deadlock-free: taken in increasing chunk order.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};

/// The locks of one dataset's chunks.
#[derive(Debug, Default)]
pub(crate) struct ChunkLocks {
    /// Number of readers of each locked chunk, or [`WRITER`].
    held: Mutex<HashMap<u64, u32>>,
    freed: Condvar,
}

const WRITER: u32 = u32::MAX;

/// A held lock, released when dropped. May be sent to another thread.
#[derive(Debug)]
pub(crate) struct ChunkLock<'a> {
    locks: &'a ChunkLocks,
    chunk: u64,
}

impl ChunkLocks {
    /// Locks the chunk for reading; blocks while a writer holds it.
    pub(crate) fn read(&self, chunk: u64) -> ChunkLock<'_> {
        self.wait(chunk, |held| match held {
            WRITER => None,
            readers => Some(readers + 1),
        })
    }

    /// Locks the chunk for writing; blocks while anyone holds it.
    pub(crate) fn write(&self, chunk: u64) -> ChunkLock<'_> {
        self.wait(chunk, |held| (held == 0).then_some(WRITER))
    }

    /// Locks the chunk for writing; `None` if anyone holds it.
    pub(crate) fn try_write(&self, chunk: u64) -> Option<ChunkLock<'_>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains_key(&chunk) {
            return None;
        }
        held.insert(chunk, WRITER);
        Some(ChunkLock { locks: self, chunk })
    }

    fn wait(&self, chunk: u64, next: impl Fn(u32) -> Option<u32>) -> ChunkLock<'_> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(now) = next(held.get(&chunk).copied().unwrap_or(0)) {
                held.insert(chunk, now);
                return ChunkLock { locks: self, chunk };
            }
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl ChunkLock<'_> {
    /// The locked chunk's number.
    pub(crate) fn chunk(&self) -> u64 {
        self.chunk
    }
}

impl Drop for ChunkLock<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get_mut(&self.chunk) {
            Some(readers) if *readers != WRITER && *readers > 1 => *readers -= 1,
            _ => {
                held.remove(&self.chunk);
                drop(held);
                self.locks.freed.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI32, Ordering};

    #[test]
    fn one_writer_or_many_readers() {
        let locks = ChunkLocks::default();
        let (first, second) = (locks.read(3), locks.read(3));
        assert!(locks.try_write(3).is_none());
        drop(first);
        assert!(locks.try_write(3).is_none());
        drop(second);
        let writer = locks.try_write(3);
        assert!(writer.is_some_and(|lock| lock.chunk() == 3));
        assert!(locks.try_write(3).is_some());
    }

    #[test]
    fn writers_never_meet() {
        let (locks, inside) = (ChunkLocks::default(), AtomicI32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for turn in 0..2000u64 {
                        let _low = locks.write(turn % 3);
                        let _high = locks.write(7);
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
