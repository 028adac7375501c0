//! JSON representation of selections: `{"start": [0, 8], "count": [4, 4]}`, with `stride` and `block` where they are not 1, or
//! `{"rank": 2, "union": [...]}`.

use super::Selection;
use crate::slab::{Slab, same_rank};
use crate::{Dims, Error, Result};
use serde::{Deserialize, Serialize};

/// The JSON representation of a selection: a slab, or a list of slabs.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum SelectionRepr {
    Slab(SlabRepr),
    Union { rank: usize, union: Vec<SlabRepr> },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlabRepr {
    start: Dims,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stride: Option<Dims>,
    count: Dims,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<Dims>,
}

impl From<&Slab> for SlabRepr {
    fn from(slab: &Slab) -> Self {
        if slab.is_dense() {
            return Self { start: slab.start(), stride: None, count: slab.counts(), block: None };
        }
        let each = |f: fn(&crate::StridedRange) -> u64| slab.ranges.iter().map(f).collect::<Dims>();
        Self {
            start: slab.start(),
            stride: Some(each(|s| s.stride)),
            count: each(|s| s.count),
            block: Some(each(|s| s.block)),
        }
    }
}

impl SlabRepr {
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

impl From<Selection> for SelectionRepr {
    fn from(selection: Selection) -> Self {
        match selection.as_slab() {
            Some(slab) => Self::Slab(slab.into()),
            None => Self::Union { rank: selection.rank, union: selection.slabs.iter().map(Into::into).collect() },
        }
    }
}

impl TryFrom<SelectionRepr> for Selection {
    type Error = Error;

    fn try_from(written: SelectionRepr) -> Result<Self> {
        match written {
            SelectionRepr::Slab(slab) => {
                let rank = slab.start.len();
                Ok(Self::from_slab(rank, slab.parse()?))
            }
            SelectionRepr::Union { rank, union } => {
                same_rank(&[rank])?;
                let slabs = union.into_iter().map(SlabRepr::parse).collect::<Result<Vec<_>>>()?;
                Self::union(rank, slabs.into_iter().flatten())
            }
        }
    }
}
