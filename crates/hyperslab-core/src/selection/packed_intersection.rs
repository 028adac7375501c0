//! Maps elements from one packed buffer to another.

use super::Selection;
use crate::{Error, ErrorKind, Result, Run};

/// Calls `each(source, target, len)` for the runs of `common` that are contiguous in the packed elements of both `of` and
/// `into`: the index of the first element in each, and the number of elements. Both indices increase. Fails if an element of
/// `common` is missing in either selection.
pub fn packed_intersection(
    common: &Selection,
    of: &Selection,
    into: &Selection,
    shape: &[u64],
    mut each: impl FnMut(u64, u64, u64) -> Result<()>,
) -> Result<()> {
    let mut source = Packed::new(of.runs(shape, 1)?);
    let mut target = Packed::new(into.runs(shape, 1)?);
    for mut run in common.runs(shape, 1)? {
        while run.len > 0 {
            let (from, available) = source.find(run.offset)?;
            let (to, room) = target.find(run.offset)?;
            let len = run.len.min(available).min(room);
            each(from, to, len)?;
            run.offset += len;
            run.len -= len;
        }
    }
    Ok(())
}

/// Maps array offsets to packed indices; offsets must increase.
struct Packed<I> {
    runs: I,
    current: Option<Run>,
    before: u64,
}

impl<I: Iterator<Item = Run>> Packed<I> {
    fn new(mut runs: I) -> Self {
        let current = runs.next();
        Self { runs, current, before: 0 }
    }

    /// The packed index of an element, and the length of its run from there.
    fn find(&mut self, offset: u64) -> Result<(u64, u64)> {
        while let Some(run) = &self.current {
            if offset < run.offset {
                break;
            }
            if offset < run.end() {
                return Ok((self.before + (offset - run.offset), run.end() - offset));
            }
            self.before += run.len;
            self.current = self.runs.next();
        }
        Err(Error::new(ErrorKind::Corrupt, "read", "elements are not where they should be"))
    }
}
