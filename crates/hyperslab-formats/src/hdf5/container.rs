//! An open HDF5 file.

use super::array::Hdf5Array;
use super::attribute;
use super::dataspace;
use super::datatype;
use super::errors;
use super::guarded::Guarded;
use super::library::{self, Id, done};
use super::objects::{self, Found};
use super::options::Options;
use super::properties;
use super::storage::{Placement, Storage};
use super::unions::Unions;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::{h5d, h5f, h5g};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Communicator, Container, Durability, Error, ErrorKind, Result, agree,
};
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What is open, until it is closed. A container can take it away from its arrays.
pub(super) type Slot = Mutex<Option<Guarded>>;

/// One rank's handle of an HDF5 file. The ranks of a process share the file inside libhdf5.
#[derive(Debug)]
pub(super) struct Hdf5Container {
    path: PathBuf,
    file: Slot,
    arrays: Mutex<Vec<Weak<Slot>>>,
    unions: Arc<Unions>,
    comm: Arc<dyn Communicator>,
    options: Arc<Options>,
    writable: bool,
    /// Made here, so that its directory entry must be made durable too.
    created: bool,
    links: Id,
    access: Id,
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

impl Hdf5Container {
    /// Takes over an open file.
    pub(super) fn new(
        path: &Path,
        file: Id,
        comm: Arc<dyn Communicator>,
        options: Arc<Options>,
        writable: bool,
        created: bool,
    ) -> Result<Self> {
        let (links, access) =
            library::with(|| Ok::<_, Error>((properties::link_creation()?, properties::array_access(&options)?)))?;
        let (file, arrays, unions) =
            (Mutex::new(Some(Guarded::file(file, writable))), Mutex::default(), Arc::default());
        Ok(Self { path: path.into(), file, arrays, unions, comm, options, writable, created, links, access })
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

    /// Rank 0 changes the file; every rank returns when that is done, or an error.
    fn on_first_rank<T>(&self, operation: &'static str, body: impl FnOnce(&Id) -> Result<T>) -> Result<Option<T>> {
        let mine = refuse_writing(operation, self.writable)
            .and_then(|()| if self.comm.rank() == 0 { self.with(operation, body).map(Some) } else { Ok(None) });
        agree(&*self.comm, mine.map_err(|error| self.mark(error)))
    }

    fn open_dataset(&self, name: &str) -> Result<Id> {
        const DOING: &str = "open array";
        let text = objects::path(DOING, name)?;
        self.with(DOING, |file| {
            // SAFETY: file and list are live, the name ends in NUL.
            let raw = unsafe { h5d::H5Dopen2(file.raw(), text.as_ptr(), self.access.raw()) };
            Id::take(DOING, raw).map_err(|failure| objects::why_not(DOING, file, name, Found::Array, failure))
        })
    }

    fn create_dataset(&self, file: &Id, name: &str, spec: &ArraySpec, storage: &Storage) -> Result<Id> {
        const DOING: &str = "create array";
        let text = objects::path(DOING, name)?;
        let element = datatype::create(&spec.dtype)?;
        let space = dataspace::simple(&spec.shape, spec.max_shape.as_deref())?;
        let creation = properties::array_creation(spec, storage, &self.options, element.raw())?;
        // SAFETY: every identifier is live, the name ends in NUL.
        let raw = unsafe {
            h5d::H5Dcreate2(
                file.raw(),
                text.as_ptr(),
                element.raw(),
                space.raw(),
                self.links.raw(),
                creation.raw(),
                self.access.raw(),
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
        let array = Hdf5Array::new(name, dataset, self.unions.clone(), self.comm.clone(), self.writable, placement)
            .map_err(|error| error.backend(super::NAME).target(name))?;
        let mut arrays = lock(&self.arrays);
        arrays.retain(|slot| slot.strong_count() > 0);
        arrays.push(Arc::downgrade(array.slot()));
        Ok(Arc::new(array))
    }

    /// Gives back arrays and file; the first error is reported, everything is released.
    fn release(&self, file: Guarded) -> Result<()> {
        // Once for all arrays: flushing them one by one would write their metadata one by one.
        let mut result = file.flush("close");
        let flushed = result.is_ok();
        for slot in lock(&self.arrays).drain(..).filter_map(|slot| slot.upgrade()) {
            if let Some(dataset) = lock(&slot).take() {
                if flushed {
                    dataset.note_flushed();
                }
                result = result.and(dataset.close("close"));
            }
        }
        self.unions.clear();
        result.and(file.close("close")).map_err(|error| self.mark(error))
    }

    fn flush_now(&self, how: Durability) -> Result<()> {
        const DOING: &str = "flush";
        let descriptor = self.with(DOING, |file| {
            // SAFETY: the file is live.
            done(DOING, unsafe { h5f::H5Fflush(file.raw(), h5f::H5F_scope_t::H5F_SCOPE_GLOBAL) })?;
            if how == Durability::Durable { own_descriptor(file).map(Some) } else { Ok(None) }
        })?;
        let Some(descriptor) = descriptor else { return Ok(()) };
        descriptor.sync_all().map_err(|e| self.mark(Error::io(DOING, e)))?;
        if self.created {
            sync_directory(&self.path).map_err(|e| self.mark(Error::io(DOING, e)))?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
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

    fn create_group(&self, name: &str) -> Result<()> {
        const DOING: &str = "create group";
        self.on_first_rank(DOING, |file| {
            let text = objects::path(DOING, name)?;
            if name.is_empty() {
                return Ok(());
            }
            // SAFETY: file and list are live, the name ends in NUL.
            let raw = unsafe { h5g::H5Gcreate2(file.raw(), text.as_ptr(), self.links.raw(), H5P_DEFAULT, H5P_DEFAULT) };
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
        let storage = agree(&*self.comm, self.decide(name, spec))?;
        let made = self.on_first_rank(DOING, |file| self.create_dataset(file, name, spec, &storage))?;
        let opened = match made {
            Some(dataset) => Ok(dataset),
            None => self.open_dataset(name),
        };
        agree(&*self.comm, opened.and_then(|dataset| self.adopt(name, dataset, Some(&storage.placement))))
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let mine = self.open_dataset(name).and_then(|dataset| self.adopt(name, dataset, None));
        agree(&*self.comm, mine)
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        const DOING: &str = "set attribute";
        self.on_first_rank(DOING, |file| {
            let open = objects::open(DOING, file, object)?;
            attribute::set(&open, name, value).map_err(|error| error.target(format!("{object}@{name}")))
        })
        .map(|_| ())
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.with("read attribute", |file| {
            let open = objects::open("read attribute", file, object)?;
            attribute::get(&open, name).map_err(|error| error.target(format!("{object}@{name}")))
        })
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.with("list attributes", |file| attribute::names(&objects::open("list attributes", file, object)?))
    }

    fn flush(&self, how: Durability) -> Result<()> {
        if self.comm.size() > 1 {
            self.comm.barrier()?; // what every rank has written by now
        }
        let mine =
            if self.comm.rank() == 0 && self.writable { self.flush_now(how) } else { self.with("flush", |_| Ok(())) };
        agree(&*self.comm, mine)
    }

    fn close(&self) -> Result<()> {
        let Some(file) = lock(&self.file).take() else { return Ok(()) };
        agree(&*self.comm, self.release(file))
    }
}

impl Hdf5Container {
    fn decide(&self, name: &str, spec: &ArraySpec) -> Result<Storage> {
        if name.is_empty() {
            return Err(Error::invalid("create array", "an array needs a name").backend(super::NAME));
        }
        Storage::decide(spec, &self.options).map_err(|error| error.backend(super::NAME).target(name))
    }
}
