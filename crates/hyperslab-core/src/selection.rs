//! Selections of array elements: unions of disjoint regular hyperslabs.

mod canonical;
mod overlap_join;
mod packed_intersection;
mod packed_parts;
mod serde_repr;
mod text;

pub use packed_intersection::packed_intersection;

use crate::slab::{Slab, same_rank};
use crate::{Dims, Error, Result, Run, Runs};
use canonical::PieceLimit;
use overlap_join::visit_candidates;
use serde::{Deserialize, Serialize};
use serde_repr::SelectionRepr;
use smallvec::SmallVec;

/// A set of elements of an array of some rank.
///
/// Elements are ordered row-major by their coordinates, however the set was built; that order is the order of the
/// elements in packed memory. The canonical form is a list of disjoint non-empty slabs sorted by first element, neighbours
/// merged where one slab can express them. The form of a regular hyperslab is unique, unless its first block was given in
/// thousands of interleaved pieces; that of other unions is not, so compare those with [`Selection::same_elements`].
///
/// ```
/// use hyperslab_core::Selection;
///
/// let rows = Selection::dense(&[2, 0], &[2, 6])?;
/// let columns = Selection::parse(":,::2", &[4, 6])?;
/// assert_eq!((rows.len(), columns.len(), rows.intersect(&columns)?.len()), (12, 12, 6));
/// assert!(rows.check_inside(&[3, 6]).is_err());
/// # Ok::<(), hyperslab_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "SelectionRepr", into = "SelectionRepr")]
pub struct Selection {
    rank: usize,
    slabs: SmallVec<[Slab; 1]>,
}

impl Selection {
    /// No element of an array of `rank` dimensions.
    pub fn empty(rank: usize) -> Self {
        Self { rank, slabs: SmallVec::new() }
    }

    /// Every element of `shape`.
    pub fn all(shape: &[u64]) -> Result<Self> {
        Self::dense(&Dims::from_elem(0, shape.len()), shape)
    }

    /// The box of `count` elements at `start`.
    pub fn dense(start: &[u64], count: &[u64]) -> Result<Self> {
        Ok(Self::from_slab(start.len(), Slab::dense(start, count)?))
    }

    /// HDF5's start/stride/count/block.
    pub fn strided(start: &[u64], stride: &[u64], count: &[u64], block: &[u64]) -> Result<Self> {
        Ok(Self::from_slab(start.len(), Slab::strided(start, stride, count, block)?))
    }

    fn from_slab(rank: usize, slab: Option<Slab>) -> Self {
        Self { rank, slabs: slab.into_iter().collect() }
    }

    /// The union of slabs of `rank` dimensions, which may overlap. Refuses unions of more than 2^64 elements, and those that
    /// would be split into far more slabs than were given.
    pub fn union(rank: usize, slabs: impl IntoIterator<Item = Slab>) -> Result<Self> {
        let incoming: Vec<Slab> = slabs.into_iter().collect();
        if let Some(odd) = incoming.iter().find(|s| s.ranges.len() != rank) {
            return same_rank(&[rank, odd.ranges.len()]).map(|()| Self::empty(rank));
        }
        Ok(Self { rank, slabs: canonical::canonicalise(rank, incoming)?.into() })
    }

    /// The union of disjoint slabs of `rank` dimensions, taken as canonical without merging.
    pub(crate) fn of_disjoint(rank: usize, mut slabs: Vec<Slab>) -> Self {
        if slabs.len() > 1 {
            let starts = |slab: &Slab| slab.ranges.iter().map(|range| range.start).collect::<Dims>();
            if !slabs.is_sorted_by_key(starts) {
                slabs.sort_by_cached_key(starts);
            }
        }
        Self { rank, slabs: slabs.into() }
    }

