//! Memory of blocks, and the budget it counts towards.

use hyperslab_core::{PageBuffer, Result};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes counted for a block besides its data: tables, lists and allocator overhead.
pub(super) const BOOKKEEPING: u64 = 256;
/// Minimum size of page-aligned blocks; smaller ones would waste memory.
const PAGED_FROM: u64 = 64 << 10;
const PAGE: u64 = 4096;

/// Bytes counted for a block of `bytes`.
pub(super) fn charge(bytes: u64) -> u64 {
    bytes.saturating_add(BOOKKEEPING + if bytes < PAGED_FROM { 0 } else { PAGE })
}

/// A memory budget: limit, use and peak.
#[derive(Debug)]
pub(super) struct Budget {
    pub limit: u64,
    used: AtomicU64,
    /// Peak use.
    peak: AtomicU64,
}

impl Budget {
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0), peak: AtomicU64::new(0) })
    }

    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether so many more fit now.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(bytes) <= self.limit
    }

    /// Takes so many bytes, if they are there.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Charge> {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let before = self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits).ok()?;
        self.peak.fetch_max(before + bytes, Ordering::Relaxed);
        Some(Charge { budget: self.clone(), bytes })
    }
}

/// Bytes of a budget; given back when this is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// The elements of a block, row-major in the shape of a whole one. Whoever still copies from it keeps it, and its charge.
#[derive(Debug)]
pub(super) struct Block {
    memory: Memory,
    _charge: Charge,
}

#[derive(Debug)]
enum Memory {
    Small(Vec<u8>),
    Paged(PageBuffer),
}

impl Block {
    /// A block of `bytes` zeros.
    pub fn new(bytes: u64, charge: Charge) -> Result<Self> {
        // What exceeds the memory is refused by PageBuffer, whatever the target.
        let len = usize::try_from(bytes).unwrap_or(usize::MAX);
        let memory =
            if bytes < PAGED_FROM { Memory::Small(vec![0; len]) } else { Memory::Paged(PageBuffer::new(len)?) };
        Ok(Self { memory, _charge: charge })
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Small(bytes) => bytes,
            Memory::Paged(bytes) => bytes,
        }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Small(bytes) => bytes,
            Memory::Paged(bytes) => bytes,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn charges_are_given_back() {
        let budget = Budget::new(1000);
        let first = budget.take(600).unwrap();
        assert!(budget.take(401).is_none() && budget.has_room(400) && !budget.has_room(401));
        let block = Block::new(100, budget.take(400).unwrap()).unwrap();
        assert_eq!((block.len(), budget.used(), budget.peak()), (100, 1000, 1000));
        drop((first, block));
        assert_eq!((budget.used(), budget.peak()), (0, 1000));
        assert!(budget.take(u64::MAX).is_none());
    }
}
