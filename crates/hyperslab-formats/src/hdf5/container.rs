//! An open HDF5 file.

use super::alignment::Alignment;
use super::array::{FileContext, Hdf5Array};
use super::attribute;
use super::collective_stats::Collective;
use super::dataspace;
use super::dataspace_cache::DataspaceCache;
use super::datatype;
use super::diagnostics::Diagnostics;
use super::direct_access::{self, DirectAccess};
use super::errors;
use super::handle::OwnedHandle;
use super::leaked_files::{self, Token};
use super::library::{self, Id, done};
use super::named_types;
use super::objects::{self, Found};
use super::options::{DriverChoice, Options};
use super::properties;
use super::ranks::Ranks;
use super::rollback_driver;
use super::subfiles;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::{h5d, h5f, h5g};
use hyperslab_core::storage::{StoredArray, StoredLayout};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Container, Datatype, Durability, Error, ErrorKind, Hierarchy, Result, Telemetry, lock,
};
use hyperslab_h5direct::Limits;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

/// A handle, until it is closed. The container's close takes it out of its arrays.
pub(super) type Slot = Mutex<Option<OwnedHandle>>;

/// Resources of an open file, created before it is opened: failing afterwards would leave other ranks blocked.
#[derive(Debug)]
pub(super) struct OpenResources {
    links: Id,
    arrays: Id,
    objects: Id,
    /// `Some` if ranks are processes; moved into the open file.
    collective: Option<Collective>,
    /// `Some` if ranks are several processes.
    token: Option<Token>,
}

impl OpenResources {
    /// Creates the resources. Collective if ranks are processes.
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
pub(crate) struct Hdf5Container {
    path: PathBuf,
    file: Slot,
    arrays: Mutex<Vec<Weak<Slot>>>,
    context: Arc<FileContext>,
    options: Arc<Options>,
    /// Whether the file was created here, so that its directory entry must be made durable too.
    created: bool,
    alignment: Alignment,
    resources: OpenResources,
}

/// Error of a call on a closed handle.
pub(super) fn closed(operation: &'static str, what: &str) -> Error {
    Error::invalid(operation, format!("the {what} is closed"))
}

/// Fails if the file is open for reading only.
pub(super) fn refuse_writing(operation: &'static str, writable: bool) -> Result<()> {
    if writable {
        return Ok(());
    }
    Err(Error::invalid(operation, "the file is open for reading only").hint("open it for update"))
}

/// Error of compact arrays in files shared by processes.
pub(super) fn refuse_compact(operation: &'static str) -> Error {
    Error::unsupported(operation, "compact arrays lie in the metadata, of which every process would write its own")
        .hint("use layout=contiguous")
}

/// Error of strings of variable length in files shared by processes.
pub(super) fn refuse_parallel_strings(operation: &'static str) -> Error {
    let message = "parallel libhdf5 writes no strings of variable length";
    Error::unsupported(operation, message).hint("write them with one rank, use text of fixed length (|S16), or zarr")
}

impl Hdf5Container {
    /// Takes over an open file.
    pub(super) fn new(
        path: &Path,
        file: OwnedHandle,
        ranks: Ranks,
        options: Arc<Options>,
        mut resources: OpenResources,
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
        let (dataspaces, collective) = (DataspaceCache::default(), resources.collective.take());
        let context = Arc::new(FileContext {
            dataspaces,
            ranks,
            collective,
            writable,
            direct: options.plane,
            access,
            diagnostics,
        });
        let (file, arrays) = (Mutex::new(Some(file)), Mutex::default());
        let alignment = Alignment::default();
        Self { path: path.into(), file, arrays, context, options, created, alignment, resources }
    }

    /// Runs `body` under the lock with the open file.
    pub(super) fn with<T>(&self, operation: &'static str, body: impl FnOnce(&Id) -> Result<T>) -> Result<T> {
        match lock(&self.file).as_ref() {
            Some(file) => library::with(|| body(file.id())),
            None => Err(closed(operation, "file")),
        }
        .map_err(|error| self.mark(error))
    }

    fn mark(&self, error: Error) -> Error {
        error.backend(super::NAME).target(self.path.display())
    }

