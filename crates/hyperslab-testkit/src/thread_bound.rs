//! A format whose arrays may be entered only by the thread that opened them: what is above must leave them to it.

use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Bytes, Caps, Communicator, Container, Durability, Error, Format,
    MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Request, Result, Selection, Strings, TransferMode,
};
use std::path::{Path, PathBuf};
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
    fn name(&self) -> &'static str {
        "pinned"
    }

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn extension(&self) -> &'static str {
        self.inner.extension()
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(PinnedContainer { inner: self.inner.open(path, how, comm)?, free: self.free }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.inner.files(path)
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
    fn arrays(&self) -> Result<Vec<String>> {
        self.inner.arrays()
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.inner.groups()
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.inner.create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        Ok(self.wrap(name, self.inner.create(name, spec)?))
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        Ok(self.wrap(name, self.inner.array(name)?))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.inner.set_attribute(object, name, value)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.inner.attribute(object, name)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.inner.attributes(object)
    }

    fn diagnostics(&self) -> Vec<String> {
        self.inner.diagnostics()
    }

    fn background(&self) -> BackgroundStats {
        self.inner.background()
    }

    fn write_back(&self) -> Result<()> {
        self.inner.write_back()
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.inner.flush(how)
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
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

    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.enter()?.explain(selection, layout, writes)
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
