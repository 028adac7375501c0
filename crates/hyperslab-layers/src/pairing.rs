//! Elements that two packed buffers have in common.

use hyperslab_core::{Error, ErrorKind, Result, Run, Selection};

/// Calls `each` with runs of the elements `common`, which are in both selections: the number of the first in the packed
/// elements of `of`, that in the packed elements of `into`, and how many follow each other in both. Both rise.
pub(crate) fn pair(
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

/// Where the elements of an array lie in packed memory, asked for in rising order.
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

    /// The place of an element, and how many follow it there.
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
