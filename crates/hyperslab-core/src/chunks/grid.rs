//! The chunk grid of an array: chunk coordinates, extents and linear numbers.

use crate::dims::{self, display};
use crate::{Dims, Error, Result};

/// The grid of an array of `shape` in chunks of `chunk` elements; edge chunks may extend beyond the array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChunkGrid {
    shape: Dims,
    chunk: Dims,
    counts: Dims,
}

impl ChunkGrid {
    /// Refuses mismatched numbers of dimensions, zero chunk extents, and extents whose product overflows.
    pub fn new(shape: &[u64], chunk: &[u64]) -> Result<Self> {
        let bad = |message: String| Error::invalid("check chunks", message);
        if shape.len() != chunk.len() {
            return Err(bad(format!("the array is {}, the chunk {}", display(shape), display(chunk))));
        }
        if chunk.contains(&0) {
            return Err(bad(format!("a chunk extent is 0 in {}", display(chunk))));
        }
        dims::element_count(shape)?;
        dims::element_count(chunk)?;
        let counts: Dims = shape.iter().zip(chunk).map(|(s, c)| s.div_ceil(*c)).collect();
        Ok(Self { shape: shape.into(), chunk: chunk.into(), counts })
    }

    /// Extents of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Extents of a whole chunk.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of chunks along each dimension.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of chunks; 1 for a scalar.
    pub fn len(&self) -> u64 {
        // At most the number of elements, which fits.
        self.counts.iter().product()
    }

    /// Whether the array has no element, and so no chunk.
    pub fn is_empty(&self) -> bool {
        self.counts.contains(&0)
    }

    /// The chunk that holds the element at `index`.
    pub fn chunk_of(&self, index: &[u64]) -> Result<Dims> {
        if index.len() != self.rank() || index.iter().zip(&self.shape).any(|(i, extent)| i >= extent) {
            return Err(outside("element", index, &self.shape));
        }
        Ok(index.iter().zip(&self.chunk).map(|(i, c)| i / c).collect())
    }

    /// The first element of a chunk.
    pub fn origin(&self, chunk: &[u64]) -> Result<Dims> {
        self.check(chunk)?;
        Ok(self.origin_of(chunk))
    }

    /// Extents of a chunk, clipped to the array.
    pub fn extent(&self, chunk: &[u64]) -> Result<Dims> {
        self.check(chunk)?;
        Ok(self.extent_of(chunk))
    }

    /// The linear number of a chunk, row-major.
    pub fn linear(&self, chunk: &[u64]) -> Result<u64> {
        self.check(chunk)?;
        Ok(self.linear_of(chunk))
    }

    /// The coordinates of a linear chunk number, row-major.
    pub fn coordinates(&self, linear: u64) -> Result<Dims> {
        if self.is_empty() || linear >= self.len() {
            return Err(Error::invalid("check chunks", format!("there is no chunk {linear}, only {}", self.len())));
        }
        Ok(self.coordinates_of(linear))
    }

    fn check(&self, chunk: &[u64]) -> Result<()> {
        if chunk.len() != self.rank() || chunk.iter().zip(&self.counts).any(|(c, n)| c >= n) {
            return Err(outside("chunk", chunk, &self.counts));
        }
        Ok(())
    }

    pub(super) fn origin_of(&self, chunk: &[u64]) -> Dims {
        chunk.iter().zip(&self.chunk).map(|(c, extent)| c * extent).collect()
    }

    pub(super) fn extent_of(&self, chunk: &[u64]) -> Dims {
        (0..self.rank()).map(|d| self.chunk[d].min(self.shape[d] - chunk[d] * self.chunk[d])).collect()
    }

    pub(super) fn linear_of(&self, chunk: &[u64]) -> u64 {
        chunk.iter().zip(&self.counts).fold(0, |at, (c, n)| at * n + c)
    }

    pub(super) fn coordinates_of(&self, mut linear: u64) -> Dims {
        let mut out: Dims = self
            .counts
            .iter()
            .rev()
            .map(|n| {
                let c = linear % n;
                linear /= n;
                c
            })
            .collect();
        out.reverse();
        out
    }
}

fn outside(what: &str, index: &[u64], extents: &[u64]) -> Error {
    Error::invalid("check chunks", format!("{what} {index:?} is outside {}", display(extents)))
}
