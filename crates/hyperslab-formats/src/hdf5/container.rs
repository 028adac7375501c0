//! An open HDF5 file.

use super::abandoned::{self, Token};
use super::array::{Hdf5Array, Home};
use super::attribute;
use super::cached_by_node;
use super::collective::Collective;
use super::data_plane::{self, Access};
use super::dataspace;
use super::datatype;
use super::diagnostics::Diagnostics;
use super::errors;
use super::guarded::Guarded;
use super::library::{self, Id, done};
use super::objects::{self, Found};
use super::options::{Options, Wanted};
use super::properties;
use super::ranks::Ranks;
use super::storage::{Placement, Storage};
use super::subfiles;
use super::unions::Unions;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::{h5d, h5f, h5g};
use hyperslab_core::{Array, ArraySpec, Attribute, Container, Durability, Error, ErrorKind, Result};
use hyperslab_plane::Limits;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What is open, until it is closed. A container can take it away from its arrays.
pub(super) type Slot = Mutex<Option<Guarded>>;

/// What calls on an open file need, made before it is opened, since failing afterwards would be too late for the others.
#[derive(Debug)]
pub(super) struct Means {
    links: Id,
    arrays: Id,
    objects: Id,
    /// Where ranks are processes; taken by the open file.
    collective: Option<Collective>,
    /// Where ranks are several processes.
    token: Option<Token>,
}

impl Means {
    /// Collective where ranks are processes.
    pub(super) fn new(options: &Options, ranks: &Ranks, writable: bool) -> Result<Self> {
        let several = ranks.are_processes() && ranks.count() > 1;
        let token = several.then(|| Token::new(ranks)).transpose()?;
        library::with(|| {
            Ok(Self {
                links: properties::link_creation()?,
                arrays: properties::array_access(options, ranks, writable)?,
                objects: properties::object_access(options, ranks)?,
                collective: ranks.are_processes().then(|| Collective::new(options)).transpose()?,
                token,
            })
        })
    }
}

/// One rank's handle of an HDF5 file. The ranks of a process share the file inside libhdf5.
#[derive(Debug)]
pub(super) struct Hdf5Container {
    path: PathBuf,
    file: Slot,
    arrays: Mutex<Vec<Weak<Slot>>>,
    home: Arc<Home>,
    options: Arc<Options>,
    /// Made here, so that its directory entry must be made durable too.
    created: bool,
    means: Means,
}

/// The error of a handle used after close.
pub(super) fn closed(operation: &'static str, what: &str) -> Error {
    Error::invalid(operation, format!("the {what} is closed"))
}

/// Refuses to change a file opened for reading.
pub(super) fn refuse_writing(operation: &'static str, writable: bool) -> Result<()> {
    if writable {
        return Ok(());
    }
    Err(Error::invalid(operation, "the file is open for reading only").hint("open it for update"))
}

/// The error of compact arrays among processes.
pub(super) fn refuse_compact(operation: &'static str) -> Error {
    Error::unsupported(operation, "compact arrays lie in the metadata, of which every process would write its own")
        .hint("use layout=contiguous")
}

impl Hdf5Container {
    /// Takes over an open file.
    pub(super) fn new(
        path: &Path,
        file: Guarded,
        ranks: Ranks,
        options: Arc<Options>,
        mut means: Means,
        writable: bool,
        created: bool,
    ) -> Self {
        let diagnostics = Diagnostics::default();
        let access = match options.plane.then(|| access(path, &file, &ranks, &options, writable)) {
            None => None,
            Some(Ok(access)) => Some(access),
            Some(Err(error)) => {
                diagnostics.note(error);
                None
            }
        };
        let (unions, collective) = (Unions::default(), means.collective.take());
        let home = Arc::new(Home { unions, ranks, collective, writable, plane: options.plane, access, diagnostics });
        let (file, arrays) = (Mutex::new(Some(file)), Mutex::default());
        Self { path: path.into(), file, arrays, home, options, created, means }
    }