    /// Changes the file; returns on every rank when done. `None` if another rank made the call. Collective.
    pub(super) fn change<T>(
        &self,
        operation: &'static str,
        checked: Result<()>,
        body: impl FnOnce(&Id) -> Result<T>,
    ) -> Result<Option<T>> {
        let checked = refuse_writing(operation, self.context.writable).and(checked);
        let checked = checked.and_then(|()| self.with(operation, |_| Ok(())));
        self.context.ranks.change(checked.map_err(|error| self.mark(error)), || self.noting(self.with(operation, body)))
    }

    /// Records errors after which closing would hang.
    fn noting<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.context.collective.iter().for_each(|collective| collective.note_error(error)))
    }

    /// Makes a group, if there is none. Those above it that libhdf5 makes with it are plain ones.
    fn create_one_group(&self, file: &Id, name: &str) -> Result<()> {
        const DOING: &str = "create group";
        let text = objects::path(DOING, name)?;
        let creation = properties::group_creation(&self.options)?;
        // SAFETY: file and lists are live, the name ends in NUL.
        let raw = unsafe {
            h5g::H5Gcreate2(file.raw(), text.as_ptr(), self.resources.links.raw(), creation.raw(), H5P_DEFAULT)
        };
        match Id::take(DOING, raw) {
            Ok(group) => group.close(DOING),
            Err(failure) => match objects::probe(DOING, file, name).map_err(|e| e.target(name))? {
                Found::Group => Ok(()),
                Found::Nothing => Err(failure.target(name)),
                _ => Err(Error::new(ErrorKind::AlreadyExists, DOING, "the name is taken").target(name)),
            },
        }
    }

    /// Makes the groups above an object as this container makes groups.
    fn create_groups_above(&self, file: &Id, name: &str) -> Result<()> {
        let above = name.match_indices('/').map(|(end, _)| &name[..end]);
        above.into_iter().try_for_each(|group| match objects::probe("create group", file, group) {
            Ok(Found::Nothing) => self.create_one_group(file, group),
            _ => Ok(()), // what is in the way is found again
        })
    }

    fn open_dataset(&self, name: &str) -> Result<Id> {
        const DOING: &str = "open array";
        let text = objects::path(DOING, name)?;
        self.with(DOING, |file| {
            // SAFETY: file and list are live, the name ends in NUL.
            let raw = unsafe { h5d::H5Dopen2(file.raw(), text.as_ptr(), self.resources.arrays.raw()) };
            Id::take(DOING, raw).map_err(|failure| objects::why_not(DOING, file, name, Found::Array, failure))
        })
    }

    fn create_dataset(&self, file: &Id, name: &str, spec: &ArraySpec, storage: &StoredArray) -> Result<Id> {
        const DOING: &str = "create array";
        let text = objects::path(DOING, name)?;
        if self.options.netcdf {
            self.create_groups_above(file, name)?;
        }
        let element = match &spec.dtype {
            Datatype::Compound(_) if self.options.netcdf => named_types::commit(file, &spec.dtype, name)?,
            dtype => datatype::create(dtype)?,
        };
        let space = dataspace::simple(&spec.shape, spec.max_shape.as_deref())?;
        let creation = {
            let shared = self.context.ranks.are_processes() && self.context.ranks.count() > 1;
            properties::array_creation(spec, storage, &self.options, element.raw(), shared)?
        };
        // SAFETY: every identifier is live, the name ends in NUL.
        let raw = unsafe {
            h5d::H5Dcreate2(
                file.raw(),
                text.as_ptr(),
                element.raw(),
                space.raw(),
                self.resources.links.raw(),
                creation.raw(),
                self.resources.arrays.raw(),
            )
        };
        Id::take(DOING, raw).map_err(|failure| match objects::probe(DOING, file, name) {
            Ok(Found::Nothing) => failure.target(name),
            Ok(_) => Error::new(ErrorKind::AlreadyExists, DOING, "").target(name),
            Err(on_the_way) => on_the_way.target(name),
        })
    }

    /// Registers an open dataset as an array of this container.
    fn adopt(&self, name: &str, dataset: Id, layout: Option<&StoredLayout>) -> Result<Arc<dyn Array>> {
        let array = Hdf5Array::new(name, dataset, self.context.clone(), layout)
            .map_err(|error| error.backend(super::NAME).target(name))?;
        let mut arrays = lock(&self.arrays);
        arrays.retain(|slot| slot.strong_count() > 0);
        arrays.push(Arc::downgrade(array.slot()));
        Ok(Arc::new(array))
    }

    /// Closes all arrays and the file, also after an error; returns the first error.
    fn release(&self, file: OwnedHandle) -> Result<()> {
        // One flush for all arrays: flushing them separately would write their metadata separately.
        let mut result = self.write_back_arrays().and_then(|()| file.flush("close"));
        let flushed = result.is_ok();
        for slot in lock(&self.arrays).drain(..).filter_map(|slot| slot.upgrade()) {
            if let Some(dataset) = lock(&slot).take() {
                if flushed {
                    dataset.note_flushed();
                }
                result = result.and(dataset.close("close"));
            }
        }
        self.context.dataspaces.clear();
        result.and(file.close("close")).map_err(|error| self.mark(error))
    }

    /// Writes dirty chunks of all direct paths back.
    fn write_back_arrays(&self) -> Result<()> {
        let slots: Vec<_> = lock(&self.arrays).iter().filter_map(Weak::upgrade).collect();
        slots.iter().try_for_each(|slot| lock(slot).as_ref().map_or(Ok(()), OwnedHandle::write_back))
    }

    fn flush_now(&self, how: Durability) -> Result<()> {
        const DOING: &str = "flush";
        let durable = how == Durability::Durable;
        let descriptor = self.with(DOING, |file| {
            // SAFETY: the file is live.
            done(DOING, unsafe { h5f::H5Fflush(file.raw(), h5f::H5F_scope_t::H5F_SCOPE_GLOBAL) })?;
            rollback_driver::commit(file)?;
            let own = durable && !self.context.ranks.are_processes();
            own.then(|| own_descriptor(file)).transpose()
        })?;
        let sync = || {
            match descriptor {
                Some(descriptor) => descriptor.sync_all()?,
                // Every process syncs, for the page cache of its node: MPI-IO exposes no descriptor.
                None => std::iter::once(self.path.clone())
                    .chain(subfiles::list(&self.path)?)
                    .try_for_each(|file| File::open(file)?.sync_all())?,
            }
            if self.created { sync_directory(&self.path) } else { Ok(()) }
        };
        if durable { sync().map_err(|e| self.mark(Error::io(DOING, e))) } else { Ok(()) }
    }
}

