//! Verifies a finished write: reads every written selection back and compares.

use crate::data::{Buffers, Content};
use crate::execute::{RunContext, container, content, no_array};
use hyperslab_core::workload::Step;
use hyperslab_core::{Array, Communicator, Container, Error, ErrorKind, Open, Result, Transfer};
use std::collections::HashMap;
use std::sync::Arc;

/// Reads back what the next rank wrote, so that no rank's own memory of the file can hide a mistake.
/// Collective. Returns the number of bytes compared.
pub(crate) fn read_back(context: &RunContext<'_>, comm: &Arc<dyn Communicator>) -> Result<u64> {
    let writer = (comm.rank() + 1) % comm.size();
    let mut files: Vec<Option<Arc<dyn Container>>> = context.workload.header.files.iter().map(|_| None).collect();
    let mut slots: HashMap<u32, (Arc<dyn Array>, Content)> = HashMap::new();
    let mut buffers = Buffers::default();
    let mut bytes = 0;
    for step in context.workload.steps(writer)? {
        if context.progress.stop_requested() {
            return Err(Error::new(ErrorKind::Interrupted, "verify", "stopped on request"));
        }
        match step? {
            Step::OpenFile { file, .. } => {
                let path = context.path(file, writer)?;
                let comm = context.comm_for(file, comm);
                files[file as usize] = Some(context.format.open(&path, Open::Read, &comm)?);
            }
            Step::Create { slot, file, array, name } | Step::Open { slot, file, array, name } => {
                let open = container(&files, file)?.array(&name)?;
                let expected = content(context.workload, array, &name, &*open)?;
                slots.insert(slot, (open, expected));
            }
            Step::Write { slot, selection, memory, .. } => {
                let (array, content) = slots.get(&slot).ok_or_else(|| no_array(slot))?;
                buffers.clear(content, &selection, &memory, true)?;
                array.read(&selection, buffers.view_mut(&memory), Transfer::Independent)?;
                buffers.check(content, &selection, &memory)?;
                bytes += Buffers::payload(content, &selection, &memory)?;
            }
            Step::CloseArray { slot } => {
                if let Some((array, _)) = slots.remove(&slot) {
                    array.close()?;
                }
            }
            Step::CloseFile { file } => {
                if let Some(container) = files[file as usize].take() {
                    container.close()?;
                }
            }
            _ => {}
        }
    }
    Ok(bytes)
}
