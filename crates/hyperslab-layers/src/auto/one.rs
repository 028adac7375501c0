//! One open container for several layers: each thinks that it has opened it, and its arrays, alone.

use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Bytes, Caps, Communicator, Container, Durability, Format,
    MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Request, Result, Selection, TransferMode,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The container, and who uses it.
#[derive(Debug)]
pub(super) struct One {
    container: Arc<dyn Container>,
    /// Those that have not closed it.
    users: AtomicUsize,
    /// What one of them has just done and the others do after it is not done again.
    again: AtomicBool,
    /// The array that was opened last, for those that open it after.
    latest: Mutex<Option<(String, OneArray)>>,
}

/// An array of it, and how many use that.
#[derive(Debug, Clone)]
struct OneArray {
    array: Arc<dyn Array>,
    users: Arc<AtomicUsize>,
}

impl One {
    pub fn new(container: Arc<dyn Container>) -> Arc<Self> {
        let (users, again) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { container, users, again, latest: Mutex::default() })
    }

    /// The container itself.
    pub fn container(&self) -> &Arc<dyn Container> {
        &self.container
    }

    /// The container for one more user.
    pub fn share(self: &Arc<Self>) -> Arc<dyn Container> {
        self.users.fetch_add(1, Ordering::AcqRel);
        Arc::new(Share(self.clone()))
    }

    /// Runs calls of other users that repeat what one has done: only they notice.
    pub fn repeat<T>(&self, calls: impl FnOnce() -> T) -> T {
        self.again.store(true, Ordering::Release);
        let result = calls();
        self.again.store(false, Ordering::Release);
        result
    }

    /// The next array is opened anew.
    pub fn forget_latest(&self) {
        self.latest().take();
    }

    fn latest(&self) -> MutexGuard<'_, Option<(String, OneArray)>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_again(&self) -> bool {
        self.again.load(Ordering::Acquire)
    }

    fn opened(self: &Arc<Self>, name: &str, array: Arc<dyn Array>) -> Arc<dyn Array> {
        let one = OneArray { array, users: Arc::new(AtomicUsize::new(1)) };
        *self.latest() = Some((name.into(), one.clone()));
        self.used_by_one_more(one)
    }

    fn used_by_one_more(self: &Arc<Self>, one: OneArray) -> Arc<dyn Array> {
        Arc::new(ShareOfArray { one, container: self.clone(), closed: AtomicBool::new(false) })
    }
}

/// What layers wrap instead of the format below, to open one container of it. The first that opens it does so for all, with its
/// own group of ranks.
#[derive(Debug)]
pub(super) struct OneFormat {
    pub format: Arc<dyn Format>,
    one: OnceLock<Arc<One>>,
}

impl OneFormat {
    pub fn new(format: Arc<dyn Format>) -> Arc<Self> {
        Arc::new(Self { format, one: OnceLock::new() })
    }

    /// The container, if somebody has opened it.
    pub fn one(&self) -> Option<&Arc<One>> {
        self.one.get()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for OneFormat {
    fn name(&self) -> &'static str {
        self.format.name()
    }

    fn caps(&self) -> Caps {
        self.format.caps()
    }

    fn extension(&self) -> &'static str {
        self.format.extension()
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        if let Some(one) = self.one.get() {
            return Ok(one.share());
        }
        let container = self.format.open(path, how, comm)?;
        Ok(self.one.get_or_init(|| One::new(container)).share())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.format.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.format.remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.format.files(path)
    }
}

/// A user's container.
#[derive(Debug)]
struct Share(Arc<One>);

#[deny(clippy::missing_trait_methods)]
impl Container for Share {
    fn arrays(&self) -> Result<Vec<String>> {
        self.0.container.arrays()
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.0.container.groups()
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.0.container.create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.0.container.create(name, spec).map(|array| self.0.opened(name, array))
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let latest = self.0.latest().as_ref().filter(|(known, _)| known == name).map(|(_, one)| one.clone());
        if let Some(one) = latest {
            one.users.fetch_add(1, Ordering::AcqRel);
            return Ok(self.0.used_by_one_more(one));
        }
        self.0.container.array(name).map(|array| self.0.opened(name, array))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.0.container.set_attribute(object, name, value)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.0.container.attribute(object, name)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.0.container.attributes(object)
    }

