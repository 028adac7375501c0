//! An open array of a store.

use super::array_state::ArrayState;
use super::container::StoreContext;
use super::dimension_names;
use super::resize;
use super::transfer::Transferring;
use hyperslab_core::{
    Array, ArraySpec, Error, MemoryView, MemoryViewMut, Result, Selection, Strings, TransferMode, agree,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One rank's handle on an array.
#[derive(Debug)]
pub struct ZarrArray {
    context: Arc<StoreContext>,
    state: Arc<ArrayState>,
    closed: AtomicBool,
}

impl ZarrArray {
    pub(super) fn new(context: Arc<StoreContext>, state: Arc<ArrayState>) -> Self {
        Self { context, state, closed: AtomicBool::new(false) }
    }

    fn check_open(&self, operation: &'static str) -> Result<()> {
        self.context.check_open(operation)?;
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::invalid(operation, "the array has been closed"));
        }
        Ok(())
    }

    fn named(&self, error: Error) -> Error {
        error.backend("zarr").target(&self.state.name)
    }

    fn transfer<T>(&self, run: impl FnOnce(Transferring<'_>) -> Result<T>) -> Result<T> {
        let current = self.state.reading();
        run(Transferring {
            state: &self.state,
            current: &current,
            files: &self.context.files,
            threads: self.context.options.threads,
            many_processes: self.context.many_processes(),
        })
    }
}

impl Array for ZarrArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.check_open("describe array").map_err(|e| self.named(e))?;
        let mut spec = self.state.reading().layout.spec();
        spec.dims = spec.dims.map(|names| dimension_names::in_group(names, &self.state.name));
        Ok(spec)
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, how: TransferMode) -> Result<()> {
        let collective = how == TransferMode::Collective && self.context.many_processes();
        self.check_open("write")
            .and_then(|()| self.context.check_writable("write"))
            .and_then(|()| {
                self.transfer(|transfer| match collective {
                    true => transfer.write_collective(&*self.context.comm, selection, memory),
                    false => transfer.write(selection, memory),
                })
            })
            .map_err(|e| self.named(e))
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, _: TransferMode) -> Result<()> {
        self.check_open("read")
            .and_then(|()| self.transfer(|transfer| transfer.read(selection, memory)))
            .map_err(|e| self.named(e))
    }

    /// Independent, also in collective transfers.
    fn write_strings(&self, selection: &Selection, strings: &Strings, _: TransferMode) -> Result<()> {
        self.check_open("write")
            .and_then(|()| self.context.check_writable("write"))
            .and_then(|()| self.transfer(|transfer| transfer.write_strings(selection, strings)))
            .map_err(|e| self.named(e))
    }

    /// Independent, also in collective transfers.
    fn read_strings(&self, selection: &Selection, _: TransferMode) -> Result<Strings> {
        self.check_open("read")
            .and_then(|()| self.transfer(|transfer| transfer.read_strings(selection)))
            .map_err(|e| self.named(e))
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        let comm = &*self.context.comm;
        let checked = self
            .check_open("resize")
            .and_then(|()| self.context.check_writable("resize"))
            .and_then(|()| resize::check(&self.state.reading(), shape));
        // Every rank checks the old shape before rank 0 changes what they share.
        agree(comm, checked.map_err(|e| self.named(e)))?;
        let done = if comm.rank() == 0 { resize::apply(&self.state, &self.context.files, shape) } else { Ok(()) };
        agree(comm, done.map_err(|e| self.named(e)))?;
        let known = self.context.store.array(&self.state.name, true);
        agree(comm, known.map(drop).map_err(|e| self.named(e)))
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        Ok(())
    }
}
