//! Block geometry: the division of an array into blocks.

use super::block::charge;
use super::options::BlockSize;
use hyperslab_core::{ArraySpec, ChunkGrid, Datatype, Dims, Result, Selection, Slab, dims};

/// Default block size in bytes.
const USUAL_BLOCK: u64 = 256 << 10;
/// Divisors of the budget: maximum size of any block, and of blocks of default size.
const LARGEST_SHARE: u64 = 4;
const USUAL_SHARE: u64 = 16;
/// Divisors of the minimum part of a block for which it is read whole: if the array fits in memory, and otherwise.
const WHOLE_FROM: u64 = 16;
const WHOLE_FROM_SCARCE: u64 = 2;

/// The blocks of an array of one shape.
#[derive(Debug)]
pub(super) struct Geometry {
    /// Unique number, so that blocks of an earlier shape are never found.
    pub id: u64,
    pub spec: ArraySpec,
    pub grid: ChunkGrid,
    /// Size of a block in bytes, including padding outside the array.
    pub block_bytes: u64,
    /// Bytes counted for a block.
    pub charge: u64,
    /// Divisor of the minimum part for which a block is read whole.
    whole_from: u64,
}

impl Geometry {
    /// The geometry of an array; `None` if blocks would be too large for `budget` bytes.
    pub fn new(id: u64, spec: ArraySpec, wish: &BlockSize, budget: u64) -> Result<Option<Self>> {
        let element = spec.dtype.size();
        let block = block_shape(&spec, wish, budget);
        let Ok(block_bytes) = dims::byte_count(&block, element) else { return Ok(None) };
        let charge = charge(block_bytes);
        if element == 0 || charge > budget / LARGEST_SHARE {
            return Ok(None);
        }
        let grid = ChunkGrid::new(&spec.shape, &block)?;
        let all = grid.len().saturating_mul(charge);
        let whole_from = match (spec.filters.is_empty(), all <= budget) {
            // Filtered chunks are read and decoded whole for any part of them.
            (false, _) => u64::MAX,
            (true, true) => WHOLE_FROM,
            (true, false) => WHOLE_FROM_SCARCE,
        };
        Ok(Some(Self { id, spec, grid, block_bytes, charge, whole_from }))
    }

    pub fn element(&self) -> u64 {
        self.spec.dtype.size()
    }

    pub fn dtype(&self) -> &Datatype {
        &self.spec.dtype
    }

    /// Whether a first request of `elements` of a block is large enough to read all of it.
    pub fn is_worth_whole(&self, elements: u64) -> bool {
        let bytes = elements.saturating_mul(self.element());
        bytes.saturating_mul(self.whole_from) >= self.block_bytes
    }

    /// The row-major number of the block at these coordinates.
    pub fn number(&self, block: &[u64]) -> u64 {
        block.iter().zip(self.grid.counts()).fold(0, |at, (c, n)| at * n + c)
    }

    /// The blocks that overlap the bounding box of a slab, clipped to the array. `None` if it is outside.
    pub fn range(&self, slab: &Slab) -> Option<Range> {
        let mut range = Range { first: Dims::new(), last: Dims::new() };
        for ((span, block), count) in slab.ranges().iter().zip(self.grid.chunk()).zip(self.grid.counts()) {
            let (first, last) = (span.start() / block, (span.end() - 1) / block);
            if first >= *count {
                return None;
            }
            range.first.push(first);
            range.last.push(last.min(count - 1));
        }
        (range.first.len() == self.grid.rank()).then_some(range)
    }

    /// Upper bound of the number of blocks that overlap the selection.
    pub fn touched(&self, selection: &Selection) -> u64 {
        selection
            .slabs()
            .iter()
            .filter_map(|slab| self.range(slab))
            .fold(0, |sum, range| sum.saturating_add(range.len()))
    }
}

/// A box of blocks.
#[derive(Debug)]
pub(super) struct Range {
    pub first: Dims,
    pub last: Dims,
}

impl Range {
    pub fn len(&self) -> u64 {
        self.first.iter().zip(&self.last).fold(1, |all: u64, (first, last)| all.saturating_mul(last - first + 1))
    }

    pub fn contains(&self, block: &[u64]) -> bool {
        block.iter().zip(self.first.iter().zip(&self.last)).all(|(at, (first, last))| (first..=last).contains(&at))
    }

    /// Whether `holds` for every block; evaluated in row-major order until it fails.
    pub fn all(&self, mut holds: impl FnMut(&[u64]) -> bool) -> bool {
        let mut at = self.first.clone();
        loop {
            if !holds(&at) {
                return false;
            }
            let Some(d) = (0..at.len()).rev().find(|&d| at[d] < self.last[d]) else { return true };
            at[d] += 1;
            at[d + 1..].copy_from_slice(&self.first[d + 1..]);
        }
    }

    /// Calls `each` with every block in row-major order.
    pub fn for_each(&self, mut each: impl FnMut(&[u64])) {
        self.all(|block| {
            each(block);
            true
        });
    }
}

