//! Selections of contiguous byte ranges.

use crate::twophase::range_to_slabs;
use hyperslab_core::{Error, Result, Selection, dims};

/// The elements of bytes `offset..offset + len` of a row-major array, a range of whole elements. At most two slabs per
/// dimension.
pub fn selection_of(shape: &[u64], element: u64, offset: u64, len: u64) -> Result<Selection> {
    let bytes = dims::byte_count(shape, element)?;
    let bad =
        || Error::invalid("reorder", format!("{len} bytes at {offset} are no elements of {}", dims::display(shape)));
    if element == 0
        || !offset.is_multiple_of(element)
        || !len.is_multiple_of(element)
        || offset.checked_add(len).is_none_or(|end| end > bytes)
    {
        return Err(bad());
    }
    let mut slabs = Vec::new();
    range_to_slabs(offset / element..(offset + len) / element, shape, |slab, _| {
        slabs.push(slab);
        Ok(())
    })?;
    Selection::union(shape.len(), slabs)
}
