//! A format that notes the reads and hints it hands on.

use hyperslab_core::{
    Array, ArraySpec, Caps, Communicator, Container, Format, Hierarchy, MemoryViewMut, OpenMode, Result, Selection,
    TransferMode,
};
use std::path::Path;
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
    hyperslab_core::forward!(self, self.inner, [extension, exists, remove, files]);
    fn name(&self) -> &'static str {
        "watched"
    }
    fn caps(&self) -> Caps {
        let mut caps = self.inner.caps();
        caps.execution.prefetch = !self.seen.without_hints;
        caps
    }
    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(self.hand_on(self.inner.open(path, how, comm)?)))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for Watched<dyn Container> {
    hyperslab_core::forward!(self, self.inner, [telemetry, write_back, flush, close]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(self.hand_on(self.inner.array(name)?)))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for Watched<dyn Container> {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, create_group, set_attribute, attribute, attributes]);

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        Ok(Arc::new(self.hand_on(self.inner.create(name, spec)?)))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Array for Watched<dyn Array> {
    hyperslab_core::forward!(
        self,
        self.inner,
        [
            spec,
            write,
            write_strings,
            read_strings,
            write_many,
            submit_write,
            telemetry,
            allows_background_io,
            object,
            write_back,
            resize,
            close
        ]
    );

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.seen.reads.lock().unwrap().push(selection.clone());
        self.inner.read(selection, memory, transfer)
    }

    fn prefetch(&self, selection: &Selection) {
        self.seen.hints.lock().unwrap().push(selection.clone());
        self.inner.prefetch(selection);
    }
}
