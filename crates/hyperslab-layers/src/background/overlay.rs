//! Elements of writes that wait, for reads that ask for nothing else.

use super::data::Data;
use super::job::Job;
use hyperslab_core::{ArraySpec, Error, ErrorKind, Result, Run, Selection};
use std::sync::Arc;

/// More writes than this are waited for instead.
const MOST: usize = 16;

/// What is copied from a write.
struct Part<'a> {
    elements: Selection,
    of: &'a Selection,
    data: &'a Data,
}

/// Copies `selection`, packed, if the writes have all of it. `writes` overlap it and are in their order. `false`: they do not.
pub(crate) fn read(writes: &[Arc<Job>], spec: &ArraySpec, selection: &Selection, into: &mut [u8]) -> Result<bool> {
    let (mut missing, mut parts) = (selection.clone(), Vec::new());
    if writes.len() > MOST {
        return Ok(false);
    }
    // The last one counts.
    for write in writes.iter().rev() {
        let Job::Write { selection: of, data, layout, .. } = &**write else { continue };
        let elements = missing.intersect(of)?;
        if elements.is_empty() {
            continue;
        }
        if !layout.is_packed() {
            return Ok(false);
        }
        missing = missing.subtract(&elements)?;
        parts.push(Part { elements, of, data });
    }
    if !missing.is_empty() {
        return Ok(false);
    }
    let mut paint =
        |part: &Part<'_>, bytes: &[u8]| copy_elements(&part.elements, part.of, bytes, spec, selection, into);
    parts.iter().try_for_each(|part| part.data.with(|bytes| paint(part, bytes)))?;
    Ok(true)
}

/// Copies `elements` from the packed elements of one selection to those of another; both contain them.
pub(crate) fn copy_elements(
    elements: &Selection,
    of: &Selection,
    from: &[u8],
    spec: &ArraySpec,
    selection: &Selection,
    into: &mut [u8],
) -> Result<()> {
    let (shape, size) = (&spec.shape, spec.dtype.size());
    let mut source = Packed::new(of.runs(shape, size)?);
    let mut target = Packed::new(selection.runs(shape, size)?);
    for mut run in elements.runs(shape, size)? {
        while run.len > 0 {
            let (at, available) = source.find(run.offset)?;
            let (to, room) = target.find(run.offset)?;
            let len = run.len.min(available).min(room);
            into[to as usize..(to + len) as usize].copy_from_slice(&from[at as usize..(at + len) as usize]);
            run.offset += len;
            run.len -= len;
        }
    }
    Ok(())
}

/// Where the bytes of an array lie in packed memory, asked for in rising order.
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

    /// The place of a byte, and how many follow it there.
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
