//! What sorting needs to know of a request.

use super::Limits;
use hyperslab_core::{Error, Result, Run, Selection};

/// The form of a request without gaps.
pub(super) const CONTIGUOUS: u32 = 1;

/// The range of bytes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Its place in the order of writes: the larger wins.
    pub(super) number: u32,
    pub(super) form: u32,
}

impl Entry {
    /// Request `number`, which writes these elements of an array. `None` if there are none.
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
    /// Whether all its bytes are wanted.
    pub(super) fn is_inside(&self, limits: &Limits) -> bool {
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

    /// The same as request `number`.
    pub fn numbered(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// Request `number`, which writes all bytes from `first` to `last`.
    pub fn contiguous(number: u32, first: u64, last: u64) -> Self {
        Self { first, last, number, form: CONTIGUOUS }
    }
}

/// The requests themselves, asked only where they interleave.
pub trait Requests {
    /// The contiguous bytes of a request in the array, rising.
    fn runs(&self, number: u32) -> Result<Box<dyn Iterator<Item = Run> + '_>>;
}
