//! The null format: writes are validated and discarded, reads leave the buffer unchanged. Measures the overhead of
//! everything above a format.
//!
//! Array metadata (not elements) is kept for the life of the process, by path, so that a later open for reading finds
//! the arrays of an earlier one. Two limits bound its memory:
//! * Beyond [`REMEMBERED_ARRAYS`] arrays in the process the oldest are evicted; opening one again fails with
//!   `NotFound`. Open arrays stay usable.
//! * Each container keeps its first 4096 attributes of up to 4 KiB and discards others.
//!
//! Containers themselves (some hundred bytes each) are kept until removed.
//!
//! `remove`, `Create` and `Truncate` forget the container at their path. Nothing ever exists, so `Create` refuses no
//! path.

use crate::FormatEntry;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Caps, Communicator, Container, DataModel, Dims, Durability, Error, ErrorKind,
    Execution, FilterSet, Format, Hierarchy, MAX_RANK, MemoryView, MemoryViewMut, OpenMode, Result, Selection,
    StackElement, Strings, TransferMode, agree, dims, lock,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// The registry's line.
pub const ENTRY: FormatEntry = FormatEntry {
    name: "null",
    about: "nowhere: discards writes, to measure what the rest costs",
    options: &[],
    build: Some(build),
    interfaces: &["DUMMY"],
    ..FormatEntry::NONE
};

/// Maximum number of arrays whose metadata is kept in the process.
pub const REMEMBERED_ARRAYS: usize = 1 << 18;

const ATTRIBUTES: usize = 4096;
const ATTRIBUTE_SIZE: usize = 4096;

fn build(_element: &StackElement) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(Null))
}

/// The null format.
#[derive(Debug, Clone, Copy, Default)]
pub struct Null;

/// Metadata of an array. The shape is separate from the specification, so that transfers read it without a lock.
#[derive(Debug)]
struct Remembered {
    spec: ArraySpec,
    element: u64,
    extents: Box<[AtomicU64]>,
}

impl Remembered {
    fn shape(&self) -> Dims {
        self.extents.iter().map(|extent| extent.load(Ordering::Relaxed)).collect()
    }
}

/// Metadata of a container.
#[derive(Debug, Default)]
struct Names {
    arrays: BTreeMap<String, Arc<Remembered>>,
    attributes: BTreeMap<(String, String), Attribute>,
}

type SharedNames = Arc<Mutex<Names>>;

#[derive(Debug, Default)]
struct Registry {
    containers: HashMap<PathBuf, SharedNames>,
    /// Arrays in order of creation, oldest first.
    order: VecDeque<(std::sync::Weak<Mutex<Names>>, String)>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

/// Runs `work` once per process; all ranks succeed or fail alike. Collective.
fn once<T: Default>(comm: &dyn Communicator, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let mine = if comm.rank() == 0 || !comm.one_process() { work() } else { Ok(T::default()) };
    agree(comm, mine)
}

impl Format for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn caps(&self) -> Caps {
        Caps {
            data: DataModel {
                readable: false,
                persistent: false,
                resize: true,
                shared_growth: false,
                chunks: true,
                compound: true,
                strings: true,
                partial_fields: true,
                fill_value: true,
                attributes: true,
                groups: true,
                dimension_names: false,
                max_rank: MAX_RANK,
            },
            execution: Execution {
                concurrent_writers: true,
                serialises_ranks: false,
                collective: false,
                many_processes: true,
                prefetch: false,
                relocates_chunks: false,
            },
            filters: FilterSet::ALL,
        }
    }

    fn extension(&self) -> &'static str {
        ""
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        once(&**comm, || {
            if matches!(how, OpenMode::Create | OpenMode::Truncate) {
                lock(&REGISTRY).containers.insert(path.into(), SharedNames::default());
            }
            Ok(())
        })?;
        let found = lock(&REGISTRY).containers.get(path).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "open", "nothing of this name was written to null by this process")
                .backend("null")
                .target(path.display())
        });
        let names = agree(&**comm, found)?;
        let writable = how != OpenMode::Read;
        Ok(Arc::new(NullContainer { names, comm: comm.clone(), writable, closed: Arc::default() }))
    }

    fn exists(&self, _path: &Path) -> Result<bool> {
        Ok(false)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        lock(&REGISTRY).containers.remove(path);
        Ok(())
    }

    fn files(&self, _path: &Path) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }
}

#[derive(Debug)]
struct NullContainer {
    names: SharedNames,
    comm: Arc<dyn Communicator>,
    writable: bool,
    closed: Arc<AtomicBool>,
}

fn is_closed(operation: &'static str) -> Error {
    Error::invalid(operation, "it is closed").backend("null")
}

fn read_only(operation: &'static str) -> Error {
    Error::invalid(operation, "the container is open for reading only").backend("null")
}