    /// Runs `body` under the lock with the open file.
    fn with<T>(&self, operation: &'static str, body: impl FnOnce(&Id) -> Result<T>) -> Result<T> {
        match lock(&self.file).as_ref() {
            Some(file) => library::with(|| body(file.id())),
            None => Err(closed(operation, "file")),
        }
        .map_err(|error| self.mark(error))
    }

    fn mark(&self, error: Error) -> Error {
        error.backend(super::NAME).target(self.path.display())
    }

    /// Changes the file; every rank returns when that is done, or an error. `None` where another rank did it.
    fn change<T>(
        &self,
        operation: &'static str,
        checked: Result<()>,
        body: impl FnOnce(&Id) -> Result<T>,
    ) -> Result<Option<T>> {
        let checked = refuse_writing(operation, self.home.writable).and(checked);
        let checked = checked.and_then(|()| self.with(operation, |_| Ok(())));
        self.home.ranks.change(checked.map_err(|error| self.mark(error)), || self.noting(self.with(operation, body)))
    }

    /// Remembers errors that make closing dangerous.
    fn noting<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.home.collective.iter().for_each(|collective| collective.note_error(error)))
    }

    fn open_dataset(&self, name: &str) -> Result<Id> {
        const DOING: &str = "open array";
        let text = objects::path(DOING, name)?;
        self.with(DOING, |file| {
            // SAFETY: file and list are live, the name ends in NUL.
            let raw = unsafe { h5d::H5Dopen2(file.raw(), text.as_ptr(), self.means.arrays.raw()) };
            Id::take(DOING, raw).map_err(|failure| objects::why_not(DOING, file, name, Found::Array, failure))
        })
    }

    fn create_dataset(&self, file: &Id, name: &str, spec: &ArraySpec, storage: &Storage) -> Result<Id> {
        const DOING: &str = "create array";
        let text = objects::path(DOING, name)?;
        let element = datatype::create(&spec.dtype)?;
        let space = dataspace::simple(&spec.shape, spec.max_shape.as_deref())?;
        let creation = {
            let shared = self.home.ranks.are_processes() && self.home.ranks.count() > 1;
            properties::array_creation(spec, storage, &self.options, element.raw(), shared)?
        };
        // SAFETY: every identifier is live, the name ends in NUL.
        let raw = unsafe {
            h5d::H5Dcreate2(
                file.raw(),
                text.as_ptr(),
                element.raw(),
                space.raw(),
                self.means.links.raw(),
                creation.raw(),
                self.means.arrays.raw(),
            )
        };
        Id::take(DOING, raw).map_err(|failure| match objects::probe(DOING, file, name) {
            Ok(Found::Nothing) => failure.target(name),
            Ok(_) => Error::new(ErrorKind::AlreadyExists, DOING, "").target(name),
            Err(on_the_way) => on_the_way.target(name),
        })
    }

    /// Makes an open dataset an array of this container.
    fn adopt(&self, name: &str, dataset: Id, placement: Option<&Placement>) -> Result<Arc<dyn Array>> {
        let array = Hdf5Array::new(name, dataset, self.home.clone(), placement)
            .map_err(|error| error.backend(super::NAME).target(name))?;
        let mut arrays = lock(&self.arrays);
        arrays.retain(|slot| slot.strong_count() > 0);
        arrays.push(Arc::downgrade(array.slot()));
        Ok(Arc::new(array))
    }

    /// Gives back arrays and file; the first error is reported, everything is released.
    fn release(&self, file: Guarded) -> Result<()> {
        // Once for all arrays: flushing them one by one would write their metadata one by one.
        let mut result = self.settle_arrays().and_then(|()| file.flush("close"));
        let flushed = result.is_ok();
        for slot in lock(&self.arrays).drain(..).filter_map(|slot| slot.upgrade()) {
            if let Some(dataset) = lock(&slot).take() {
                if flushed {
                    dataset.note_flushed();
                }
                result = result.and(dataset.close("close"));
            }
        }
        self.home.unions.clear();
        result.and(file.close("close")).map_err(|error| self.mark(error))
    }

    /// Gives libhdf5 what waits in the data plane.
    fn settle_arrays(&self) -> Result<()> {
        let slots: Vec<_> = lock(&self.arrays).iter().filter_map(Weak::upgrade).collect();
        slots.iter().try_for_each(|slot| lock(slot).as_ref().map_or(Ok(()), Guarded::settle))
    }

    fn flush_now(&self, how: Durability) -> Result<()> {
        const DOING: &str = "flush";
        let durable = how == Durability::Durable;
        let descriptor = self.with(DOING, |file| {
            // SAFETY: the file is live.
            done(DOING, unsafe { h5f::H5Fflush(file.raw(), h5f::H5F_scope_t::H5F_SCOPE_GLOBAL) })?;
            let own = durable && !self.home.ranks.are_processes();
            own.then(|| own_descriptor(file)).transpose()
        })?;
        let sync = || {
            match descriptor {
                Some(descriptor) => descriptor.sync_all()?,
                // Every process for its own node's cache: MPI-IO has no descriptor to give.
                None => std::iter::once(self.path.clone())
                    .chain(subfiles::beside(&self.path)?)
                    .try_for_each(|file| File::open(file)?.sync_all())?,
            }
            if self.created { sync_directory(&self.path) } else { Ok(()) }
        };
        if durable { sync().map_err(|e| self.mark(Error::io(DOING, e))) } else { Ok(()) }
    }
}