    /// Told once, by whoever has all users.
    fn diagnostics(&self) -> Vec<String> {
        Vec::new()
    }

    fn background(&self) -> BackgroundStats {
        BackgroundStats::default()
    }

    fn write_back(&self) -> Result<()> {
        self.0.container.write_back()
    }

    fn flush(&self, how: Durability) -> Result<()> {
        if self.0.is_again() { Ok(()) } else { self.0.container.flush(how) }
    }

    /// The last user closes it.
    fn close(&self) -> Result<()> {
        match self.0.users.fetch_sub(1, Ordering::AcqRel) {
            1 => self.0.container.close(),
            _ => Ok(()),
        }
    }
}

/// A user's array.
#[derive(Debug)]
struct ShareOfArray {
    one: OneArray,
    container: Arc<One>,
    closed: AtomicBool,
}

#[deny(clippy::missing_trait_methods)]
impl Array for ShareOfArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.one.array.spec()
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.one.array.write(selection, memory, transfer)
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.one.array.read(selection, memory, transfer)
    }

    fn write_many(&self, parts: &[(&Selection, MemoryView<'_>)], transfer: TransferMode) -> Result<()> {
        self.one.array.write_many(parts, transfer)
    }

    fn submit_write(
        &self,
        selection: &Selection,
        data: Bytes,
        layout: &MemoryLayout,
        transfer: TransferMode,
    ) -> Result<Request> {
        self.one.array.submit_write(selection, data, layout, transfer)
    }

    fn prefetch(&self, selection: &Selection) {
        self.one.array.prefetch(selection);
    }

    fn explain(&self, selection: &Selection, layout: &MemoryLayout, writes: bool) -> Result<Option<String>> {
        self.one.array.explain(selection, layout, writes)
    }

    fn allows_background_io(&self) -> bool {
        self.one.array.allows_background_io()
    }

    fn object(&self) -> Option<u64> {
        self.one.array.object()
    }

    fn write_back(&self) -> Result<()> {
        self.one.array.write_back()
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        if self.container.is_again() { Ok(()) } else { self.one.array.resize(shape) }
    }

    /// The last user closes it.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match self.one.users.fetch_sub(1, Ordering::AcqRel) {
            1 => self.one.array.close(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Datatype;

    #[test]
    fn the_last_user_closes() {
        let format = hyperslab_testkit::Memory;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let container = format.open(&path, OpenMode::Create, &hyperslab_comm::Solo::shared()).unwrap();
        let one = One::new(container);
        let (first, second) = (one.share(), one.share());
        let spec = ArraySpec::new(Datatype::U8, &[4]);
        let array = first.create("a", &spec).unwrap();
        let same = second.array("a").unwrap();
        one.forget_latest();
        array
            .write(&Selection::all(&[4]).unwrap(), MemoryView::packed(&[1, 2, 3, 4]), TransferMode::Independent)
            .unwrap();
        array.close().unwrap();
        array.close().unwrap();
        let mut read = [0; 4];
        let all = Selection::all(&[4]).unwrap();
        same.read(&all, MemoryViewMut::packed(&mut read), TransferMode::Independent).unwrap();
        assert_eq!(read, [1, 2, 3, 4]);
        first.close().unwrap();
        assert_eq!(second.arrays().unwrap(), ["a"]);
        one.repeat(|| same.resize(&[9])).unwrap();
        assert_eq!(same.spec().unwrap().shape.as_slice(), [4]);
        second.close().unwrap();
        assert!(same.read(&all, MemoryViewMut::packed(&mut read), TransferMode::Independent).is_err());
    }
}
