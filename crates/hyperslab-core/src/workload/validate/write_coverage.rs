//! Coverage: which elements of an array a rank has certainly written.

use crate::{Selection, dims::Dims};

/// Coverage of more slabs than this is not tracked and becomes unknown.
const MOST_SLABS: usize = 64;

/// The elements that are certainly written.
pub(super) enum WriteCoverage {
    /// All elements that the array had when it was opened.
    All,
    /// Exactly these.
    These(Selection),
    /// Not tracked.
    Unknown,
}

impl WriteCoverage {
    pub fn nothing(rank: usize) -> Self {
        Self::These(Selection::empty(rank))
    }

    pub fn all() -> Self {
        Self::All
    }

    /// Adds a written selection.
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

    /// Whether all of `selection` is certainly written.
    pub fn covers(&self, selection: &Selection) -> bool {
        match self {
            Self::All => true,
            Self::Unknown => selection.is_empty(),
            // Subset test by subtraction, which is cheap for few slabs.
            Self::These(there) => {
                selection.slabs().len() <= MOST_SLABS && selection.subtract(there).is_ok_and(|left| left.is_empty())
            }
        }
    }

    /// Called when the array is resized from these extents.
    pub fn grown_from(&mut self, before: &Dims) {
        if let Self::All = self {
            *self = Selection::all(before).map_or(Self::Unknown, Self::These);
        }
    }
}
