//! The boxes of a level and who owns which.

use super::{Amrex, literal};
use hyperslab_core::workload::ArrayDeclaration;
use hyperslab_core::{Datatype, Error, Result};

/// A refinement level. Boxes are numbered with the first dimension fastest; a rank owns neighbours in that order.
#[derive(Debug, Clone)]
pub struct Level {
    pub number: usize,
    /// How much finer than the coarsest.
    pub finer: u64,
    /// The first cell, along each dimension.
    pub first: u64,
    /// Where boxes begin along a dimension, and where the last ends.
    edges: Vec<u64>,
    ranks: u64,
}

impl Level {
    /// All levels: the coarsest covers the domain, each further one the middle half of the one before.
    pub fn all(kernel: &Amrex) -> Result<Vec<Self>> {
        let too_large = || Error::invalid("plan AMReX", "the finest level exceeds 2^31 cells along a dimension");
        let (mut first, mut cells, mut finer) = (0u64, kernel.cells, 1u64);
        let mut levels = Vec::new();
        for number in 0..=kernel.ratios.len() {
            if number > 0 {
                let ratio = kernel.ratios[number - 1];
                let half = (cells / 2).max(1);
                let checked = |value: u64| value.checked_mul(ratio);
                first = checked(first + (cells - half) / 2).ok_or_else(too_large)?;
                cells = checked(half).ok_or_else(too_large)?;
                finer = checked(finer).ok_or_else(too_large)?;
            }
            if first.checked_add(cells).is_none_or(|end| end > i32::MAX as u64) {
                return Err(too_large());
            }
            let pieces = cells.div_ceil(kernel.largest_box);
            if pieces > 1 << 16 {
                return Err(Error::invalid("plan AMReX", format!("{pieces} boxes along a dimension are too many")));
            }
            let edges = (0..=pieces).map(|piece| cells * piece / pieces).collect();
            levels.push(Self { number, finer, first, edges, ranks: kernel.ranks as u64 });
        }
        Ok(levels)
    }

    fn along(&self) -> u64 {
        self.edges.len() as u64 - 1
    }

    /// Number of boxes.
    pub fn boxes(&self) -> u64 {
        self.along().pow(3)
    }

    /// Cells along a dimension.
    pub fn extent(&self) -> u64 {
        self.edges.last().copied().unwrap_or(0)
    }

    /// Cells of all boxes.
    pub fn cells(&self) -> u64 {
        self.extent().saturating_pow(3)
    }

    /// The pieces that a box is made of, along i, j and k.
    fn place(&self, number: u64) -> [usize; 3] {
        let along = self.along();
        [number % along, number / along % along, number / along / along].map(|piece| piece as usize)
    }

    /// Cells of a box.
    pub fn cells_of(&self, number: u64) -> u64 {
        self.place(number).iter().map(|piece| self.edges[piece + 1] - self.edges[*piece]).product()
    }

    /// The boxes of a rank.
    pub fn owned(&self, rank: u64) -> std::ops::Range<u64> {
        let end = |rank: u64| (u128::from(self.boxes()) * u128::from(rank) / u128::from(self.ranks)) as u64;
        end(rank)..end(rank + 1)
    }

    /// Cells before each box, and of all.
    pub fn offsets(&self) -> Vec<u64> {
        let mut before = 0;
        let mut offsets = vec![0];
        for number in 0..self.boxes() {
            before += self.cells_of(number);
            offsets.push(before);
        }
        offsets
    }

    /// The first and last cell of each box.
    pub fn list(&self) -> Result<ArrayDeclaration> {
        let names = ["lo_i", "lo_j", "lo_k", "hi_i", "hi_j", "hi_k"];
        let dtype = Datatype::packed_compound(names.map(|name| (name, Datatype::I32)))?;
        let mut bytes = Vec::with_capacity(self.boxes() as usize * 24);
        for number in 0..self.boxes() {
            let place = self.place(number);
            let low = place.map(|piece| self.first + self.edges[piece]);
            let high = place.map(|piece| self.first + self.edges[piece + 1] - 1);
            bytes.extend(low.into_iter().chain(high).flat_map(|cell| (cell as i32).to_ne_bytes()));
        }
        Ok(literal(dtype, self.boxes(), bytes))
    }
}
