//! What selects elements of an array.

use hyperslab_core::{Dims, Error, Result, Selection};
use std::ops::{Range, RangeFull};

/// Anything that selects elements: `..`, one range per dimension, text as in numpy, or a [`Selection`].
///
/// ```
/// use hyperslab::Select;
/// # fn main() -> hyperslab::Result<()> {
/// let shape = [4, 6];
/// assert_eq!((..).select(&shape)?.len(), 24);
/// assert_eq!([1..3, 0..6].select(&shape)?, "1:3".select(&shape)?);
/// assert_eq!("::2,-1".select(&shape)?.len(), 2);
/// assert!([1..9, 0..6].select(&shape).is_err());
/// # Ok(())
/// # }
/// ```
pub trait Select {
    /// The selection in an array of this shape. Fails where it does not fit.
    fn select(&self, shape: &[u64]) -> Result<Selection>;
}

impl Select for RangeFull {
    fn select(&self, shape: &[u64]) -> Result<Selection> {
        Selection::all(shape)
    }
}

impl Select for Selection {
    fn select(&self, shape: &[u64]) -> Result<Selection> {
        self.check_inside(shape)?;
        Ok(self.clone())
    }
}

impl Select for str {
    fn select(&self, shape: &[u64]) -> Result<Selection> {
        Selection::parse(self, shape)
    }
}

impl<const RANK: usize> Select for [Range<u64>; RANK] {
    fn select(&self, shape: &[u64]) -> Result<Selection> {
        if RANK != shape.len() {
            let message = format!("{RANK} ranges for an array of {} dimensions", shape.len());
            return Err(Error::invalid("select elements", message));
        }
        let start: Dims = self.iter().map(|range| range.start).collect();
        let count: Dims = self.iter().map(|range| range.end.saturating_sub(range.start)).collect();
        Selection::dense(&start, &count)?.select(shape)
    }
}

impl<T: Select + ?Sized> Select for &T {
    fn select(&self, shape: &[u64]) -> Result<Selection> {
        (**self).select(shape)
    }
}
