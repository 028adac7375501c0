//! Partition of an array into blocks of whole chunks, for ranks that share work on it.

use hyperslab_core::{ArraySpec, ChunkGrid, Dims, Result, Selection};

/// Blocks of whole chunks: different blocks never share a chunk.
#[derive(Debug, Clone)]
pub struct ChunkBlocks(ChunkGrid);

impl ChunkBlocks {
    /// Blocks of about `bytes` bytes, at least one chunk.
    pub fn new(spec: &ArraySpec, bytes: u64) -> Result<Self> {
        let chunk = spec.chunk.clone().unwrap_or_else(|| Dims::from_elem(1, spec.shape.len()));
        let mut block: Dims =
            chunk.iter().zip(&spec.shape).map(|(chunk, extent)| (*chunk).min(*extent).max(1)).collect();
        // Fastest dimension first, so that blocks consist of long rows.
        for dim in (0..block.len()).rev() {
            let other: u128 =
                block.iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, n)| u128::from(*n)).product();
            let row = (other * u128::from(spec.dtype.size()) * u128::from(block[dim])).max(1);
            let times = (u128::from(bytes) / row).clamp(1, u128::from(u64::MAX)) as u64;
            block[dim] = block[dim].saturating_mul(times).min(spec.shape[dim].max(1));
            if block[dim] < spec.shape[dim] {
                break;
            }
        }
        Ok(Self(ChunkGrid::new(&spec.shape, &block)?))
    }

    /// Number of blocks.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.len() }
    }

    /// Extents of a whole block.
    pub fn extents(&self) -> &[u64] {
        self.0.chunk()
    }

    /// Calls `each` with the number of each block that a box touches.
    pub fn each_touching(&self, low: &[u64], high: &[u64], mut each: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let first: Dims = low.iter().zip(self.extents()).map(|(low, block)| low / block).collect();
        let count: Dims = high.iter().zip(self.extents()).zip(&first).map(|((h, b), f)| h.div_ceil(*b) - f).collect();
        for number in 0..hyperslab_core::dims::element_count(&count)? {
            let mut rest = number;
            let mut at = first.clone();
            for dim in (0..at.len()).rev() {
                at[dim] += rest % count[dim];
                rest /= count[dim];
            }
            each(self.0.linear(&at)?)?;
        }
        Ok(())
    }

    /// Calls `each` with consecutive parts of a block of at most `most` elements, but at least one.
    pub fn each_piece(&self, number: u64, most: u64, mut each: impl FnMut(&Selection) -> Result<()>) -> Result<()> {
        self.block(number)?.for_each_part(most, &mut each)
    }

    /// The elements of block `number`.
    pub fn block(&self, number: u64) -> Result<Selection> {
        let at = self.0.coordinates(number)?;
        Selection::dense(&self.0.origin(&at)?, &self.0.extent(&at)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Datatype;

    #[test]
    fn blocks_tile_the_array_along_chunks() {
        for (shape, chunk, bytes) in [
            (&[10, 7, 5][..], Some(&[3, 2, 5][..]), 200),
            (&[10, 7, 5], Some(&[3, 2, 2]), 30),
            (&[10, 7, 5], None, 100),
            (&[10, 7, 5], None, 1),
            (&[4, 1000], Some(&[4, 1000]), 10),
            (&[3], Some(&[100]), 10),
            (&[100], None, 1 << 30),
            (&[], None, 1),
            (&[0, 5], None, 100),
        ] {
            let spec = ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(Datatype::I32, shape) };
            let blocks = ChunkBlocks::new(&spec, bytes).unwrap();
            let all: Vec<Selection> = (0..blocks.len()).map(|number| blocks.block(number).unwrap()).collect();
            let elements: u64 = all.iter().map(Selection::len).sum();
            let union =
                Selection::union(shape.len(), all.iter().flat_map(|block| block.slabs().iter().cloned())).unwrap();
            assert_eq!((elements, &union), (union.len(), &Selection::all(shape).unwrap()), "{shape:?}");
            for block in all.iter().filter(|_| chunk.is_some()) {
                let (low, high) = block.bounds().unwrap();
                for (d, chunk) in chunk.unwrap().iter().enumerate() {
                    assert!(low[d] % chunk == 0 && (high[d] % chunk == 0 || high[d] == shape[d]), "{block:?}");
                }
            }
            if chunk.is_none() {
                assert!(all.iter().all(|block| block.len() * 4 <= bytes.max(4)));
            }
        }
    }
}