impl NullContainer {
    fn check(&self, operation: &'static str, writes: bool) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(is_closed(operation));
        }
        if writes && !self.writable {
            return Err(read_only(operation));
        }
        Ok(())
    }

    fn handle(&self, array: Arc<Remembered>) -> Arc<dyn Array> {
        Arc::new(NullArray {
            array,
            comm: self.comm.clone(),
            writable: self.writable,
            container_closed: self.closed.clone(),
            closed: AtomicBool::new(false),
        })
    }

    fn find(&self, operation: &'static str, name: &str) -> Result<Arc<Remembered>> {
        lock(&self.names).arrays.get(name).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, operation, "no array of this name is remembered")
                .backend("null")
                .target(name)
        })
    }
}

/// Validates arguments regardless of what exists; each rank checks its own.
fn check_new(name: &str, spec: &ArraySpec) -> Result<()> {
    spec.check()?;
    if name.is_empty() || spec.dtype.size() == 0 {
        return Err(Error::invalid("create", "an array needs a name and elements of at least one byte"));
    }
    Ok(())
}

fn remember(names: &SharedNames, name: &str, spec: &ArraySpec) -> Result<()> {
    let extents = spec.shape.iter().map(|&extent| AtomicU64::new(extent)).collect();
    let array = Remembered { element: spec.dtype.size(), spec: spec.clone(), extents };
    let mut registry = lock(&REGISTRY);
    {
        let mut names = lock(names);
        if names.arrays.contains_key(name) {
            return Err(Error::new(ErrorKind::AlreadyExists, "create", "an array of this name exists"));
        }
        names.arrays.insert(name.into(), Arc::new(array));
    }
    registry.order.push_back((Arc::downgrade(names), name.into()));
    while registry.order.len() > REMEMBERED_ARRAYS {
        let Some((container, name)) = registry.order.pop_front() else { break };
        if let Some(names) = container.upgrade() {
            lock(&names).arrays.remove(&name);
        }
    }
    Ok(())
}

impl Container for NullContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let found = self.check("open array", false).and_then(|()| self.find("open array", name));
        Ok(self.handle(agree(&*self.comm, found)?))
    }

    fn write_back(&self) -> Result<()> {
        self.check("write back", false)
    }

    fn flush(&self, _how: Durability) -> Result<()> {
        self.check("flush", false)
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Hierarchy for NullContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.check("list arrays", false)?;
        Ok(lock(&self.names).arrays.keys().cloned().collect())
    }

    fn create_group(&self, _name: &str) -> Result<()> {
        self.check("create group", true)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let located = |error: Error| error.backend("null").target(name);
        let judged = self.check("create", true).and_then(|()| check_new(name, spec).map_err(located));
        agree(&*self.comm, judged)?;
        once(&*self.comm, || remember(&self.names, name, spec).map_err(located))?;
        Ok(self.handle(agree(&*self.comm, self.find("create", name))?))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        once(&*self.comm, || {
            self.check("set attribute", true)?;
            let mut names = lock(&self.names);
            let key = (object.to_string(), name.to_string());
            let room = names.attributes.len() < ATTRIBUTES || names.attributes.contains_key(&key);
            if room && value.data.len() <= ATTRIBUTE_SIZE {
                names.attributes.insert(key, value.clone());
            }
            Ok(())
        })
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.check("read attribute", false)?;
        lock(&self.names).attributes.get(&(object.to_string(), name.to_string())).cloned().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "read attribute", "no attribute of this name is remembered")
                .backend("null")
                .target(format!("{object}@{name}"))
        })
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.check("list attributes", false)?;
        let names = lock(&self.names);
        Ok(names.attributes.keys().filter(|(of, _)| of == object).map(|(_, name)| name.clone()).collect())
    }
}

#[derive(Debug)]
struct NullArray {
    array: Arc<Remembered>,
    comm: Arc<dyn Communicator>,
    writable: bool,
    container_closed: Arc<AtomicBool>,
    closed: AtomicBool,
}

impl NullArray {
    fn check_open(&self, operation: &'static str) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) || self.container_closed.load(Ordering::Relaxed) {
            return Err(is_closed(operation));
        }
        Ok(())
    }

    /// Validates a transfer as any other format would. Allocates nothing, takes no lock.
    fn check_transfer(&self, operation: &'static str, selection: &Selection) -> Result<()> {
        self.check_open(operation)?;
        let extents = &self.array.extents;
        let inside = selection.rank() == extents.len()
            && selection.slabs().iter().all(|slab| {
                slab.ranges().iter().zip(extents).all(|(span, extent)| span.end() <= extent.load(Ordering::Relaxed))
            });
        if inside { Ok(()) } else { selection.check_inside(&self.array.shape()).map_err(|e| e.backend("null")) }
    }
}