/// What the data plane needs of an open file.
fn access(path: &Path, file: &Guarded, ranks: &Ranks, options: &Options, writable: bool) -> Result<Access> {
    let opened = if options.driver == Wanted::Subfiling {
        return Err(Error::unsupported("open", "the file is spread over subfiles"));
    } else if ranks.are_processes() {
        let file = File::options().read(true).write(writable).open(path).map_err(|e| Error::io("open", e))?;
        if writable && ranks.count() > 1 {
            cached_by_node::refuse(&file)?;
        }
        file
    } else {
        library::with(|| data_plane::reopen(file.id()))?
    };
    let limits = Limits {
        threads: options.threads.unwrap_or(0) as usize,
        cache: options.cache.unwrap_or(hyperslab_plane::CACHE_BYTES),
    };
    let by_mpi = ranks.are_processes();
    Ok(Access { file: Arc::new(opened), limits, alone: !by_mpi || ranks.count() == 1, by_mpi })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A descriptor of the open file that outlives the lock, so that a slow fsync does not stop other ranks.
fn own_descriptor(file: &Id) -> Result<File> {
    let mut handle: *mut std::ffi::c_void = std::ptr::null_mut();
    // SAFETY: the file is live and uses the default driver, whose handle is a pointer to its descriptor; that stays
    // open while the lock is held, and is duplicated before it is released.
    unsafe {
        done("flush", h5f::H5Fget_vfd_handle(file.raw(), H5P_DEFAULT, &raw mut handle))?;
        if handle.is_null() {
            return Err(errors::last("flush"));
        }
        let borrowed = BorrowedFd::borrow_raw(*handle.cast::<std::ffi::c_int>());
        borrowed.try_clone_to_owned().map(File::from).map_err(|e| Error::io("flush", e))
    }
}

/// Makes the name of a new file durable. File systems that cannot do it have nothing to lose.
fn sync_directory(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(parent)?.sync_all() {
        Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

impl Container for Hdf5Container {
    fn arrays(&self) -> Result<Vec<String>> {
        self.with("list arrays", objects::arrays)
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.with("list groups", objects::groups)
    }

    fn create_group(&self, name: &str) -> Result<()> {
        const DOING: &str = "create group";
        self.change(DOING, objects::path(DOING, name).map(|_| ()), |file| {
            let text = objects::path(DOING, name)?;
            if name.is_empty() {
                return Ok(());
            }
            // SAFETY: file and list are live, the name ends in NUL.
            let raw =
                unsafe { h5g::H5Gcreate2(file.raw(), text.as_ptr(), self.means.links.raw(), H5P_DEFAULT, H5P_DEFAULT) };
            match Id::take(DOING, raw) {
                Ok(group) => group.close(DOING),
                Err(failure) => match objects::probe(DOING, file, name).map_err(|e| e.target(name))? {
                    Found::Group => Ok(()),
                    Found::Nothing => Err(failure.target(name)),
                    _ => Err(Error::new(ErrorKind::AlreadyExists, DOING, "the name is taken").target(name)),
                },
            }
        })
        .map(|_| ())
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        const DOING: &str = "create array";
        let storage = self.home.ranks.agree(self.decide(name, spec))?;
        let made = self.change(DOING, Ok(()), |file| self.create_dataset(file, name, spec, &storage))?;
        let opened = match made {
            Some(dataset) => Ok(dataset),
            None => self.open_dataset(name),
        };
        self.home.ranks.agree(opened.and_then(|dataset| self.adopt(name, dataset, Some(&storage.placement))))
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let checked = objects::path("open array", name).and_then(|_| self.with("open array", |_| Ok(())));
        self.home
            .ranks
            .everyone(checked, || self.open_dataset(name).and_then(|dataset| self.adopt(name, dataset, None)))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        const DOING: &str = "set attribute";
        let mark = |error: Error| error.target(format!("{object}@{name}"));
        let checked = objects::path(DOING, object).and_then(|_| attribute::check(name, value).map_err(mark));
        self.change(DOING, checked, |file| {
            let open = objects::open(DOING, file, object, self.means.objects.raw())?;
            attribute::set(&open, name, value).map_err(mark)
        })
        .map(|_| ())
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.with("read attribute", |file| {
            let open = objects::open("read attribute", file, object, H5P_DEFAULT)?;
            attribute::get(&open, name).map_err(|error| error.target(format!("{object}@{name}")))
        })
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        const DOING: &str = "list attributes";
        self.with(DOING, |file| attribute::names(&objects::open(DOING, file, object, H5P_DEFAULT)?))
    }

    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics =
            self.home.collective.as_ref().map_or_else(Vec::new, |collective| collective.diagnostics());
        diagnostics.extend(self.home.diagnostics.list());
        diagnostics
    }

    fn write_back(&self) -> Result<()> {
        self.settle_arrays().map_err(|error| self.mark(error))?;
        // With MPI-IO data are in the file when a write returns, and flushing is collective.
        match self.home.writable && !self.home.ranks.are_processes() {
            true => self.noting(self.flush_now(Durability::Visible)),
            false => self.with("write back", |_| Ok(())),
        }
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let settled = self.settle_arrays();
        self.home.ranks.barrier()?; // what every rank has written by now
        let checked = settled.and_then(|()| self.with("flush", |_| Ok(())));
        if !self.home.writable {
            return self.home.ranks.agree(checked);
        }
        self.home.ranks.change(checked, || self.noting(self.flush_now(how))).map(|_| ())
    }

    fn close(&self) -> Result<()> {
        let Some(file) = lock(&self.file).take() else { return Ok(()) };
        if self.means.token.is_some()
            && let Some(collective) = &self.home.collective
        {
            // An error drops the guard, which leaves the file open.
            self.home.ranks.agree(collective.refuse_closing().map_err(|error| self.mark(error)))?;
        }
        self.home.ranks.agree(self.release(file))
    }
}

impl Drop for Hdf5Container {
    fn drop(&mut self) {
        if let Some(token) = self.means.token
            && let Some(file) = lock(&self.file).take()
        {
            abandoned::keep(token, file, std::mem::take(&mut *lock(&self.arrays)));
        }
    }
}

impl Hdf5Container {
    fn decide(&self, name: &str, spec: &ArraySpec) -> Result<Storage> {
        if name.is_empty() {
            return Err(Error::invalid("create array", "an array needs a name").backend(super::NAME));
        }
        let mark = |error: Error| error.backend(super::NAME).target(name);
        let storage = Storage::decide(spec, &self.options).map_err(mark)?;
        if storage.placement == Placement::Compact && self.home.ranks.are_processes() && self.home.ranks.count() > 1 {
            return Err(mark(refuse_compact("create array")));
        }
        objects::path("create array", name)?;
        Ok(storage)
    }
}
