//! The storage order of an array: a linear byte range that is divided into domains.
//!
//! Without chunks it is the row-major order of the elements. With chunks it is chunk after chunk, row-major in the chunk
//! grid, and row-major inside each chunk; chunks at the edge keep their full length, of which a part is never used.

use hyperslab_core::{ArraySpec, ChunkGrid, Dims, Result, Selection, dims};
use std::ops::Range;

/// Maximum size of a chunk assembled in memory.
const LARGEST_CHUNK: u64 = 1 << 30;

/// The mapping of elements to storage order.
#[derive(Debug)]
pub(super) struct StorageOrder {
    pub element: u64,
    pub shape: Dims,
    /// The chunk grid, if any; chunks are clipped to the array.
    pub chunks: Option<ChunkGrid>,
    /// Length of a chunk, or of the whole array.
    pub frame_bytes: u64,
}

/// A box of the array that is contiguous in storage order: a chunk, or the whole array.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Its first element.
    pub origin: Dims,
    /// Extents that define element offsets.
    pub shape: Dims,
    /// Extents inside the array.
    pub inside: Dims,
}

impl StorageOrder {
    /// The storage order of an array; `None` if its chunks are too large to be assembled in memory, or exceed 2^63 bytes in
    /// total.
    pub fn new(spec: &ArraySpec) -> Result<Option<Self>> {
        let element = spec.dtype.size();
        let shape = spec.shape.clone();
        let total = dims::byte_count(&shape, element)?;
        // An empty array has no chunks and nothing to transfer.
        let Some(chunk) = spec.chunk.as_ref().filter(|_| total > 0) else {
            return Ok(Some(Self { element, shape, chunks: None, frame_bytes: total }));
        };
        let frame: Dims = chunk.iter().zip(&shape).map(|(chunk, extent)| *chunk.min(extent)).collect();
        let grid = ChunkGrid::new(&shape, &frame)?;
        let frame_bytes = dims::byte_count(&frame, element)?;
        let line = frame_bytes.checked_mul(grid.len()).filter(|line| *line <= i64::MAX as u64);
        let fits = frame_bytes <= LARGEST_CHUNK && line.is_some();
        Ok(fits.then_some(Self { element, shape, chunks: Some(grid), frame_bytes }))
    }

    /// Indivisible length of domains.
    pub fn grain(&self) -> u64 {
        if self.chunks.is_some() { self.frame_bytes } else { self.element }
    }

    /// Extents that define element offsets within a frame.
    pub fn frame_shape(&self) -> &[u64] {
        self.chunks.as_ref().map_or(&self.shape, ChunkGrid::chunk)
    }

    /// First to last byte of a selection inside the array, in whole chunks; `None` if it is empty.
    pub fn range(&self, selection: &Selection) -> Result<Option<Range<u64>>> {
        let Some(grid) = &self.chunks else {
            let ends =
                selection.first_byte(&self.shape, self.element).zip(selection.last_byte(&self.shape, self.element));
            return Ok(ends.map(|(first, last)| first..last + 1));
        };
        let mut range: Option<Range<u64>> = None;
        for slab in selection.slabs() {
            let last: Dims = slab.end().iter().map(|end| end - 1).collect();
            let first = grid.linear(&grid.chunk_of(&slab.start())?)? * self.frame_bytes;
            let end = (grid.linear(&grid.chunk_of(&last)?)? + 1) * self.frame_bytes;
            let known = range.unwrap_or(first..end);
            range = Some(known.start.min(first)..known.end.max(end));
        }
        Ok(range)
    }

    /// The frame that begins at a multiple of `frame_bytes`.
    pub fn frame(&self, number: u64) -> Result<Frame> {
        let Some(grid) = &self.chunks else {
            let origin = Dims::from_elem(0, self.shape.len());
            return Ok(Frame { origin, shape: self.shape.clone(), inside: self.shape.clone() });
        };
        let chunk = grid.coordinates(number)?;
        Ok(Frame { origin: grid.origin(&chunk)?, shape: grid.chunk().into(), inside: grid.extent(&chunk)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::Datatype;

    fn order(shape: &[u64], chunk: Option<&[u64]>) -> Option<StorageOrder> {
        let spec = ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(Datatype::F64, shape) };
        StorageOrder::new(&spec).unwrap()
    }

    #[test]
    fn ranges_are_bytes_or_whole_chunks() {
        let part = Selection::dense(&[1, 2], &[2, 2]).unwrap();
        let plain = order(&[4, 6], None).unwrap();
        assert_eq!(plain.range(&part).unwrap(), Some(64..128));
        assert_eq!(plain.range(&Selection::empty(2)).unwrap(), None);
        let chunked = order(&[4, 6], Some(&[2, 4])).unwrap();
        assert_eq!((chunked.grain(), chunked.range(&part).unwrap()), (64, Some(0..192)), "chunks 0 to 2");
        let edge = chunked.frame(3).unwrap();
        assert_eq!((edge.origin.as_slice(), edge.shape.as_slice(), edge.inside.as_slice()), {
            ([2, 4].as_slice(), [2, 4].as_slice(), [2, 2].as_slice())
        });
        let larger = order(&[4, 6], Some(&[1 << 40, 3])).unwrap();
        assert_eq!(larger.frame_bytes, 4 * 3 * 8, "cut to the array");
        assert!(order(&[0, 6], Some(&[2, 2])).unwrap().chunks.is_none());
    }

    #[test]
    fn what_does_not_fit_in_memory_is_left_to_the_format() {
        assert!(order(&[1 << 30, 8], Some(&[1 << 29, 1])).is_none());
        assert!(order(&[(1 << 29) + 1, (1 << 29) + 1], Some(&[1 << 26, 1])).is_some());
        assert!(order(&[(1 << 30) - 1, (1 << 29) + 1], Some(&[1 << 14, 1 << 10])).is_some());
    }
}