/// Prepares an open file for the direct path; fails if that is not supported.
fn access(path: &Path, file: &OwnedHandle, ranks: &Ranks, options: &Options, writable: bool) -> Result<DirectAccess> {
    let opened = if options.driver == DriverChoice::Subfiling {
        return Err(Error::unsupported("open", "the file is spread over subfiles"));
    } else if ranks.are_processes() {
        let file = File::options().read(true).write(writable).open(path).map_err(|e| Error::io("open", e))?;
        if writable && ranks.count() > 1 {
            hyperslab_h5direct::refuse_incoherent(&file)?;
        }
        file
    } else {
        library::with(|| direct_access::reopen(file.id()))?
    };
    let limits = Limits {
        threads: options.threads.unwrap_or(0) as usize,
        cache: options.cache.unwrap_or(hyperslab_h5direct::CACHE_BYTES),
    };
    let by_mpi = ranks.are_processes();
    let guard = rollback_driver::guard(&opened);
    let single_writer = !by_mpi || ranks.count() == 1;
    Ok(DirectAccess { file: Arc::new(opened), limits, guard, single_writer, by_mpi })
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

/// Makes the directory entry of a new file durable. File systems that do not support it need not.
fn sync_directory(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(parent)?.sync_all() {
        Err(e) if e.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
        result => result,
    }
}

impl Container for Hdf5Container {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let checked = objects::path("open array", name).and_then(|_| self.with("open array", |_| Ok(())));
        self.context
            .ranks
            .everyone(checked, || self.open_dataset(name).and_then(|dataset| self.adopt(name, dataset, None)))
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn write_back(&self) -> Result<()> {
        self.write_back_arrays().map_err(|error| self.mark(error))?;
        // With MPI-IO, data are in the file when a write returns, and a flush would be collective.
        match self.context.writable && !self.context.ranks.are_processes() {
            true => self.noting(self.flush_now(Durability::Visible)),
            false => self.with("write back", |_| Ok(())),
        }
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let written_back = self.write_back_arrays();
        self.context.ranks.barrier()?; // what every rank has written by now
        let checked = written_back.and_then(|()| self.with("flush", |_| Ok(())));
        if !self.context.writable {
            return self.context.ranks.agree(checked);
        }
        self.context.ranks.change(checked, || self.noting(self.flush_now(how))).map(|_| ())
    }

    fn close(&self) -> Result<()> {
        let Some(file) = lock(&self.file).take() else { return Ok(()) };
        if self.resources.token.is_some()
            && let Some(collective) = &self.context.collective
        {
            // An error drops the handle, which leaves the file open.
            self.context.ranks.agree(collective.refuse_closing().map_err(|error| self.mark(error)))?;
        }
        self.context.ranks.agree(self.release(file))
    }
}

impl Hierarchy for Hdf5Container {
    fn arrays(&self) -> Result<Vec<String>> {
        self.with("list arrays", objects::arrays)
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.with("list groups", objects::groups)
    }

    fn create_group(&self, name: &str) -> Result<()> {
        const DOING: &str = "create group";
        self.change(DOING, objects::path(DOING, name).map(|_| ()), |file| {
            objects::path(DOING, name)?;
            if name.is_empty() {
                return Ok(());
            }
            if self.options.netcdf {
                self.create_groups_above(file, name)?;
            }
            self.create_one_group(file, name)
        })
        .map(|_| ())
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        const DOING: &str = "create array";
        let storage = self.context.ranks.agree(self.decide(name, spec))?;
        let made = self.change(DOING, Ok(()), |file| self.create_dataset(file, name, spec, &storage))?;
        self.alignment.made(spec, &storage, &self.options);
        let opened = match made {
            Some(dataset) => Ok(dataset),
            None => self.open_dataset(name),
        };
        self.context.ranks.agree(opened.and_then(|dataset| self.adopt(name, dataset, Some(&storage.layout))))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        const DOING: &str = "set attribute";
        let mark = |error: Error| error.target(format!("{object}@{name}"));
        let checked = objects::path(DOING, object).and_then(|_| attribute::check(name, value).map_err(mark));
        self.change(DOING, checked, |file| {
            let open = objects::open(DOING, file, object, self.resources.objects.raw())?;
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
}

impl Telemetry for Hdf5Container {
    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics =
            self.context.collective.as_ref().map_or_else(Vec::new, |collective| collective.diagnostics());
        diagnostics.extend(self.context.diagnostics.list());
        diagnostics.extend(self.alignment.remark(&self.options));
        diagnostics
    }
}

impl Drop for Hdf5Container {
    fn drop(&mut self) {
        if let Some(token) = self.resources.token
            && let Some(file) = lock(&self.file).take()
        {
            leaked_files::keep(token, file, std::mem::take(&mut *lock(&self.arrays)));
        }
    }
}

impl Hdf5Container {
    fn decide(&self, name: &str, spec: &ArraySpec) -> Result<StoredArray> {
        if name.is_empty() {
            return Err(Error::invalid("create array", "an array needs a name").backend(super::NAME));
        }
        let mark = |error: Error| error.backend(super::NAME).target(name);
        spec.refuse_dimension_names().map_err(mark)?;
        let storage = self.options.rules.decide(spec).map_err(mark)?;
        if storage.layout == StoredLayout::Compact
            && self.context.ranks.are_processes()
            && self.context.ranks.count() > 1
        {
            return Err(mark(refuse_compact("create array")));
        }
        if spec.dtype == Datatype::VariableString && self.context.ranks.are_processes() {
            return Err(mark(refuse_parallel_strings("create array")));
        }
        objects::path("create array", name)?;
        Ok(storage)
    }
}
