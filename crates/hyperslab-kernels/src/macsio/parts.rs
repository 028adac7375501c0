//! The parts of the mesh: their extents, who has which, and where they lie in the whole.

use super::Macsio;
use hyperslab_core::{Dims, Error, Result, Selection};

/// A mesh of equal parts.
#[derive(Debug, Clone)]
pub struct Mesh {
    /// Nodes of a part, slowest dimension first.
    pub nodes: Dims,
    /// Zones of a part: one shorter along each dimension.
    pub zones: Dims,
    /// Parts along each dimension.
    pub grid: Dims,
    parts: u64,
    ranks: u64,
}

impl Mesh {
    pub fn new(kernel: &Macsio) -> Result<Self> {
        let nodes = near_square(kernel.part_bytes / 8, kernel.dimensions);
        if nodes.iter().any(|extent| *extent < 2) {
            let message =
                format!("a part of {} bytes has no zones in {} dimensions", kernel.part_bytes, kernel.dimensions);
            return Err(Error::invalid("plan MACSio", message).hint("use a larger part_size"));
        }
        Ok(Self {
            zones: nodes.iter().map(|extent| extent - 1).collect(),
            nodes,
            grid: divided(kernel.parts, kernel.dimensions),
            parts: kernel.parts,
            ranks: kernel.ranks as u64,
        })
    }

    /// The parts of a rank: neighbours in their order, the first ranks with one more.
    pub fn of(&self, rank: u64) -> std::ops::Range<u64> {
        let (each, more) = (self.parts / self.ranks, self.parts % self.ranks);
        let start = rank * each + rank.min(more);
        start..start + each + u64::from(rank < more)
    }

    /// Zones and nodes of the whole mesh. Parts share the nodes between them.
    pub fn global(&self) -> (Dims, Dims) {
        let zones: Dims =
            self.grid.iter().zip(&self.zones).map(|(parts, zones)| parts.saturating_mul(*zones)).collect();
        let nodes = zones.iter().map(|zones| zones.saturating_add(1)).collect();
        (zones, nodes)
    }

    /// The elements of a part in the whole mesh. Nodes between two parts are written by the second.
    pub fn place(&self, part: u64, on_nodes: bool) -> Result<Selection> {
        let mut rest = part;
        let (mut start, mut count) = (self.zones.clone(), self.zones.clone());
        for axis in (0..self.grid.len()).rev() {
            let at = rest % self.grid[axis];
            rest /= self.grid[axis];
            start[axis] = at * self.zones[axis];
            count[axis] += u64::from(on_nodes && at + 1 == self.grid[axis]);
        }
        Selection::dense(&start, &count)
    }
}

/// Extents whose product is at most `count`, as equal as possible.
fn near_square(count: u64, dimensions: usize) -> Dims {
    let mut extents = Dims::new();
    let mut rest = count;
    for left in (1..=dimensions).rev() {
        let extent = root(rest, left as u32);
        extents.push(extent);
        rest = rest.checked_div(extent).unwrap_or(0);
    }
    extents
}

/// Extents whose product is `count`, as equal as its divisors allow.
fn divided(count: u64, dimensions: usize) -> Dims {
    let mut extents = Dims::new();
    let mut rest = count;
    for left in (1..=dimensions).rev() {
        let near = root(rest, left as u32).max(1);
        let extent = (1..=near).rev().find(|extent| rest.is_multiple_of(*extent)).unwrap_or(1);
        let extent = if left == 1 { rest } else { extent };
        extents.push(extent);
        rest /= extent;
    }
    extents
}

/// The largest number whose power is at most `count`.
fn root(count: u64, power: u32) -> u64 {
    let mut found = (count as f64).powf(1.0 / f64::from(power)) as u64;
    while found.checked_pow(power).is_none_or(|all| all > count) {
        found -= 1;
    }
    while (found + 1).checked_pow(power).is_some_and(|all| all <= count) {
        found += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_near_a_square() {
        assert_eq!(near_square(10_000, 2).as_slice(), [100, 100]);
        assert_eq!(near_square(10_000, 3).as_slice(), [21, 21, 22]);
        assert_eq!(near_square(7, 1).as_slice(), [7]);
        assert_eq!(near_square(0, 2).as_slice(), [0, 0]);
        assert_eq!(divided(12, 2).as_slice(), [3, 4]);
        assert_eq!(divided(12, 3).as_slice(), [2, 2, 3]);
        assert_eq!(divided(7, 2).as_slice(), [1, 7]);
        assert_eq!(root(u64::MAX, 3), 2_642_245);
    }
}
