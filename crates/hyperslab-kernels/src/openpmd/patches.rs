//! Which mini-blocks a rank has.

use super::OpenPmd;
use hyperslab_core::{Dims, Error, Result, Selection, Slab};

/// Equal boxes of mini-blocks, one for each rank, in row-major order.
#[derive(Debug, Clone)]
pub struct Patches {
    /// Mini-blocks of a patch along each dimension.
    pub patch: Dims,
    grid: Dims,
    block: Dims,
    ranks: u64,
    balanced: bool,
}

impl Patches {
    /// The first form of patch that fits the number of ranks, tried in the order of the benchmark.
    pub fn new(kernel: &OpenPmd) -> Result<Self> {
        let (grid, ranks) = (&kernel.grid, kernel.ranks as u64);
        let blocks: u64 = grid.iter().product();
        let each = blocks / ranks;
        let fits = |patch: &Dims| {
            patch.iter().zip(grid).all(|(part, whole)| *part > 0 && whole.is_multiple_of(*part))
                && patch.iter().product::<u64>().checked_mul(ranks) == Some(blocks)
        };
        let with = |axis: usize, extent: u64, others: &dyn Fn(usize) -> u64| -> Dims {
            (0..grid.len()).map(|d| if d == axis { extent } else { others(d) }).collect()
        };
        let mut forms: Vec<Dims> =
            (0..grid.len().min(2)).map(|axis| with(axis, grid[axis] / ranks, &|d| grid[d])).collect();
        forms.extend((0..grid.len()).map(|axis| with(axis, each, &|_| 1)));
        if let [x, y, z] = grid[..] {
            let flat = x * y / ranks;
            forms.extend([Dims::from_slice(&[flat, 1, z]), Dims::from_slice(&[1, flat, z])]);
        }
        match forms.into_iter().find(fits) {
            Some(patch) => {
                Ok(Self { patch, grid: grid.clone(), block: kernel.block.clone(), ranks, balanced: kernel.balanced })
            }
            None => Err(Error::invalid(
                "plan openPMD",
                format!("{ranks} ranks cannot have equal boxes of {blocks} mini-blocks {:?}", grid.as_slice()),
            )
            .hint("choose a grid of which one extent is a multiple of the number of ranks")),
        }
    }

    /// The patches that `rank` writes in iteration `step`: its own, or in an unbalanced one also that of its predecessor, which
    /// then writes nothing.
    pub fn of(&self, rank: u64, step: u64) -> Vec<u64> {
        let cycle = if self.grid.len() == 1 { 10 } else { 4 };
        if self.balanced || step % 3 != 1 {
            return vec![rank];
        }
        match rank % cycle {
            0 if rank + 1 < self.ranks => Vec::new(),
            1 => vec![rank - 1, rank],
            _ => vec![rank],
        }
    }

    /// The first mini-block of a patch along each dimension.
    fn corner(&self, patch: u64) -> Dims {
        let mut rest = patch;
        let mut corner = Dims::from_elem(0, self.grid.len());
        for axis in (0..self.grid.len()).rev() {
            let along = self.grid[axis] / self.patch[axis];
            corner[axis] = rest % along * self.patch[axis];
            rest /= along;
        }
        corner
    }

    /// The cells of some patches, as one.
    pub fn cells(&self, patches: &[u64]) -> Result<Selection> {
        let slab = |patch: &u64| {
            let start: Dims = self.corner(*patch).iter().zip(&self.block).map(|(at, cells)| at * cells).collect();
            let count: Dims = self.patch.iter().zip(&self.block).map(|(blocks, cells)| blocks * cells).collect();
            Slab::dense(&start, &count)
        };
        let slabs = patches.iter().map(slab).collect::<Result<Vec<_>>>()?;
        Selection::union(self.grid.len(), slabs.into_iter().flatten())
    }

    /// The cells of each mini-block of a patch.
    pub fn blocks(&self, patch: u64) -> impl Iterator<Item = Result<Selection>> + '_ {
        let corner = self.corner(patch);
        (0..self.blocks_per_patch()).map(move |number| {
            let mut rest = number;
            let mut start = Dims::from_elem(0, self.grid.len());
            for axis in (0..self.grid.len()).rev() {
                start[axis] = (corner[axis] + rest % self.patch[axis]) * self.block[axis];
                rest /= self.patch[axis];
            }
            Selection::dense(&start, &self.block)
        })
    }

    /// Mini-blocks of a patch.
    pub fn blocks_per_patch(&self) -> u64 {
        self.patch.iter().product()
    }
}
