//! Collects fields that a program writes one call after another, until the elements are complete.
//!
//! Writing a single field is a read-modify-write of all elements; writing complete elements is not.

use super::dataset_io::DatasetIo;
use super::dataspace::refused;
use crate::host::Host;
use hyperslab_core::{ElementPlan, MemoryLayout, MemoryView, Result, Selection, lock};
use hyperslab_h5direct::{DirectDataset, MetadataBackend, StagingBuffer};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Writes of some fields of the same elements.
#[derive(Debug)]
pub(crate) struct FieldBuffer {
    host: &'static Host,
    selection: Selection,
    /// In program order: where fields overlap, the later write wins.
    writes: Vec<BufferedWrite>,
    copies: StagingBuffer,
    /// Bytes reserved in the host's budget, including prefaulted ones.
    memory: u64,
}

/// One buffered write.
#[derive(Debug)]
struct BufferedWrite {
    layout: MemoryLayout,
    plan: ElementPlan,
    /// Range of its bytes in the staging buffer.
    at: Range<usize>,
}

impl FieldBuffer {
    /// A buffer for elements with `fields` bytes of fields each, of at most `limit` bytes. `None` if memory is short.
    fn new(
        host: &'static Host,
        direct: &DirectDataset,
        selection: &Selection,
        fields: u64,
        limit: u64,
    ) -> Option<Self> {
        let room = usize::try_from(selection.len().saturating_mul(fields).min(limit)).ok()?;
        let copies = direct.staging_buffer(room).ok()?;
        Some(Self { host, selection: selection.clone(), writes: Vec::new(), copies, memory: 0 })
    }

    /// Whether all fields are present together with those of `plan`.
    fn is_complete_with(&self, plan: &ElementPlan, fields: u64) -> bool {
        ElementPlan::covered_together(self.writes.iter().map(|write| &write.plan).chain([plan])) == fields
    }

    /// Buffers a copy; `false` if the budget is exhausted.
    fn add(&mut self, plan: ElementPlan, memory: MemoryView<'_>, limit: u64) -> bool {
        let MemoryView { data, layout } = memory;
        if let Some(at) = self.writes.iter().position(|write| write.plan == plan) {
            let write = self.writes.remove(at);
            let replaced = self.copies.replace(write.at.clone(), data);
            self.writes.push(write);
            return replaced.is_ok();
        }
        let needed = (self.copies.used() + data.len()) as u64;
        if !self.take_memory(needed, limit) {
            return false;
        }
        match self.copies.add(data) {
            Ok(Some(at)) => self.writes.push(BufferedWrite { layout: layout.clone(), plan, at }),
            _ => return false,
        }
        true
    }

    /// After the first write: prefaults memory for the missing fields except the last one, which is not buffered.
    fn prefault(&mut self, direct: &DirectDataset, fields: u64, limit: u64) {
        let Some(last) = self.writes.last().map(|write| write.at.len() as u64) else { return };
        let until = self.selection.len().saturating_mul(fields).saturating_sub(last);
        if self.writes.len() == 1 && self.take_memory(until, limit) {
            direct.prefault(&self.copies, until as usize, &self.selection);
        }
    }

    /// Reserves memory up to `needed` bytes.
    fn take_memory(&mut self, needed: u64, limit: u64) -> bool {
        let more = needed.saturating_sub(self.memory);
        let taken = more == 0 || self.host.try_memory(limit, more);
        if taken {
            self.memory += more;
        }
        taken
    }

    /// Writes all buffered fields in one transfer, with `last` over them.
    fn write(&self, direct: &DirectDataset, backend: &dyn MetadataBackend, last: Option<MemoryView<'_>>) -> Result<()> {
        let bytes = |write: &BufferedWrite| self.copies.get(write.at.clone());
        let fields = self.writes.iter().map(|write| MemoryView { data: bytes(write), layout: &write.layout });
        let views: Vec<MemoryView<'_>> = fields.chain(last).collect();
        match direct.write_fields(backend, &self.selection, &views)? {
            None => Ok(()),
            Some(refusal) => Err(refused("write", refusal.to_string())),
        }
    }
}

impl Drop for FieldBuffer {
    fn drop(&mut self) {
        self.host.give_memory(self.memory);
    }
}

impl DatasetIo {
    /// Buffers a write of some fields, or completes the elements and writes them. Buffers take at most `limit` bytes.
    /// `false`: the write is not eligible, and nothing was done.
    pub(crate) fn buffer_fields(&self, selection: &Selection, memory: MemoryView<'_>, limit: u64) -> Result<bool> {
        if memory.layout.structure.is_none() || self.offset_exposed.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let dtype = &self.spec.dtype;
        let plan = memory.layout.plan(dtype)?;
        let dense =
            memory.layout.within.is_none() && plan.pieces.iter().map(|piece| piece.len).sum::<u64>() == plan.stride;
        // Buffered fields must be writable without libhdf5: a fork or the close of the dataset may come first.
        if !dense || plan.covers_element() || selection.is_empty() || !self.load_full_index()? {
            return Ok(false);
        }
        selection.check_inside(&self.direct.shape())?;
        memory.check(dtype, selection.len())?;
        if lock(&self.field_buffer).as_ref().is_some_and(|buffer| buffer.selection != *selection) {
            self.with_library(|_| Ok(()))?;
        }
        let memory = MemoryView { data: &memory.data[..(selection.len() * plan.stride) as usize], ..memory };
        let fields = dtype.fields().iter().map(|field| field.dtype.size()).sum();
        let mut slot = lock(&self.field_buffer);
        if slot.is_none() {
            *slot = FieldBuffer::new(self.host, &self.direct, selection, fields, limit);
        }
        let Some(buffer) = slot.as_mut() else { return Ok(false) };
        let complete = buffer.is_complete_with(&plan, fields);
        if complete || !buffer.add(plan, memory, limit) {
            if buffer.writes.is_empty() {
                *slot = None;
                return Ok(false);
            }
            self.with_backend_unflushed(|backend| buffer.write(&self.direct, backend, Some(memory)))?;
            *slot = None;
        } else {
            buffer.prefault(&self.direct, fields, limit);
        }
        self.metadata_dirty.store(true, Ordering::Relaxed);
        Ok(true)
    }

    /// Whether any field is buffered.
    pub(crate) fn has_buffered_fields(&self) -> bool {
        lock(&self.field_buffer).is_some()
    }

    /// Writes buffered fields. After an error they stay buffered.
    pub(super) fn write_buffered_fields(&self, backend: &dyn MetadataBackend) -> Result<()> {
        let mut slot = lock(&self.field_buffer);
        if let Some(buffer) = slot.as_ref() {
            buffer.write(&self.direct, backend, None)?;
        }
        *slot = None;
        Ok(())
    }

    /// Discards buffered fields, after the program was told of the error. Returns whether there were any.
    pub(super) fn discard_buffered_fields(&self) -> bool {
        lock(&self.field_buffer).take().is_some()
    }
}
