//! Page-aligned transfer buffers.

use crate::{Error, ErrorKind, Result};
use std::ops::{Deref, DerefMut};

/// Alignment of the first byte.
const PAGE: usize = 4096;

/// A page-aligned byte buffer.
///
/// Large allocations start 16 bytes into a page. On some processors (AMD EPYC, measured with Linux 6) the kernel then copies
/// page-aligned file data at a third of the rate: a measurement artefact that has nothing to do with storage.
#[derive(Debug, Default)]
pub struct PageBuffer {
    memory: Vec<u8>,
    from: usize,
    len: usize,
}

impl PageBuffer {
    /// `len` zeros.
    pub fn new(len: usize) -> Result<Self> {
        let mut buffer = Self::default();
        buffer.set_len(len)?;
        Ok(buffer)
    }

    /// Resizes to `len` bytes with unspecified contents. New memory is touched here, so that its page faults are not measured
    /// later.
    pub fn set_len(&mut self, len: usize) -> Result<()> {
        if self.memory.len() < self.from.saturating_add(len) {
            let too_large = |e: &dyn std::fmt::Display| {
                Error::new(ErrorKind::Io, "allocate buffer", format!("{len} bytes: {e}"))
                    .hint("use smaller extents or fewer ranks")
            };
            let total = len.checked_add(PAGE).ok_or_else(|| too_large(&"more than there are addresses"))?;
            self.memory = Vec::new();
            self.memory.try_reserve_exact(total).map_err(|e| too_large(&e))?;
            self.memory.resize(total, 0);
            self.from = self.memory.as_ptr().align_offset(PAGE).min(PAGE);
        }
        self.len = len;
        Ok(())
    }
}

impl Deref for PageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.from..self.from + self.len]
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.from..self.from + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_at_a_page_and_grows() -> Result<()> {
        let mut buffer = PageBuffer::default();
        assert!(buffer.is_empty());
        for len in [1, 100_000, 7, 100_000, 300_000, 0] {
            buffer.set_len(len)?;
            assert_eq!(buffer.len(), len);
            assert!(len == 0 || (buffer.as_ptr() as usize).is_multiple_of(PAGE));
            buffer.fill(1);
        }
        assert!(PageBuffer::new(usize::MAX).is_err() && PageBuffer::new(usize::MAX - PAGE).is_err());
        Ok(())
    }
}
