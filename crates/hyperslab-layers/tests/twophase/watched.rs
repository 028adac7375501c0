//! A format that counts the accesses it hands on, and fails when told to.

use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Error, ErrorKind, Format, Hierarchy, MemoryView, MemoryViewMut,
    OpenMode, Result, Selection, Telemetry, TransferMode,
};
use std::path::Path;
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
    hyperslab_core::forward!(self, self.inner, [caps, extension, exists, remove, files]);
    fn name(&self) -> &'static str {
        "watched"
    }
    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(self.hand_on(self.inner.open(path, how, comm)?, comm.rank())))
    }
}

impl Container for Watched<dyn Container> {
    hyperslab_core::forward!(self, self.inner, [write_back, flush, close]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(self.hand_on(self.inner.array(name)?, self.rank)))
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }
}

impl Hierarchy for Watched<dyn Container> {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, create_group, set_attribute, attribute, attributes]);

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(self.hand_on(self.inner.create(name, spec)?, self.rank)))
    }
}

impl Telemetry for Watched<dyn Container> {
    fn diagnostics(&self) -> Vec<String> {
        vec!["watched".into()]
    }
}

impl Array for Watched<dyn Array> {
    hyperslab_core::forward!(self, self.inner, [spec, write_strings, read_strings, resize, close]);
    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.note(selection, transfer)?;
        self.inner.write(selection, memory, transfer)
    }
    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.note(selection, transfer)?;
        self.inner.read(selection, memory, transfer)
    }
}
