//! A list of writes for another process, which reads them from the log.

use super::{Batch, Waiting, memory_of};
use crate::background::Others;
use crate::journal::bytes::{Decoder, Encoder};
use crate::journal::slabs;
use hyperslab_core::{ArraySpec, Result};
use std::sync::Arc;

impl Batch {
    /// Everything that [`Batch::hear`] needs. All of it must have been handed over.
    pub fn tell(&self) -> Vec<u8> {
        let mut out = Encoder::default();
        out.u64(self.writes.len() as u64);
        for write in &self.writes {
            out.u64(write.first);
            out.u64(write.last);
            write.record.tell(&mut out);
            out.u32(u32::from(write.selection.is_some()));
            if let Some(selection) = &write.selection {
                slabs::encode(selection, &mut out);
            }
        }
        out.0
    }

    /// The writes of another rank, to be read from its log.
    pub fn hear(told: &[u8], spec: Arc<ArraySpec>, log: &mut Others) -> Result<Self> {
        let mut from = Decoder(told);
        let mut batch = Self::new(spec, false);
        for _ in 0..from.u64()? {
            let (first, last, record) = (from.u64()?, from.u64()?, log.hear(&mut from)?);
            let selection = match from.u32()? {
                0 => None,
                _ => Some(Arc::new(slabs::decode(&mut from)?)),
            };
            batch.bytes += record.len();
            batch.memory += selection.as_ref().map_or(super::EACH, |selection| memory_of(selection));
            batch.writes.push(Waiting { first, last, record, selection });
        }
        Ok(batch)
    }
}
