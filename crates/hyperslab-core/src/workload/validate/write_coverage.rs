//! Which elements of an array a rank has written, as far as it is worth knowing.

use crate::{Selection, dims::Dims};

/// Selections of more slabs than this are not followed: then nothing is known.
const MOST_SLABS: usize = 64;

/// The elements that are there for certain.
pub(super) enum WriteCoverage {
    /// All that the array had when it was opened.
    All,
    /// These.
    These(Selection),
    /// Nobody knows.
    Unknown,
}

impl WriteCoverage {
    pub fn nothing(rank: usize) -> Self {
        Self::These(Selection::empty(rank))
    }

    pub fn all() -> Self {
        Self::All
    }

    /// These too.
    pub fn add(&mut self, selection: &Selection) {
        let Self::These(before) = self else { return };
        if selection.slabs().len() > MOST_SLABS {
            *self = Self::Unknown;
            return;
        }
        *self = match before.union_with(selection) {
            Ok(union) if union.slabs().len() <= MOST_SLABS => Self::These(union),
            _ => Self::Unknown,
        };
    }

    /// Whether all of `selection` is there.
    pub fn covers(&self, selection: &Selection) -> bool {
        match self {
            Self::All => true,
            Self::Unknown => selection.is_empty(),
            // Parts of a known set are found by what is left of them, which costs little when both are small.
            Self::These(there) => {
                selection.slabs().len() <= MOST_SLABS && selection.subtract(there).is_ok_and(|left| left.is_empty())
            }
        }
    }

    /// The array had these extents and has others now.
    pub fn grown_from(&mut self, before: &Dims) {
        if let Self::All = self {
            *self = Selection::all(before).map_or(Self::Unknown, Self::These);
        }
    }
}
