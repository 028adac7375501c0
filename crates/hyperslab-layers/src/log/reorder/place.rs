//! Contiguous bytes of an array as a selection.

use hyperslab_core::{Dims, Error, Result, Selection, Slab, dims};

/// The elements of the bytes `offset..offset + len` of a row-major array, which begin and end between elements. At most two
/// slabs per dimension.
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
    let (mut at, end) = (offset / element, (offset + len) / element);
    let pitches = dims::pitches(shape);
    let mut slabs = Vec::new();
    while at < end {
        // The coarsest dimension in which whole steps fit from here.
        let fits = |pitch: u64| at % pitch == 0 && end - at >= pitch;
        let dim = (0..shape.len()).find(|dim| fits(pitches[*dim]));
        let Some(dim) = dim else {
            slabs.extend(Slab::dense(&[], &[])?);
            break;
        };
        let mut rest = at;
        let mut start: Dims = Dims::new();
        for pitch in &pitches {
            start.push(rest / pitch);
            rest %= pitch;
        }
        let steps = ((end - at) / pitches[dim]).min(shape[dim] - start[dim]);
        let mut count: Dims = shape.iter().enumerate().map(|(d, extent)| if d < dim { 1 } else { *extent }).collect();
        count[dim] = steps;
        slabs.extend(Slab::dense(&start, &count)?);
        at += steps * pitches[dim];
    }
    Selection::union(shape.len(), slabs)
}
