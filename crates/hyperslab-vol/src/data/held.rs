//! Fields of elements that a program writes one after another: held until all are there, and written as whole elements.
//!
//! Bytes between fields cannot be written by themselves, so that each field alone would have all elements read and written back.

use super::elements::{Elements, lock};
use super::space::refused;
use crate::host::Host;
use hyperslab_core::{ElementPlan, MemoryLayout, MemoryView, Result, Selection};
use hyperslab_plane::{Control, Plane};
use std::sync::atomic::Ordering;

/// Some fields of the same elements.
#[derive(Debug)]
pub(crate) struct Held {
    host: &'static Host,
    selection: Selection,
    /// In the order of writing: where two have the same field, the later counts.
    parts: Vec<Part>,
}

/// What one call wrote.
#[derive(Debug)]
struct Part {
    layout: MemoryLayout,
    plan: ElementPlan,
    bytes: Vec<u8>,
}

impl Held {
    fn new(host: &'static Host, selection: &Selection) -> Self {
        Self { host, selection: selection.clone(), parts: Vec::new() }
    }

    /// Whether no field is missing together with those of a plan.
    fn is_complete_with(&self, plan: &ElementPlan, fields: u64) -> bool {
        ElementPlan::covered_together(self.parts.iter().map(|part| &part.plan).chain([plan])) == fields
    }

    /// Keeps a copy, if memory is left for it.
    fn add(&mut self, plane: &Plane, plan: ElementPlan, memory: MemoryView<'_>, limit: u64) -> bool {
        let MemoryView { data, layout } = memory;
        if let Some(at) = self.parts.iter().position(|part| part.plan == plan) {
            let mut part = self.parts.remove(at);
            part.bytes.copy_from_slice(data);
            self.parts.push(part);
            return true;
        }
        if !self.host.try_memory(limit, data.len() as u64) {
            return false;
        }
        match plane.copied(data) {
            Ok(bytes) => self.parts.push(Part { layout: layout.clone(), plan, bytes }),
            Err(_) => {
                self.host.give_memory(data.len() as u64);
                return false;
            }
        }
        true
    }

    /// Writes everything in one go, and `last` over it.
    fn write(&self, plane: &Plane, control: &dyn Control, last: Option<MemoryView<'_>>) -> Result<()> {
        let held = self.parts.iter().map(|part| MemoryView { data: &part.bytes, layout: &part.layout });
        let views: Vec<MemoryView<'_>> = held.chain(last).collect();
        match plane.write_together(control, &self.selection, &views)? {
            None => Ok(()),
            Some(refusal) => Err(refused("write", refusal.to_string())),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.host.give_memory(self.parts.iter().map(|part| part.bytes.len() as u64).sum());
    }
}

impl Elements {
    /// Writes some fields of the selected elements, at once or later; all that is held takes `limit` bytes at most. `false`: it
    /// is not such a write, and nothing was done.
    pub(crate) fn hold(&self, selection: &Selection, memory: MemoryView<'_>, limit: u64) -> Result<bool> {
        if memory.layout.structure.is_none() || self.looked_into.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let dtype = &self.spec.dtype;
        let plan = memory.layout.plan(dtype)?;
        let dense =
            memory.layout.within.is_none() && plan.pieces.iter().map(|piece| piece.len).sum::<u64>() == plan.stride;
        // What is held must not need libhdf5: a fork or the end of a dataset may come between.
        if !dense || plan.covers_element() || selection.is_empty() || !self.make_independent()? {
            return Ok(false);
        }
        selection.check_inside(&self.plane.shape())?;
        memory.check(dtype, selection.len())?;
        if lock(&self.held).as_ref().is_some_and(|held| held.selection != *selection) {
            self.with_control(|_| Ok(()))?;
        }
        let memory = MemoryView { data: &memory.data[..(selection.len() * plan.stride) as usize], ..memory };
        let fields = dtype.fields().iter().map(|field| field.dtype.size()).sum();
        let mut slot = lock(&self.held);
        let held = slot.get_or_insert_with(|| Held::new(self.host, selection));
        let complete = held.is_complete_with(&plan, fields);
        if complete || !held.add(&self.plane, plan, memory, limit) {
            if held.parts.is_empty() {
                *slot = None;
                return Ok(false);
            }
            self.beside_held(|control| held.write(&self.plane, control, Some(memory)))?;
            *slot = None;
        }
        self.unsaved.store(true, Ordering::Relaxed);
        Ok(true)
    }

    /// Whether fields are held.
    pub(crate) fn holds(&self) -> bool {
        lock(&self.held).is_some()
    }

    /// Writes what is held. What cannot be written stays, and fails again.
    pub(super) fn write_held(&self, control: &dyn Control) -> Result<()> {
        let mut slot = lock(&self.held);
        if let Some(held) = slot.as_ref() {
            held.write(&self.plane, control, None)?;
        }
        *slot = None;
        Ok(())
    }

    /// Forgets what is held: the program was told that it cannot be written.
    pub(super) fn drop_held(&self) {
        *lock(&self.held) = None;
    }
}
