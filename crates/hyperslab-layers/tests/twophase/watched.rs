//! A format that counts the accesses it hands on, and fails when told to.

use hyperslab_core::{
    Array, ArraySpec, Attribute, Caps, Communicator, Container, Durability, Error, ErrorKind, Format, MemoryView,
    MemoryViewMut, OpenMode, Result, Selection, Strings, TransferMode,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// What was seen, over all ranks.
#[derive(Debug, Default)]
pub struct Seen {
    /// Accesses that were not empty: the rank, the elements and the slabs of the selection.
    pub accesses: Mutex<Vec<(usize, u64, usize)>>,
    /// Collective transfers.
    pub collective: AtomicU64,
    /// Whether transfers of anything are to fail.
    pub fail: AtomicBool,
}

#[derive(Debug)]
pub struct Watched<T: ?Sized> {
    pub inner: Arc<T>,
    pub seen: Arc<Seen>,
    pub rank: usize,
}

impl<T: ?Sized> Watched<T> {
    fn note(&self, selection: &Selection, transfer: TransferMode) -> Result<()> {
        if transfer == TransferMode::Collective {
            self.seen.collective.fetch_add(1, SeqCst);
        }
        if selection.is_empty() {
            return Ok(());
        }
        self.seen.accesses.lock().unwrap().push((self.rank, selection.len(), selection.slabs().len()));
        match self.seen.fail.load(SeqCst) {
            true => Err(Error::new(ErrorKind::NoSpace, "transfer", "the test's disk is full")),
            false => Ok(()),
        }
    }

    fn hand_on<U: ?Sized>(&self, inner: Arc<U>, rank: usize) -> Watched<U> {
        Watched { inner, seen: self.seen.clone(), rank }
    }
}

impl Format for Watched<dyn Format> {
    fn name(&self) -> &'static str {
        "watched"
    }
    fn caps(&self) -> Caps {
        self.inner.caps()
    }
    fn extension(&self) -> &'static str {
        self.inner.extension()
    }
    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(self.hand_on(self.inner.open(path, how, comm)?, comm.rank())))
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
        Ok(Arc::new(self.hand_on(self.inner.create(name, spec)?, self.rank)))
    }
    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(self.hand_on(self.inner.array(name)?, self.rank)))
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
        vec!["watched".into()]
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

impl Array for Watched<dyn Array> {
    fn spec(&self) -> Result<ArraySpec> {
        self.inner.spec()
    }
    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.note(selection, transfer)?;
        self.inner.write(selection, memory, transfer)
    }
    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.note(selection, transfer)?;
        self.inner.read(selection, memory, transfer)
    }
    fn write_strings(&self, selection: &Selection, strings: &Strings, transfer: TransferMode) -> Result<()> {
        self.note(selection, transfer)?;
        self.inner.write_strings(selection, strings, transfer)
    }

    fn read_strings(&self, selection: &Selection, transfer: TransferMode) -> Result<Strings> {
        self.note(selection, transfer)?;
        self.inner.read_strings(selection, transfer)
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        self.inner.resize(shape)
    }
    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}
