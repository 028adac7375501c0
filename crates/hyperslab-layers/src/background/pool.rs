//! Buffer pool: faulting in fresh memory costs as much as filling it.

use super::huge_pages::HugePages;
use hyperslab_core::{Bytes, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Smaller buffers come from the allocator.
const SMALLEST: usize = 64 << 10;

/// Free buffers by size.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: Mutex<BTreeMap<usize, Vec<HugePages>>>,
}

/// A buffer in use; returned to the pool when dropped.
#[derive(Debug)]
pub(crate) struct Buffer {
    /// `None` once returned.
    memory: Option<Memory>,
    len: usize,
    pool: Arc<Pool>,
}

#[derive(Debug)]
enum Memory {
    Small(Vec<u8>),
    Large(HugePages),
}

/// Allocation size of a buffer: rounded up by at most an eighth, so that sizes repeat.
pub(crate) fn bytes_taken(len: usize) -> usize {
    if len < SMALLEST {
        return len;
    }
    let step = len.next_power_of_two() / 16;
    len.next_multiple_of(step)
}

impl Pool {
    /// Takes a buffer of `len` bytes with arbitrary contents. Keeps at most `keep` bytes of free buffers.
    pub fn take(self: &Arc<Self>, len: usize, keep: u64) -> Result<Buffer> {
        let pool = self.clone();
        if len < SMALLEST {
            return Ok(Buffer { memory: Some(Memory::Small(vec![0; len])), len, pool });
        }
        let size = bytes_taken(len);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let found = free.get_mut(&size).and_then(Vec::pop);
        trim(&mut free, keep);
        drop(free);
        let memory = match found {
            Some(buffer) => buffer,
            None => HugePages::new(size)?,
        };
        Ok(Buffer { memory: Some(Memory::Large(memory)), len, pool })
    }

    /// Frees all unused buffers.
    pub fn clear(&self) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Frees unused buffers, largest first, down to `keep` bytes.
fn trim(free: &mut BTreeMap<usize, Vec<HugePages>>, keep: u64) {
    let mut held: u64 = free.iter().map(|(size, buffers)| (size * buffers.len()) as u64).sum();
    while held > keep {
        let Some(mut largest) = free.last_entry() else { return };
        let size = *largest.key();
        largest.get_mut().pop();
        if largest.get().is_empty() {
            largest.remove();
        }
        held = held.saturating_sub(size as u64);
    }
}

impl Buffer {
    /// Turns the buffer into shared bytes.
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        match &self.memory {
            Some(Memory::Small(bytes)) => bytes,
            Some(Memory::Large(buffer)) => &buffer[..self.len],
            None => &[],
        }
    }
}

impl AsMut<[u8]> for Buffer {
    fn as_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Some(Memory::Small(bytes)) => bytes,
            Some(Memory::Large(buffer)) => &mut buffer[..self.len],
            None => &mut [],
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(Memory::Large(buffer)) = self.memory.take() {
            let mut free = self.pool.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.entry(buffer.len()).or_default().push(buffer);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_and_no_more_are_kept_than_allowed() {
        let pool = Arc::new(Pool::default());
        let (len, held) = (100_000, |pool: &Pool| pool.free.lock().unwrap().values().map(Vec::len).sum::<usize>());
        let address = |buffer: &Buffer| buffer.as_ref().as_ptr() as usize;
        let first = pool.take(len, 0).unwrap();
        let place = address(&first);
        drop(first);
        let mut again = pool.take(len + 1000, u64::MAX).unwrap();
        assert_eq!((address(&again), again.as_ref().len(), again.as_mut().len()), (place, len + 1000, len + 1000));
        let other = pool.take(len, u64::MAX).unwrap();
        drop((other, again.freeze()));
        assert_eq!(held(&pool), 2);
        drop(pool.take(3 << 20, bytes_taken(len) as u64).unwrap());
        assert_eq!(held(&pool), 2, "one was dropped, the large one came back");
        drop(pool.take(10, u64::MAX).unwrap());
        assert_eq!(held(&pool), 2);
        pool.clear();
        assert_eq!(held(&pool), 0);
    }

    #[test]
    fn sizes_are_rounded_up_by_an_eighth_at_most() {
        for len in [1, 4096, 65_535, 65_536, 65_537, 100_000, 1 << 20, (1 << 20) + 1, 12_345_678] {
            let taken = bytes_taken(len);
            assert!(taken >= len && taken <= len + len / 8, "{len} {taken}");
            assert_eq!(bytes_taken(taken), taken);
        }
    }
}