impl Array for NullArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.check_open("describe")?;
        Ok(ArraySpec { shape: self.array.shape(), ..self.array.spec.clone() })
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, _transfer: TransferMode) -> Result<()> {
        self.check_transfer("write", selection)?;
        if !self.writable {
            return Err(read_only("write"));
        }
        if memory.layout.is_packed() && memory.data.len() as u64 == selection.len() * self.array.element {
            return Ok(());
        }
        memory.check(&self.array.spec.dtype, selection.len())
    }

    fn write_strings(&self, selection: &Selection, strings: &Strings, _transfer: TransferMode) -> Result<()> {
        self.check_transfer("write", selection)?;
        match self.writable {
            true => strings.check_for(selection.len()),
            false => Err(read_only("write")),
        }
    }

    /// Empty ones.
    fn read_strings(&self, selection: &Selection, _transfer: TransferMode) -> Result<Strings> {
        self.check_transfer("read", selection)?;
        Ok((0..selection.len()).map(|_| "").collect())
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, _transfer: TransferMode) -> Result<()> {
        self.check_transfer("read", selection)?;
        if memory.layout.is_packed() && memory.data.len() as u64 == selection.len() * self.array.element {
            return Ok(());
        }
        memory.check(&self.array.spec.dtype, selection.len())
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        once(&*self.comm, || {
            self.check_open("resize")?;
            if !self.writable {
                return Err(read_only("resize"));
            }
            dims::byte_count(shape, self.array.element)?;
            let spec = ArraySpec { shape: shape.into(), ..self.array.spec.clone() };
            if spec.max_shape.is_none() || shape.len() != self.array.extents.len() {
                return Err(Error::invalid("resize", "the array has no such maximum shape").backend("null"));
            }
            spec.check().map_err(|error| error.backend("null"))?;
            for (extent, &new) in self.array.extents.iter().zip(shape) {
                extent.store(new, Ordering::Relaxed);
            }
            Ok(())
        })
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyperslab_comm::{Solo, Threads};
    use hyperslab_core::{Datatype, MemoryLayout};

    fn create(path: &str) -> Arc<dyn Container> {
        Null.open(Path::new(path), OpenMode::Create, &Solo::shared()).unwrap()
    }

    #[test]
    fn arrays_are_remembered_until_removed() {
        let path = Path::new("null/remembered");
        let container = create("null/remembered");
        let mut spec = ArraySpec::new(Datatype::F64, &[4, 5]);
        spec.max_shape = Some(vec![None, Some(5)]);
        let array = container.create("g/a", &spec).unwrap();
        assert_eq!(container.create("g/a", &spec).unwrap_err().kind(), ErrorKind::AlreadyExists);
        array.resize(&[9, 5]).unwrap();
        assert!(array.resize(&[9, 6]).is_err());
        container.set_attribute("g/a", "unit", &Attribute::text("K")).unwrap();
        container.close().unwrap();
        assert!(array.spec().is_err());

        let again = Null.open(path, OpenMode::Read, &Solo::shared()).unwrap();
        assert_eq!(again.arrays().unwrap(), ["g/a"]);
        assert_eq!(again.attribute("g/a", "unit").unwrap().as_text(), Some("K"));
        let array = again.array("g/a").unwrap();
        assert_eq!(array.spec().unwrap().shape.as_slice(), [9, 5]);
        assert!(array.write(&Selection::empty(2), MemoryView::packed(&[]), TransferMode::Independent).is_err());
        Null.remove(path).unwrap();
        assert_eq!(Null.open(path, OpenMode::Read, &Solo::shared()).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn transfers_are_checked_and_discarded() {
        let container = create("null/transfers");
        let array = container.create("a", &ArraySpec::new(Datatype::I32, &[4, 4])).unwrap();
        let column = Selection::dense(&[0, 1], &[4, 1]).unwrap();
        array.write(&column, MemoryView::packed(&[1; 16]), TransferMode::Independent).unwrap();
        assert!(array.write(&column, MemoryView::packed(&[1; 15]), TransferMode::Independent).is_err());
        let layout = MemoryLayout::member(12, 8);
        array.write(&column, MemoryView { data: &[0; 48], layout: &layout }, TransferMode::Independent).unwrap();
        let mut buffer = [7; 16];
        array.read(&column, MemoryViewMut::packed(&mut buffer), TransferMode::Collective).unwrap();
        assert_eq!(buffer, [7; 16]);
        let outside = Selection::dense(&[0, 4], &[1, 1]).unwrap();
        assert!(array.write(&outside, MemoryView::packed(&[1; 4]), TransferMode::Independent).is_err());
        array.close().unwrap();
        assert!(array.write(&column, MemoryView::packed(&[1; 16]), TransferMode::Independent).is_err());
    }

    #[test]
    fn thread_ranks_share_what_is_remembered() {
        Threads::run(3, |comm| {
            let container = Null.open(Path::new("null/threads"), OpenMode::Truncate, &comm)?;
            let array = container.create("a", &ArraySpec::new(Datatype::U8, &[3]))?;
            let mine = Selection::dense(&[comm.rank() as u64], &[1])?;
            array.write(&mine, MemoryView::packed(&[1]), TransferMode::Independent)?;
            let twice = container.create("a", &ArraySpec::new(Datatype::U8, &[3]));
            assert!(twice.is_err());
            container.close()
        })
        .unwrap();
    }
}
