//! A buffer that several threads fill concurrently.

use crate::Row;
use crate::copy::strided_copy::{Through, copy_rows_shared};
use std::marker::PhantomData;
use std::ops::Range;

/// A uniquely borrowed buffer that several threads write to concurrently, each to disjoint bytes.
#[derive(Debug, Clone, Copy)]
pub struct DisjointWriteBuffer<'a> {
    start: *mut u8,
    len: usize,
    borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: writing through it is unsafe, and the writer promises that no other thread accesses the same bytes.
unsafe impl Send for DisjointWriteBuffer<'_> {}
// SAFETY: as above.
unsafe impl Sync for DisjointWriteBuffer<'_> {}

impl<'a> DisjointWriteBuffer<'a> {
    /// Wraps a buffer.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { start: bytes.as_mut_ptr(), len: bytes.len(), borrowed: PhantomData }
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Part of the buffer; panics if it lies outside.
    ///
    /// # Safety
    /// Nobody else may access these bytes while the result is in use.
    pub unsafe fn slice(&self, range: Range<usize>) -> &'a mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len, "a range exceeds its buffer");
        // SAFETY: inside the buffer, as just checked, and nobody else's, as the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.end - range.start) }
    }

    /// Copies rows of equal length and count to this buffer; panics if one lies outside its buffer.
    ///
    /// # Safety
    /// Nobody else may access the bytes of the row `to` meanwhile.
    pub unsafe fn copy_rows(&self, to: Row, source: &[u8], from: Row) {
        // SAFETY: as the caller promises.
        unsafe { copy_rows_shared(source, from, *self, to, Through::Cache) }
    }
}
