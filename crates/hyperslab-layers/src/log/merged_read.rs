//! Reads merged from pending writes and the format below.

use super::pending_writes::PendingWrite;
use crate::background::{Pool, copy_elements};
use hyperslab_core::{ArraySpec, Result, Selection};
use std::sync::Arc;

/// The pending writes that overlap a selection.
pub(super) struct Overlay {
    /// Oldest first.
    parts: Vec<(PendingWrite, Selection)>,
    /// Whether they cover the selection.
    pub complete: bool,
}

impl Overlay {
    /// The overlay of `writes`, oldest first; `None` if they do not overlap the selection.
    pub fn new(writes: Vec<PendingWrite>, spec: &ArraySpec, selection: &Selection) -> Result<Option<Self>> {
        let (mut parts, mut elements) = (Vec::new(), 0u64);
        for write in writes {
            let common = selection.intersect(&*write.selection(spec)?)?;
            if !common.is_empty() {
                elements = elements.saturating_add(common.len());
                parts.push((write, common));
            }
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let covered = || {
            let slabs = parts.iter().flat_map(|(_, common)| common.slabs().iter().cloned());
            // A union too fragmented to compute only costs a read.
            Selection::union(selection.rank(), slabs).is_ok_and(|union| union.len() == selection.len())
        };
        let complete = elements >= selection.len() && covered();
        Ok(Some(Self { parts, complete }))
    }

    /// Overlays the pending elements on `packed`; later writes win.
    pub fn paint(&self, spec: &ArraySpec, selection: &Selection, pool: &Arc<Pool>, packed: &mut [u8]) -> Result<()> {
        for (write, common) in &self.parts {
            let len = write.record.len() as usize;
            let mut buffer = pool.take(len, len as u64)?;
            write.record.read_into(buffer.as_mut())?;
            copy_elements(common, &*write.selection(spec)?, buffer.as_ref(), spec, selection, packed)?;
        }
        Ok(())
    }
}
