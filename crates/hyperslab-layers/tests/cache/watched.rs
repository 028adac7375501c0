//! A format that notes the reads and hints it hands on.

use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Bytes, Caps, Communicator, Container, Durability, Format,
    MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Request, Result, Selection, Strings, TransferMode,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// What was seen, over all ranks.
#[derive(Debug, Default)]
pub struct Seen {
    /// Selections that were read.
    pub reads: Mutex<Vec<Selection>>,
    /// Selections that were said to be read soon.
    pub hints: Mutex<Vec<Selection>>,
    /// Whether the format says that it makes no use of hints.
    pub without_hints: bool,
}

impl Seen {
    /// The reads since the last call.
    pub fn take_reads(&self) -> Vec<Selection> {
        std::mem::take(&mut *self.reads.lock().unwrap())
    }
}

#[derive(Debug)]
pub struct Watched<T: ?Sized> {
    pub inner: Arc<T>,
    pub seen: Arc<Seen>,
}

impl<T: ?Sized> Watched<T> {
    fn hand_on<U: ?Sized>(&self, inner: Arc<U>) -> Watched<U> {
        Watched { inner, seen: self.seen.clone() }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for Watched<dyn Format> {
    fn name(&self) -> &'static str {
        "watched"
    }
    fn caps(&self) -> Caps {
        Caps { prefetch: !self.seen.without_hints, ..self.inner.caps() }
    }
    fn extension(&self) -> &'static str {
        self.inner.extension()
    }
    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(self.hand_on(self.inner.open(path, how, comm)?)))
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

#[deny(clippy::missing_trait_methods)]
impl Container for Watched<dyn Container> {
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
        Ok(Arc::new(self.hand_on(self.inner.create(name, spec)?)))
    }
    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(self.hand_on(self.inner.array(name)?)))
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

#[deny(clippy::missing_trait_methods)]
impl Array for Watched<dyn Array> {
    fn spec(&self) -> Result<ArraySpec> {
        self.inner.spec()
    }
    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.inner.write(selection, memory, transfer)
    }
    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.seen.reads.lock().unwrap().push(selection.clone());
        self.inner.read(selection, memory, transfer)
    }
    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        self.inner.write_strings(selection, strings, transfer)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.inner.read_strings(selection, transfer)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        self.inner.write_many(parts, transfer)
    }
    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        self.inner.submit_write(selection, data, layout, transfer)
    }
    fn prefetch(&self, selection: &Selection) {
        self.seen.hints.lock().unwrap().push(selection.clone());
        self.inner.prefetch(selection);
    }

    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.inner.explain(selection, layout, writes)
    }

    fn allows_background_io(&self) -> bool {
        self.inner.allows_background_io()
    }

    fn object(&self) -> Option<u64> {
        self.inner.object()
    }

    fn write_back(&self) -> Result<()> {
        self.inner.write_back()
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.inner.resize(shape)
    }
    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}
