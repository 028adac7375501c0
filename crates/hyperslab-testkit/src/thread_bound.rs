//! A format whose arrays may be entered only by the thread that opened them: what is above must leave them to it.

use hyperslab_core::{
    Array, ArraySpec, Bytes, Communicator, Container, Error, Format, Hierarchy, MemoryLayout, MemoryView,
    MemoryViewMut, OpenMode, Request, Result, Selection, Strings, Telemetry, TransferMode,
};
use std::path::Path;
use std::sync::Arc;
use std::thread::ThreadId;

/// Another format, with arrays that fail when another thread enters them.
#[derive(Debug)]
pub struct Pinned {
    inner: Arc<dyn Format>,
    /// Names of arrays that begin so are left as they are.
    free: &'static str,
}

impl Pinned {
    /// Arrays whose names begin with `free` may be entered by every thread.
    pub fn new(inner: Arc<dyn Format>, free: &'static str) -> Self {
        Self { inner, free }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for Pinned {
    hyperslab_core::forward!(self, self.inner, [caps, extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        "pinned"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(PinnedContainer { inner: self.inner.open(path, how, comm)?, free: self.free }))
    }
}

#[derive(Debug)]
struct PinnedContainer {
    inner: Arc<dyn Container>,
    free: &'static str,
}

impl PinnedContainer {
    fn wrap(&self, name: &str, inner: Arc<dyn Array>) -> Arc<dyn Array> {
        match name.starts_with(self.free) {
            true => inner,
            false => Arc::new(PinnedArray { inner, owner: std::thread::current().id() }),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for PinnedContainer {
    hyperslab_core::forward!(self, self.inner, [telemetry, write_back, flush, close]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        Ok(self.wrap(name, self.inner.array(name)?))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for PinnedContainer {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, create_group, set_attribute, attribute, attributes]);

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        Ok(self.wrap(name, self.inner.create(name, spec)?))
    }
}

#[derive(Debug)]
struct PinnedArray {
    inner: Arc<dyn Array>,
    owner: ThreadId,
}

impl PinnedArray {
    fn enter(&self) -> Result<&dyn Array> {
        match std::thread::current().id() == self.owner {
            true => Ok(&*self.inner),
            false => Err(Error::invalid("enter array", "another thread opened it")),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for PinnedArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.enter()?.spec()
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.enter()?.write(selection, memory, transfer)
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.enter()?.read(selection, memory, transfer)
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        self.enter()?.write_strings(selection, strings, transfer)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.enter()?.read_strings(selection, transfer)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        self.enter()?.write_many(parts, transfer)
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        self.enter()?.submit_write(selection, data, layout, transfer)
    }

    fn prefetch(&self, selection: &Selection) {
        if let Ok(inner) = self.enter() {
            inner.prefetch(selection);
        }
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn allows_background_io(&self) -> bool {
        false
    }

    fn object(&self) -> Option<u64> {
        self.enter().ok()?.object()
    }

    fn write_back(&self) -> Result<()> {
        self.enter()?.write_back()
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.enter()?.resize(shape)
    }

    fn close(&self) -> Result<()> {
        self.enter()?.close()
    }
}

impl Telemetry for PinnedArray {
    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.enter()?.explain(selection, layout, writes)
    }
}
