//! Pool of aligned buffers, and the io_uring, reused from transfer to transfer.

use super::io_uring::Ring;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

/// Number of free buffers kept.
const KEPT: usize = 2;

/// Buffers of one size. Never blocks: buffers beyond those kept are allocated and freed.
#[derive(Debug)]
pub(crate) struct BufferPool {
    size: usize,
    align: usize,
    free: Mutex<Vec<Vec<u8>>>,
    ring: Option<Ring>,
}

/// A buffer, returned to its pool when dropped. Aligned as the pool says.
#[derive(Debug)]
pub(crate) struct Buffer<'a> {
    container: &'a BufferPool,
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

impl BufferPool {
    /// A pool of buffers of `size` bytes, aligned to `align`.
    pub fn new(size: usize, align: usize) -> Self {
        Self { size, align, free: Mutex::default(), ring: None }
    }

    /// Adds an io_uring for large transfers.
    pub fn with_ring(self, ring: Option<Ring>) -> Self {
        Self { ring, ..self }
    }

    /// The io_uring, if there is one.
    pub fn ring(&self) -> Option<&Ring> {
        self.ring.as_ref()
    }

    /// Size of pooled buffers.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Alignment of buffers.
    pub fn align(&self) -> usize {
        self.align
    }

    /// A buffer of `len` bytes with unspecified content. May exceed the pooled size, since one element must fit.
    pub fn take(&self, len: usize) -> Buffer<'_> {
        let kept = if len <= self.size { self.lock().pop() } else { None };
        let memory = kept.unwrap_or_else(|| vec![0; self.size.max(len) + self.align]);
        let from = memory.as_ptr().align_offset(self.align).min(self.align);
        Buffer { container: self, memory, from, len }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Buffer<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.len]
    }
}

impl DerefMut for Buffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.len]
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        if self.memory.len() == self.container.size + self.container.align {
            let mut free = self.container.lock();
            if free.len() < KEPT {
                free.push(std::mem::take(&mut self.memory));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_come_back() {
        let staging = BufferPool::new(8192, 4096);
        let (first, second, third) = (staging.take(10), staging.take(8192), staging.take(9000));
        for buffer in [&first, &second, &third] {
            assert_eq!(buffer.as_ptr() as usize % 4096, 0);
        }
        assert_eq!((first.len(), second.len(), third.len()), (10, 8192, 9000));
        drop((first, second, third));
        assert_eq!(staging.lock().len(), 2);
    }
}
