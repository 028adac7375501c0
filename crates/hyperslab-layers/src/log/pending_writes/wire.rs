//! Encoding of pending writes for another process, which reads them from the log.

use super::{PendingWrite, PendingWrites, memory_of};
use crate::background::PeerStaging;
use hyperslab_core::{ArraySpec, Result};
use hyperslab_journal::selection_wire;
use hyperslab_journal::wire::{Decoder, Encoder};
use std::sync::Arc;

impl PendingWrites {
    /// Encodes the list for [`PendingWrites::decode`]. All writes must be written out.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.writes.len() as u64);
        for write in &self.writes {
            out.u64(write.first);
            out.u64(write.last);
            write.record.encode_location(&mut out);
            out.u32(u32::from(write.selection.is_some()));
            if let Some(selection) = &write.selection {
                selection_wire::encode(selection, &mut out);
            }
        }
        out.0
    }

    /// Decodes the pending writes of another rank.
    pub fn decode(told: &[u8], spec: Arc<ArraySpec>, log: &mut PeerStaging) -> Result<Self> {
        let mut from = Decoder(told);
        let mut batch = Self::new(spec, false);
        for _ in 0..from.u64()? {
            let (first, last, record) = (from.u64()?, from.u64()?, log.decode_location(&mut from)?);
            let selection = match from.u32()? {
                0 => None,
                _ => Some(Arc::new(selection_wire::decode(&mut from)?)),
            };
            batch.bytes += record.len();
            batch.memory += selection.as_ref().map_or(super::EACH, |selection| memory_of(selection));
            batch.writes.push(PendingWrite { first, last, record, selection });
        }
        Ok(batch)
    }
}
