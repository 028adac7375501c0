//! A container opened once and reference-counted by several layers, each of which sees an open container and arrays of its
//! own.

use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Durability, Format, Hierarchy, NoTelemetry, OpenMode, Result, Telemetry,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The container and its users.
#[derive(Debug)]
pub(super) struct SharedContainer {
    container: Arc<dyn Container>,
    /// Number of users that have not closed it.
    users: AtomicUsize,
    /// While set, calls of further users that repeat one are not forwarded.
    again: AtomicBool,
    /// The array opened last, shared with users that open it next.
    latest: Mutex<Option<(String, SharedArray)>>,
}

/// A reference-counted array.
#[derive(Debug, Clone)]
struct SharedArray {
    array: Arc<dyn Array>,
    users: Arc<AtomicUsize>,
}

impl SharedContainer {
    pub fn new(container: Arc<dyn Container>) -> Arc<Self> {
        let (users, again) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { container, users, again, latest: Mutex::default() })
    }

    /// The container itself.
    pub fn container(&self) -> &Arc<dyn Container> {
        &self.container
    }

    /// A reference for one more user.
    pub fn share(self: &Arc<Self>) -> Arc<dyn Container> {
        self.users.fetch_add(1, Ordering::AcqRel);
        Arc::new(ContainerRef(self.clone()))
    }

    /// Runs repetitions of a call by further users, without forwarding them.
    pub fn repeat<T>(&self, calls: impl FnOnce() -> T) -> T {
        self.again.store(true, Ordering::Release);
        let result = calls();
        self.again.store(false, Ordering::Release);
        result
    }

    /// Forgets the latest array, so that the next one is opened anew.
    pub fn forget_latest(&self) {
        self.latest().take();
    }

    fn latest(&self) -> MutexGuard<'_, Option<(String, SharedArray)>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_again(&self) -> bool {
        self.again.load(Ordering::Acquire)
    }

    fn opened(self: &Arc<Self>, name: &str, array: Arc<dyn Array>) -> Arc<dyn Array> {
        let array = SharedArray { array, users: Arc::new(AtomicUsize::new(1)) };
        *self.latest() = Some((name.into(), array.clone()));
        self.used_by_one_more(array)
    }

    fn used_by_one_more(self: &Arc<Self>, array: SharedArray) -> Arc<dyn Array> {
        Arc::new(ArrayRef { array, container: self.clone(), closed: AtomicBool::new(false) })
    }
}

/// The format that the layers wrap instead of the one below. The first open opens the container, with its communicator;
/// others share it.
#[derive(Debug)]
pub(super) struct SharedFormat {
    pub format: Arc<dyn Format>,
    container: OnceLock<Arc<SharedContainer>>,
}

impl SharedFormat {
    pub fn new(format: Arc<dyn Format>) -> Arc<Self> {
        Arc::new(Self { format, container: OnceLock::new() })
    }

    /// The container, if it is open.
    pub fn container(&self) -> Option<&Arc<SharedContainer>> {
        self.container.get()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for SharedFormat {
    hyperslab_core::forward!(self, self.format, [name, caps, extension, exists, remove, files]);

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        if let Some(shared) = self.container.get() {
            return Ok(shared.share());
        }
        let container = self.format.open(path, how, comm)?;
        Ok(self.container.get_or_init(|| SharedContainer::new(container)).share())
    }
}

/// A user's reference to the container.
#[derive(Debug)]
struct ContainerRef(Arc<SharedContainer>);

#[deny(clippy::missing_trait_methods)]
impl Container for ContainerRef {
    hyperslab_core::forward!(self, self.0.container, [write_back]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let latest = self.0.latest().as_ref().filter(|(known, _)| known == name).map(|(_, array)| array.clone());
        if let Some(array) = latest {
            array.users.fetch_add(1, Ordering::AcqRel);
            return Ok(self.0.used_by_one_more(array));
        }
        self.0.container.array(name).map(|array| self.0.opened(name, array))
    }

    /// Reported once, by the owner.
    fn telemetry(&self) -> &dyn Telemetry {
        &NoTelemetry
    }

    fn flush(&self, how: Durability) -> Result<()> {
        if self.0.is_again() { Ok(()) } else { self.0.container.flush(how) }
    }

    /// Closed by the last user.
    fn close(&self) -> Result<()> {
        match self.0.users.fetch_sub(1, Ordering::AcqRel) {
            1 => self.0.container.close(),
            _ => Ok(()),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for ContainerRef {
    hyperslab_core::forward!(
        self,
        self.0.container,
        [arrays, groups, create_group, set_attribute, attribute, attributes]
    );

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.0.container.create(name, spec).map(|array| self.0.opened(name, array))
    }
}

/// A user's reference to an array.
#[derive(Debug)]
struct ArrayRef {
    array: SharedArray,
    container: Arc<SharedContainer>,
    closed: AtomicBool,
}

#[deny(clippy::missing_trait_methods)]
impl Array for ArrayRef {
    hyperslab_core::forward!(
        self,
        self.array.array,
        [
            spec,
            write,
            read,
            write_strings,
            read_strings,
            write_many,
            submit_write,
            prefetch,
            telemetry,
            allows_background_io,
            object,
            write_back
        ]
    );

    fn resize(&self, shape: &[u64]) -> Result<()> {
        if self.container.is_again() { Ok(()) } else { self.array.array.resize(shape) }
    }

    /// Closed by the last user.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match self.array.users.fetch_sub(1, Ordering::AcqRel) {
            1 => self.array.array.close(),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{Datatype, MemoryView, MemoryViewMut, Selection, TransferMode};

    #[test]
    fn the_last_user_closes() {
        let format = hyperslab_testkit::Memory;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let container = format.open(&path, OpenMode::Create, &hyperslab_comm::Solo::shared()).unwrap();
        let shared = SharedContainer::new(container);
        let (first, second) = (shared.share(), shared.share());
        let spec = ArraySpec::new(Datatype::U8, &[4]);
        let array = first.create("a", &spec).unwrap();
        let same = second.array("a").unwrap();
        shared.forget_latest();
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
        shared.repeat(|| same.resize(&[9])).unwrap();
        assert_eq!(same.spec().unwrap().shape.as_slice(), [4]);
        second.close().unwrap();
        assert!(same.read(&all, MemoryViewMut::packed(&mut read), TransferMode::Independent).is_err());
    }
}