    /// Number of dimensions of the array.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The disjoint slabs, sorted by first element.
    pub fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// The slab, if the set is exactly one.
    pub fn as_slab(&self) -> Option<&Slab> {
        match self.slabs.as_slice() {
            [slab] => Some(slab),
            _ => None,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> u64 {
        self.slabs.iter().map(Slab::len).sum()
    }

    /// Whether nothing is selected.
    pub fn is_empty(&self) -> bool {
        self.slabs.is_empty()
    }

    /// Bounding box: first index and one past the last in each dimension; `None` when empty.
    pub fn bounds(&self) -> Option<(Dims, Dims)> {
        let (first, rest) = self.slabs.split_first()?;
        let (mut low, mut high) = (first.start(), first.end());
        for slab in rest {
            for d in 0..self.rank {
                low[d] = low[d].min(slab.ranges[d].start);
                high[d] = high[d].max(slab.ranges[d].end());
            }
        }
        Some((low, high))
    }

    /// Refuses a selection that exceeds `shape`.
    pub fn check_inside(&self, shape: &[u64]) -> Result<()> {
        same_rank(&[shape.len(), self.rank])?;
        for slab in &self.slabs {
            for (d, range) in slab.ranges.iter().enumerate() {
                if range.end() > shape[d] {
                    return Err(Error::invalid(
                        "check selection",
                        format!(
                            "index {} of dimension {d} is outside an array of {}",
                            range.end() - 1,
                            crate::dims::display(shape)
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The intersection.
    pub fn intersect(&self, other: &Self) -> Result<Self> {
        same_rank(&[self.rank, other.rank])?;
        let mut pieces = Vec::new();
        let limit = PieceLimit::new(self.slabs.len() + other.slabs.len());
        visit_candidates(&self.slabs, &other.slabs, |slab, near| {
            for b in near.iter().filter(|b| slab.overlaps(b)) {
                pieces.extend(slab.intersect(b)?);
                limit.check(pieces.len())?;
            }
            Ok(true)
        })?;
        Self::union(self.rank, pieces)
    }

    /// The difference: elements of `self` that are not in `other`.
    pub fn subtract(&self, other: &Self) -> Result<Self> {
        same_rank(&[self.rank, other.rank])?;
        let mut pieces = Vec::new();
        let limit = PieceLimit::new(self.slabs.len() + other.slabs.len());
        visit_candidates(&self.slabs, &other.slabs, |slab, near| {
            let first = pieces.len();
            pieces.push(slab.clone());
            for b in near {
                canonical::subtract_from(&mut pieces, first, b, &limit)?;
            }
            Ok(true)
        })?;
        Self::union(self.rank, pieces)
    }

    /// The union.
    pub fn union_with(&self, other: &Self) -> Result<Self> {
        same_rank(&[self.rank, other.rank])?;
        Self::union(self.rank, self.slabs.iter().chain(&other.slabs).cloned())
    }

    /// Whether the two share an element. Selections of different ranks share none.
    pub fn overlaps(&self, other: &Self) -> bool {
        let mut found = false;
        let visited = self.rank == other.rank
            && visit_candidates(&self.slabs, &other.slabs, |slab, near| {
                found = near.iter().any(|b| slab.overlaps(b));
                Ok(!found)
            })
            .is_ok();
        // Too many candidate pairs: compare every pair, which needs no memory.
        let exhaustive = || self.slabs.iter().any(|a| other.slabs.iter().any(|b| a.overlaps(b)));
        found || (self.rank == other.rank && !visited && exhaustive())
    }

    /// Whether both select the same elements, regardless of form.
    pub fn same_elements(&self, other: &Self) -> Result<bool> {
        Ok(self == other || (self.len() == other.len() && self.subtract(other)?.is_empty()))
    }

    /// The selection translated by `by`.
    pub fn shifted(&self, by: &[i64]) -> Result<Self> {
        same_rank(&[self.rank, by.len()])?;
        let slabs = self.slabs.iter().map(|s| s.shifted(by)).collect::<Result<_>>()?;
        Ok(Self { rank: self.rank, slabs })
    }

    /// The contiguous byte ranges of the selection in a row-major array of `shape`, in increasing order and coalesced.
    /// Lazy: memory is proportional to the slabs that interleave, not to the runs.
    pub fn runs(&self, shape: &[u64], element: u64) -> Result<Runs<'_>> {
        self.check_inside(shape)?;
        crate::dims::byte_count(shape, element)?;
        if element == 0 {
            return Err(Error::invalid("list runs", "an element has 0 bytes"));
        }
        Ok(Runs::new(&self.slabs, shape, element))
    }

    /// Fast path for the most common case: the selection as one contiguous run, if it is. It must lie inside `shape`.
    pub fn single_run(&self, shape: &[u64], element: u64) -> Option<Run> {
        let slab = self.as_slab()?;
        let (mut offset, mut len, mut pitch) = (0, element, element);
        for (range, &extent) in slab.ranges().iter().zip(shape).rev() {
            // Indices of this dimension are contiguous only if all faster dimensions are selected completely.
            if range.len() > 1 && (len != pitch || !range.is_dense()) {
                return None;
            }
            offset += range.start() * pitch;
            len *= range.len();
            pitch *= extent;
        }
        Some(Run { offset, len })
    }

    /// Offset of the first byte touched in a row-major array of `shape`; `None` when empty.
    /// The selection must lie inside the shape; otherwise the offset is meaningless.
    pub fn first_byte(&self, shape: &[u64], element: u64) -> Option<u64> {
        // Slabs are sorted by first element.
        let first = self.slabs.first()?;
        Some(linear(shape, first.ranges.iter().map(|range| range.start)).saturating_mul(element))
    }

    /// Offset of the last byte touched in a row-major array of `shape`; `None` when empty.
    /// The selection must lie inside the shape; otherwise the offset is meaningless.
    pub fn last_byte(&self, shape: &[u64], element: u64) -> Option<u64> {
        let last = self.slabs.iter().map(|s| linear(shape, s.ranges.iter().map(|range| range.end() - 1))).max()?;
        Some(last.saturating_add(1).saturating_mul(element).saturating_sub(1))
    }
}

/// The row-major number of the element at `index`, saturating.
fn linear(shape: &[u64], index: impl Iterator<Item = u64>) -> u64 {
    shape.iter().zip(index).fold(0, |at: u64, (&extent, i)| at.saturating_mul(extent).saturating_add(i))
}
