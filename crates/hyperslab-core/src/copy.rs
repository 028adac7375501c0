//! Gather and scatter between a [`MemoryView`] and packed elements, incrementally.

pub(crate) mod cursor;
mod element_map;
mod nontemporal;
pub(crate) mod strided_copy;
mod transfer;

use crate::{Datatype, DisjointWriteBuffer, MemoryView, MemoryViewMut, Result, Row};
pub use element_map::ElementMap;
use transfer::{Elements, IntoPacked, OutOfPacked};

/// Gathers the elements of a view into packed buffers, in order, one buffer at a time.
pub struct Gather<'a> {
    data: &'a [u8],
    elements: Elements<'a>,
}

/// Scatters packed elements into a view, in order, one buffer at a time.
pub struct Scatter<'a> {
    data: &'a mut [u8],
    elements: Elements<'a>,
}

impl<'a> Gather<'a> {
    /// Checks the view against `elements` elements of `dtype`.
    pub fn new(view: MemoryView<'a>, dtype: &Datatype, elements: u64) -> Result<Self> {
        view.check(dtype, elements)?;
        Ok(Self { data: view.data, elements: Elements::new(view.layout, dtype, elements)? })
    }

    /// Fills `packed`, whose length is a multiple of the element size, with the next elements.
    /// Bytes of elements that no field covers are not changed. Returns the number of elements.
    pub fn next_into(&mut self, packed: &mut [u8]) -> usize {
        let limit = packed.len();
        self.elements.transfer(limit, &mut IntoPacked { data: self.data, packed })
    }
}

impl<'a> Scatter<'a> {
    /// Checks the view against `elements` elements of `dtype`.
    pub fn new(view: MemoryViewMut<'a>, dtype: &Datatype, elements: u64) -> Result<Self> {
        view.check(dtype, elements)?;
        Ok(Self { data: view.data, elements: Elements::new(view.layout, dtype, elements)? })
    }

    /// Stores the next packed elements. Returns their number.
    pub fn next_from(&mut self, packed: &[u8]) -> usize {
        // SAFETY: the memory is borrowed uniquely.
        let mut direction = unsafe { OutOfPacked::new(DisjointWriteBuffer::new(self.data), packed) };
        self.elements.transfer(packed.len(), &mut direction)
    }
}

/// Copies rows of equal length and count from one buffer to another; panics if one lies outside its buffer.
pub fn copy_rows(source: &[u8], from: Row, target: &mut [u8], to: Row) {
    strided_copy::copy_rows(source, from, target, to, strided_copy::Through::Cache);
}
