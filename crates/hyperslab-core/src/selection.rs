//! Which elements of an array: a union of disjoint regular hyperslabs.

use crate::slab::{Slab, same_rank};
use crate::span::check_pieces;
use crate::{Dims, Error, Result, Runs};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// A set of elements of an array of some rank.
///
/// Elements are ordered row-major by their coordinates, however the set was built; that order is the order of the
/// elements in packed memory. The normal form is a list of disjoint non-empty slabs sorted by first element, neighbours
/// joined where one slab says the same. A set that is one regular hyperslab has exactly one form; other unions may have
/// several, so compare those with [`Selection::same_elements`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
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

    /// The union of any slabs of `rank` dimensions; they may overlap.
    pub fn union(rank: usize, slabs: impl IntoIterator<Item = Slab>) -> Result<Self> {
        let mut incoming: Vec<Slab> = slabs.into_iter().collect();
        if let Some(odd) = incoming.iter().find(|s| s.spans.len() != rank) {
            return same_rank(&[rank, odd.spans.len()]).map(|()| Self::empty(rank));
        }
        if incoming.len() < 2 {
            return Ok(Self { rank, slabs: incoming.into() });
        }
        incoming.sort_by(Slab::cmp_start);
        let mut disjoint: Vec<Slab> = Vec::with_capacity(incoming.len());
        let mut active: Vec<usize> = Vec::new(); // those that may still overlap what comes
        for slab in incoming {
            active.retain(|&i| !disjoint[i].is_before(&slab));
            let mut pieces = vec![slab];
            for &i in &active {
                if pieces.iter().any(|p| p.overlaps(&disjoint[i])) {
                    pieces = pieces.iter().map(|p| p.subtract(&disjoint[i])).collect::<Result<Vec<_>>>()?.concat();
                }
            }
            for piece in pieces {
                active.push(disjoint.len());
                disjoint.push(piece);
                check_pieces(disjoint.len())?;
            }
        }
        Ok(Self { rank, slabs: join_neighbours(rank, disjoint).into() })
    }

    /// Number of dimensions of the array.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The disjoint slabs, sorted by first element.
    pub fn slabs(&self) -> &[Slab] {
        &self.slabs
    }

    /// The one slab, unless the set is empty or a union.
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

    /// First index and one past the last in each dimension; `None` when empty.
    pub fn bounds(&self) -> Option<(Dims, Dims)> {
        let (first, rest) = self.slabs.split_first()?;
        let (mut low, mut high) = (first.start(), first.end());
        for slab in rest {
            for d in 0..self.rank {
                low[d] = low[d].min(slab.spans[d].start);
                high[d] = high[d].max(slab.spans[d].end());
            }
        }
        Some((low, high))
    }

    /// Refuses a selection that does not lie inside `shape`.
    pub fn check_inside(&self, shape: &[u64]) -> Result<()> {
        same_rank(&[shape.len(), self.rank])?;
        for slab in &self.slabs {
            for (d, span) in slab.spans.iter().enumerate() {
                if span.end() > shape[d] {
                    return Err(Error::invalid(
                        "check selection",
                        format!(
                            "index {} of dimension {d} is outside an array of {}",
                            span.end() - 1,
                            crate::dims::display(shape)
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The common elements.
    pub fn intersect(&self, other: &Self) -> Result<Self> {
        same_rank(&[self.rank, other.rank])?;
        let mut pieces = Vec::new();
        for a in &self.slabs {
            for b in &other.slabs {
                if a.overlaps(b) {
                    pieces.extend(a.intersect(b)?);
                    check_pieces(pieces.len())?;
                }
            }
        }
        Self::union(self.rank, pieces)
    }

    /// The elements of `self` that are not in `other`.
    pub fn subtract(&self, other: &Self) -> Result<Self> {
        same_rank(&[self.rank, other.rank])?;
        let mut pieces: Vec<Slab> = self.slabs.to_vec();
        for b in &other.slabs {
            pieces = pieces.iter().map(|p| p.subtract(b)).collect::<Result<Vec<_>>>()?.concat();
            check_pieces(pieces.len())?;
        }
        Self::union(self.rank, pieces)
    }

    /// The elements of either.
    pub fn union_with(&self, other: &Self) -> Result<Self> {
        same_rank(&[self.rank, other.rank])?;
        Self::union(self.rank, self.slabs.iter().chain(&other.slabs).cloned())
    }

    /// Whether the two share an element. Selections of different ranks share none.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.rank == other.rank && self.slabs.iter().any(|a| other.slabs.iter().any(|b| a.overlaps(b)))
    }

    /// Whether both select the same elements, whatever their form.
    pub fn same_elements(&self, other: &Self) -> Result<bool> {
        Ok(self == other || (self.len() == other.len() && self.subtract(other)?.is_empty()))
    }

    /// Every index moved by `by`.
    pub fn shifted(&self, by: &[i64]) -> Result<Self> {
        same_rank(&[self.rank, by.len()])?;
        let slabs = self.slabs.iter().map(|s| s.shifted(by)).collect::<Result<_>>()?;
        Ok(Self { rank: self.rank, slabs })
    }

    /// The contiguous byte ranges of the selection in a row-major array of `shape`, rising, joined where they touch.
    /// Lazy: memory grows with the slabs that interleave, not with the runs.
    pub fn runs(&self, shape: &[u64], element: u64) -> Result<Runs<'_>> {
        self.check_inside(shape)?;
        crate::dims::byte_count(shape, element)?;
        Ok(Runs::new(&self.slabs, shape, element))
    }

    /// Offset of the first byte touched in a row-major array of `shape`; `None` when empty.
    pub fn first_byte(&self, shape: &[u64], element: u64) -> Option<u64> {
        let pitches = crate::dims::pitches(shape);
        let linear = |s: &Slab| s.spans.iter().zip(&pitches).map(|(span, p)| span.start * p).sum::<u64>();
        self.slabs.iter().map(linear).min().map(|n| n * element)
    }

    /// Offset of the last byte touched in a row-major array of `shape`; `None` when empty.
    pub fn last_byte(&self, shape: &[u64], element: u64) -> Option<u64> {
        let pitches = crate::dims::pitches(shape);
        let linear = |s: &Slab| s.spans.iter().zip(&pitches).map(|(span, p)| (span.end() - 1) * p).sum::<u64>();
        self.slabs.iter().map(linear).max().map(|n| (n + 1) * element - 1)
    }
}

/// Joins slabs that differ in one dimension and continue each other there, last dimension first.
fn join_neighbours(rank: usize, mut slabs: Vec<Slab>) -> Vec<Slab> {
    for dim in (0..rank).rev() {
        slabs.sort_by(|a, b| {
            let others =
                |s: &Slab| (0..rank).filter(move |&d| d != dim).map(|d| s.spans[d]).collect::<SmallVec<[_; 4]>>();
            others(a).cmp(&others(b)).then(a.spans[dim].start.cmp(&b.spans[dim].start))
        });
        let mut joined: Vec<Slab> = Vec::with_capacity(slabs.len());
        for slab in slabs {
            match joined.last_mut().and_then(|last| last.join(&slab, dim).map(|j| (last, j))) {
                Some((last, j)) => *last = j,
                None => joined.push(slab),
            }
        }
        slabs = joined;
    }
    slabs.sort_by(Slab::cmp_start);
    slabs
}

/// How a selection is written in JSON: a slab, or a list of slabs.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Slab(WrittenSlab),
    Union { rank: usize, union: Vec<WrittenSlab> },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSlab {
    start: Dims,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stride: Option<Dims>,
    count: Dims,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<Dims>,
}

impl From<&Slab> for WrittenSlab {
    fn from(slab: &Slab) -> Self {
        if slab.is_dense() {
            return Self { start: slab.start(), stride: None, count: slab.counts(), block: None };
        }
        let each = |f: fn(&crate::Span) -> u64| slab.spans.iter().map(f).collect::<Dims>();
        Self {
            start: slab.start(),
            stride: Some(each(|s| s.stride)),
            count: each(|s| s.count),
            block: Some(each(|s| s.block)),
        }
    }
}

impl WrittenSlab {
    fn parse(self) -> Result<Option<Slab>> {
        let ones = || Dims::from_elem(1, self.start.len());
        if self.stride.is_none() && self.block.is_none() {
            return Slab::dense(&self.start, &self.count);
        }
        let block = self.block.clone().unwrap_or_else(ones);
        let stride = self.stride.clone().unwrap_or_else(|| block.clone());
        Slab::strided(&self.start, &stride, &self.count, &block)
    }
}

impl From<Selection> for Written {
    fn from(selection: Selection) -> Self {
        match selection.as_slab() {
            Some(slab) => Self::Slab(slab.into()),
            None => Self::Union { rank: selection.rank, union: selection.slabs.iter().map(Into::into).collect() },
        }
    }
}

impl TryFrom<Written> for Selection {
    type Error = Error;

    fn try_from(written: Written) -> Result<Self> {
        match written {
            Written::Slab(slab) => {
                let rank = slab.start.len();
                Ok(Self::from_slab(rank, slab.parse()?))
            }
            Written::Union { rank, union } => {
                same_rank(&[rank])?;
                let slabs = union.into_iter().map(WrittenSlab::parse).collect::<Result<Vec<_>>>()?;
                Self::union(rank, slabs.into_iter().flatten())
            }
        }
    }
}
