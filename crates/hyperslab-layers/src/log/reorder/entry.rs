//! Entries: the sort keys of requests.

use super::ReorderLimits;
use hyperslab_core::{Error, Result, Run, Selection};

/// Flag of a request without gaps.
pub(super) const CONTIGUOUS: u32 = 1;

/// The byte range of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Sequence number of the write; the larger wins.
    pub(super) number: u32,
    pub(super) form: u32,
}

impl Entry {
    /// The entry of request `number` for a selection; `None` if that is empty.
    pub fn new(number: u32, selection: &Selection, shape: &[u64], element: u64) -> Result<Option<Self>> {
        selection.check_inside(shape)?;
        hyperslab_core::dims::byte_count(shape, element)?;
        let range = selection.first_byte(shape, element).zip(selection.last_byte(shape, element));
        let Some((first, last)) = range else { return Ok(None) };
        let bytes = selection.len() * element;
        if last < first || last - first + 1 < bytes {
            return Err(Error::invalid("reorder", "a selection larger than its range"));
        }
        Ok(Some(Self { first, last, number, form: u32::from(last - first + 1 == bytes) }))
    }
}

impl Entry {
    /// Whether it lies within the limits.
    pub(super) fn is_inside(&self, limits: &ReorderLimits) -> bool {
        self.first >= limits.from && self.last < limits.to
    }

    /// The first and the last byte.
    pub fn range(&self) -> (u64, u64) {
        (self.first, self.last)
    }

    /// The number of the request.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The same entry with another number.
    pub fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// The entry of a contiguous request.
    pub fn contiguous(number: u32, first: u64, last: u64) -> Self {
        Self { first, last, number, form: CONTIGUOUS }
    }
}

/// Access to the requests, used only where they interleave.
pub trait Requests {
    /// The contiguous runs of a request in the array, in increasing order.
    fn runs(&self, number: u32) -> Result<Box<dyn Iterator<Item = Run> + '_>>;
}
