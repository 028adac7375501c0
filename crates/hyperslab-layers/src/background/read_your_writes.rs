//! Read-your-writes: serving reads from buffered writes that cover them.

use super::job::Job;
use super::payload::Payload;
use hyperslab_core::{ArraySpec, Result, Selection, packed_intersection};
use std::sync::Arc;

/// Maximum number of overlapping writes; reads wait for more.
const MOST: usize = 16;

/// The part of a read that one write supplies.
struct Part<'a> {
    elements: Selection,
    of: &'a Selection,
    data: &'a Payload,
}

/// Copies the packed elements of `selection`, if the overlapping `writes`, in order, cover it. Returns `false` otherwise.
pub(crate) fn read(writes: &[Arc<Job>], spec: &ArraySpec, selection: &Selection, into: &mut [u8]) -> Result<bool> {
    let (mut missing, mut parts) = (selection.clone(), Vec::new());
    if writes.len() > MOST {
        return Ok(false);
    }
    // The last write wins.
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

/// Copies `elements` between the packed elements of two selections that contain them.
pub(crate) fn copy_elements(
    elements: &Selection,
    of: &Selection,
    from: &[u8],
    spec: &ArraySpec,
    selection: &Selection,
    into: &mut [u8],
) -> Result<()> {
    let size = spec.dtype.size();
    packed_intersection(elements, of, selection, &spec.shape, |at, to, count| {
        let [at, to, len] = [at, to, count].map(|elements| (elements * size) as usize);
        into[to..to + len].copy_from_slice(&from[at..at + len]);
        Ok(())
    })
}
