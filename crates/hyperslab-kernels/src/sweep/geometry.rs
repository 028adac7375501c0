//! Where a rank's elements lie in memory and in the file.

use super::{Sweep, invalid, product};
use hyperslab_core::{Dims, MemoryLayout, Result, Selection, dims};

/// Blocks along one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stripes {
    pub stride: u64,
    pub count: u64,
    pub block: u64,
}

impl Stripes {
    /// `elements` in blocks of `block`, `stride` apart; in one block if that does not come out even.
    fn new(elements: u64, block: u64, stride: u64) -> Self {
        if block == 0 || !elements.is_multiple_of(block) {
            return Self { stride: elements, count: 1, block: elements };
        }
        Self { stride: stride.max(block), count: elements / block, block }
    }

    /// Elements from the first block to the end of the last gap; `None` beyond 2^64.
    fn extent(self) -> Option<u64> {
        self.stride.checked_mul(self.count)
    }
}

impl Sweep {
    /// The blocks of one rank in the file, by dimension.
    pub(super) fn file_stripes(&self) -> impl Iterator<Item = Stripes> + '_ {
        let spacing = self.file_blocks.iter().zip(&self.file_strides);
        self.extent.iter().zip(spacing).map(|(extent, (block, stride))| Stripes::new(*extent, *block, *stride))
    }

    /// Extents of one rank's part of the file, gaps included.
    fn file_part(&self) -> Result<Dims> {
        let parts = self.file_stripes().map(Stripes::extent).collect::<Option<_>>();
        parts.ok_or_else(|| invalid("a rank's part of the file has an extent beyond 2^64").hint("use smaller strides"))
    }

    /// Extents of the dataset of doubles.
    pub(super) fn file_shape(&self) -> Result<Dims> {
        self.repeated(&self.file_part()?)
    }

    /// Extents of the dataset of compounds.
    pub(super) fn derived_shape(&self) -> Result<Dims> {
        self.repeated(&self.extent)
    }

    /// A rank's part, as often in each dimension as there are ranks.
    fn repeated(&self, part: &[u64]) -> Result<Dims> {
        let extents = part.iter().zip(&self.grid).map(|(extent, ranks)| extent.checked_mul(*ranks));
        extents.collect::<Option<_>>().ok_or_else(|| {
            invalid(format!("{} on each of {} ranks exceeds 2^64", dims::display(part), self.ranks))
                .hint("use smaller extents or strides")
        })
    }

    /// The doubles of the rank `shifts` shifts after `rank`.
    pub(super) fn doubles_of(&self, rank: usize, shifts: u64) -> Result<Selection> {
        let part = self.file_part()?;
        let start: Dims = self.place_of(rank, shifts).iter().zip(&part).map(|(place, extent)| place * extent).collect();
        let by = |of: fn(Stripes) -> u64| self.file_stripes().map(of).collect::<Dims>();
        Selection::strided(&start, &by(|s| s.stride), &by(|s| s.count), &by(|s| s.block))
    }

    /// The compounds of `rank`.
    pub(super) fn compounds_of(&self, rank: usize) -> Result<Selection> {
        let place = self.place_of(rank, 0);
        let start: Dims = place.iter().zip(&self.extent).map(|(place, extent)| place * extent).collect();
        Selection::dense(&start, &self.extent)
    }

    /// The place in the process grid of the rank `shifts` shifts after `rank`; the last dimension varies fastest.
    fn place_of(&self, rank: usize, shifts: u64) -> Dims {
        let ranks = self.ranks as u128;
        let shifted = (rank as u128 + u128::from(self.shift) * u128::from(shifts)) % ranks;
        let mut left = shifted as u64;
        let mut place: Dims = self
            .grid
            .iter()
            .rev()
            .map(|ranks| {
                let here = left % ranks;
                left /= ranks;
                here
            })
            .collect();
        place.reverse();
        place
    }

    /// Doubles of a rank's buffer, gaps included.
    pub(super) fn memory_elements(&self) -> Result<u64> {
        self.memory_stripes()?
            .extent()
            .ok_or_else(|| invalid("a buffer has more than 2^64 elements").hint("use a smaller stride in memory"))
    }

    fn memory_stripes(&self) -> Result<Stripes> {
        let elements = product(&self.extent).ok_or_else(|| invalid("a rank has more than 2^64 elements"))?;
        Ok(Stripes::new(elements, self.memory_block, self.memory_stride))
    }

    /// How the doubles lie in memory.
    pub(super) fn memory(&self) -> Result<MemoryLayout> {
        let Stripes { stride, count, block } = self.memory_stripes()?;
        if stride == block {
            return Ok(MemoryLayout::packed());
        }
        let blocks = Selection::strided(&[0], &[stride], &[count], &[block])?;
        Ok(MemoryLayout::strided(&[self.memory_elements()?], blocks))
    }
}