/// The chunk of the array, or the option `block`, or whole rows up to the default size; never larger than the array.
fn block_shape(spec: &ArraySpec, wish: &BlockSize, budget: u64) -> Dims {
    let within = |block: &Dims| block.iter().zip(&spec.shape).map(|(b, s)| (*b).min(*s).max(1)).collect();
    match (&spec.chunk, wish) {
        (Some(chunk), _) => within(chunk),
        (None, BlockSize::Shape(shape)) if shape.len() == spec.shape.len() => within(shape),
        (None, BlockSize::Bytes(bytes)) => rows(spec, *bytes),
        (None, _) => rows(spec, USUAL_BLOCK.min(budget / USUAL_SHARE)),
    }
}

/// Whole fastest dimensions up to `target` bytes, and equal parts of the next.
fn rows(spec: &ArraySpec, target: u64) -> Dims {
    let mut block = Dims::from_elem(1, spec.shape.len());
    let mut bytes = spec.dtype.size().max(1);
    for (d, &extent) in spec.shape.iter().enumerate().rev() {
        let fits = (target / bytes).max(1);
        if extent > fits {
            // The slowest dimension may grow and its last block may be short; others are divided evenly.
            block[d] = if d == 0 { fits } else { extent.div_ceil(extent.div_ceil(fits)) };
            break;
        }
        block[d] = extent.max(1);
        bytes = bytes.saturating_mul(block[d]);
    }
    block
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn block(shape: &[u64], chunk: Option<&[u64]>, wish: BlockSize, budget: u64) -> Vec<u64> {
        let spec = ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(Datatype::F32, shape) };
        block_shape(&spec, &wish, budget).to_vec()
    }

    #[test]
    fn blocks_are_chunks_or_rows() {
        let (auto, much) = (BlockSize::Usual, 1 << 30);
        assert_eq!(block(&[1000, 64, 64], Some(&[8, 8, 8]), auto.clone(), much), [8, 8, 8]);
        assert_eq!(block(&[4, 0], Some(&[8, 8]), auto.clone(), much), [4, 1], "no larger than the array");
        assert_eq!(block(&[1000, 64, 64], None, auto.clone(), much), [16, 64, 64]);
        assert_eq!(block(&[1000, 300, 512], None, auto.clone(), much), [1, 100, 512], "even parts");
        assert_eq!(block(&[1 << 40], None, auto.clone(), much), [1 << 16]);
        assert_eq!(block(&[9, 9], None, auto.clone(), 4096), [7, 9], "small budgets have small blocks");
        assert_eq!(block(&[], None, auto, much), [] as [u64; 0]);
        assert_eq!(block(&[100, 100], None, BlockSize::Bytes(4096), much), [10, 100]);
        let shape = BlockSize::Shape([10, 20][..].into());
        assert_eq!(block(&[100, 100], None, shape.clone(), much), [10, 20]);
        assert_eq!(block(&[100], None, shape, much), [100], "of another number of dimensions");
    }

    #[test]
    fn ranges_hold_the_blocks_of_a_slab() {
        let spec = ArraySpec { chunk: Some([4, 5][..].into()), ..ArraySpec::new(Datatype::U8, &[10, 20]) };
        let geometry = Geometry::new(1, spec, &BlockSize::Usual, 1 << 20).unwrap().unwrap();
        let slab = Slab::dense(&[3, 5], &[2, 6]).unwrap().unwrap();
        let range = geometry.range(&slab).unwrap();
        let mut numbers = Vec::new();
        range.for_each(|block| numbers.push(geometry.number(block)));
        assert_eq!((numbers, range.len()), (vec![1, 2, 5, 6], 4));
        assert!(range.contains(&[1, 2]) && !range.contains(&[2, 1]));
        assert!(geometry.range(&Slab::dense(&[12, 0], &[1, 1]).unwrap().unwrap()).is_none());
        assert!(geometry.range(&Slab::dense(&[0], &[1]).unwrap().unwrap()).is_none());
    }

    #[test]
    fn large_blocks_are_not_kept() {
        let spec = ArraySpec { chunk: Some([1 << 20][..].into()), ..ArraySpec::new(Datatype::U8, &[1 << 30]) };
        let kept = |budget| Geometry::new(1, spec.clone(), &BlockSize::Usual, budget).unwrap().is_some();
        assert!(kept(5 << 20) && !kept(4 << 20));
        let geometry = Geometry::new(1, spec.clone(), &BlockSize::Usual, 5 << 20).unwrap().unwrap();
        assert!(geometry.is_worth_whole(1 << 19) && !geometry.is_worth_whole((1 << 19) - 1));
        let geometry = Geometry::new(1, spec, &BlockSize::Usual, 2 << 30).unwrap().unwrap();
        assert!(geometry.is_worth_whole(1 << 16) && !geometry.is_worth_whole((1 << 16) - 1));
    }
}
