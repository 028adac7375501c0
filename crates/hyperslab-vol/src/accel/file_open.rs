//! Opening of files: decides about acceleration, and prepares the access list.

use super::file::{Buffers, FileState, Parts};
use super::parallel_file::ParallelFile;
use crate::driver;
use crate::host::Host;
use crate::host::api::{Hid, Ptr};
use crate::info::Info;
use crate::settings::Settings;
use crate::trace::TracedFile;
use hyperslab_core::{OpenMode, Result};
use hyperslab_rollback::Rollback;
use std::ffi::{c_int, c_uint, c_ulong};
use std::fs::File;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::{Arc, PoisonError, Weak};

const WRITABLE: c_uint = 0x0001;
const TRUNCATE: c_uint = 0x0002;
const CREATE: c_uint = 0x0010;
const SWMR: c_uint = 0x0020 | 0x0040;
const GET_ACCESS_LIST: c_int = 1;
const GET_CREATION_LIST: c_int = 2;
const GET_NUMBER: c_int = 3;
const GET_DESCRIPTOR: c_int = 9;

/// A file that is being opened.
pub(crate) struct FileOpen {
    host: &'static Host,
    connector: Hid,
    settings: Arc<Settings>,
    path: PathBuf,
    flags: c_uint,
    buffers: Option<Buffers>,
    /// Why libhdf5 transfers all its elements, if so.
    fallback_reason: Option<String>,
    /// Whether the access list asked for the `sec2` driver.
    usual_driver: bool,
    /// How ranks of an MPI program share the file, if the access list asked for MPI-IO.
    parallel: Option<ParallelFile>,
    /// Whether the connector's driver was put into the access list.
    driven: bool,
    /// The journal of the file that was opened.
    rollback: Weak<Rollback>,
}

impl FileOpen {
    /// Inspects the access list for the connector below; disables libhdf5's caches of elements if the file is eligible.
    ///
    /// # Safety
    /// Inside a call of the library; the list is open and ours.
    pub(crate) unsafe fn new(host: &'static Host, info: &Info, list: Hid, name: &str, flags: c_uint) -> Self {
        let mut opening = Self {
            host,
            connector: info.connector,
            settings: info.settings.clone(),
            path: std::path::absolute(name).unwrap_or_else(|_| name.into()),
            flags,
            buffers: None,
            fallback_reason: None,
            usual_driver: false,
            parallel: None,
            driven: false,
            rollback: Weak::new(),
        };
        // SAFETY: the list is open and ours.
        unsafe { crate::overrides::of_file(host, &opening.settings, &opening.path, list) };
        // SAFETY: the list is open.
        unsafe { opening.parallel = ParallelFile::asked_for(host, list) };
        // SAFETY: the list is open.
        unsafe { opening.drive(list) };
        // SAFETY: the list is open.
        match unsafe { opening.prepare(list) } {
            Ok(buffers) => opening.buffers = buffers,
            Err(why) => (opening.parallel, opening.fallback_reason) = (None, Some(why.into())),
        }
        opening
    }

    /// Puts the connector's driver into the access list in modes with a rollback journal; also for reading, since
    /// libhdf5 identifies a file that is already open by its driver.
    unsafe fn drive(&mut self, list: Hid) {
        // SAFETY: the list is open.
        unsafe {
            self.usual_driver = is_usual_driver(self.host, list) && self.is_native_below();
            let known = self.host.known;
            self.driven = self.settings.modes.rolls_back()
                && known
                && self.usual_driver
                && self.host.preserving_error_stack(|| driver::put(self.host, list));
        }
        // A log of MPI ranks holds what they write; their file is as sound as libhdf5 leaves it.
        let promised = self.settings.modes.safe || (self.settings.modes.log && self.parallel.is_none());
        if promised && self.is_writable() {
            let why = match () {
                () if self.flags & SWMR != 0 => "it is shared with readers that follow its writer (SWMR)",
                () if !self.driven => "it is not reached by the usual driver of an HDF5 that is known here",
                () => return,
            };
            self.host.say_once(&format!("{}: the file is not safe from kills: {why}", self.path.display()));
        }
    }

    unsafe fn is_native_below(&self) -> bool {
        let mut value = -1;
        // SAFETY: the connector is registered.
        unsafe { self.host.H5VLget_value(self.connector, &raw mut value) >= 0 && value == 0 }
    }

    /// Opens the file by libhdf5, after a rollback to its last commit if its writer was killed.
    pub(crate) fn open(&mut self, open: impl FnOnce() -> Ptr) -> Result<Ptr> {
        if self.usual_driver {
            driver::roll_back_before(self.host, &self.path)?;
        }
        if !self.driven {
            return Ok(open());
        }
        let (under, rollback) = driver::open_with(self.settings.durable_commits(), open);
        self.rollback = rollback;
        Ok(under)
    }

    /// Whether the file was created by this call and has a journal: the empty file should be the first commit.
    pub(crate) fn is_new(&self) -> bool {
        self.flags & (TRUNCATE | CREATE) != 0 && self.rollback.strong_count() > 0
    }

    /// The caches of libhdf5 that were disabled, if there are any.
    unsafe fn prepare(&mut self, list: Hid) -> Result<Option<Buffers>, &'static str> {
        let host = self.host;
        if !self.settings.modes.accelerate() {
            return Err("the mode asks for nothing more");
        }
        if !host.known {
            return Err("this version of HDF5 is not known");
        }
        if self.flags & SWMR != 0 {
            return Err("the file is shared with readers that follow its writer (SWMR)");
        }
        // SAFETY: lists are open, places to write to are variables.
        unsafe {
            if !self.is_native_below() {
                return Err("another connector than libhdf5's own lies below");
            }
            if let Some(why) = self.parallel.and_then(|_| ParallelFile::refused(&self.settings, self.is_writable())) {
                return Err(why);
            }
            if self.parallel.is_some() {
                // It keeps no elements of such files that ranks may change.
                return Ok(None);
            }
            if !self.usual_driver {
                return Err("the file is not reached by the usual driver");
            }
            let (mut pages, mut metadata, mut raw) = (1, 0, 0);
            if host.H5Pget_page_buffer_size(list, &raw mut pages, &raw mut metadata, &raw mut raw) < 0 || pages > 0 {
                return Err("the file has a page buffer");
            }
            let (mut buffers, mut unused) = (Buffers::default(), 0);
            let (slots, bytes, w0) = &mut buffers.chunks;
            let changed = host.H5Pget_sieve_buf_size(list, &raw mut buffers.sieve) >= 0
                && host.H5Pget_cache(list, &raw mut unused, &raw mut *slots, &raw mut *bytes, &raw mut *w0) >= 0
                && host.H5Pset_sieve_buf_size(list, 0) >= 0
                && host.H5Pset_cache(list, unused, *slots, 0, *w0) >= 0;
            if changed { Ok(Some(buffers)) } else { Err("the access list cannot be changed") }
        }
    }

    /// Fails for writing if a log of a dead process has not been recovered; warns for reading.
    pub(crate) fn notice(&self) -> Result<()> {
        let warnings = hyperslab_journal::marker::check_unrecovered(&self.path, self.is_writable())?;
        warnings.iter().for_each(|warning| eprintln!("hyperslab: warning: {warning}"));
        Ok(())
    }

    /// Whether the file is opened for writing.
    pub(crate) fn is_writable(&self) -> bool {
        self.flags & (WRITABLE | TRUNCATE | CREATE) != 0
    }

    /// Finds or creates the state of the opened file; `None` if all calls are only forwarded.
    ///
    /// # Safety
    /// Inside a call of the library; `under` is the open file.
    pub(crate) unsafe fn attach(mut self, under: Ptr) -> Result<Option<Arc<FileState>>> {
        let modes = self.settings.modes;
        let known = modes.accelerate() || modes.trace || modes.rolls_back() || self.settings.overrides.is_some();
        if !known {
            return Ok(None);
        }
        // SAFETY: the file is open.
        let Some(number) = (unsafe { self.number(under) }) else { return Ok(None) };
        let known = self.host.files.lock().unwrap_or_else(PoisonError::into_inner).get(&number).and_then(Weak::upgrade);
        if let Some(state) = known {
            state.reopened()?;
            return Ok(Some(state));
        }
        let mut file = None;
        if self.fallback_reason.is_none() {
            let opened = match self.parallel {
                Some(_) => ParallelFile::open(&self.path, self.is_writable()),
                // SAFETY: the file is open.
                None => unsafe { self.own_file(under) },
            };
            match opened {
                Ok(own) => file = Some(Arc::new(own)),
                Err(why) => self.fallback_reason = Some(why),
            }
        }
        let writable = self.is_writable();
        let trace = if modes.trace {
            let how = match (self.flags & (TRUNCATE | CREATE) != 0, writable) {
                (true, _) => OpenMode::Truncate,
                (false, true) => OpenMode::Update,
                (false, false) => OpenMode::Read,
            };
            TracedFile::open(self.host, &self.settings, &self.path, how).map(Arc::new)
        } else {
            None
        };
        let state = FileState::new(Parts {
            host: self.host,
            number,
            path: self.path,
            settings: self.settings,
            writable,
            buffers: self.buffers,
            file,
            fallback_reason: self.fallback_reason,
            parallel: self.parallel,
            trace,
            rollback: self.rollback,
        })?;
        let mut files = self.host.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(number, Arc::downgrade(&state));
        Ok(Some(state))
    }

    unsafe fn get<T>(&self, under: Ptr, arguments: &mut T) -> bool {
        let (host, arguments) = (self.host, (&raw mut *arguments).cast());
        // SAFETY: the file is open, and the caller answers for the arguments.
        unsafe { host.H5VLfile_get(under, self.connector, arguments, host.default_transfer(), null_mut()) >= 0 }
    }

    unsafe fn list(&self, under: Ptr, operation: c_int) -> Option<Hid> {
        #[repr(C)]
        struct Get {
            operation: c_int,
            list: Hid,
            _more: [u64; 4],
        }
        let mut get = Get { operation, list: -1, _more: [0; 4] };
        // SAFETY: the arguments are those of the operation.
        (unsafe { self.get(under, &mut get) } && get.list >= 0).then_some(get.list)
    }

    unsafe fn number(&self, under: Ptr) -> Option<u64> {
        #[repr(C)]
        struct Get {
            operation: c_int,
            number: *mut c_ulong,
            _more: [u64; 4],
        }
        let mut number: c_ulong = 0;
        let mut get = Get { operation: GET_NUMBER, number: &raw mut number, _more: [0; 4] };
        // SAFETY: the arguments are those of the operation.
        unsafe { self.get(under, &mut get) }.then_some(number)
    }

    /// Opens a second descriptor of the file; a duplicate would keep libhdf5's file lock.
    unsafe fn own_file(&self, under: Ptr) -> Result<File, String> {
        let host = self.host;
        // SAFETY: the file is open; lists are closed here; places to write to are variables.
        unsafe {
            let creation = self.list(under, GET_CREATION_LIST).ok_or("its creation list cannot be asked for")?;
            let mut block = 1u64;
            let asked = host.H5Pget_userblock(creation, &raw mut block) >= 0;
            host.H5Pclose(creation);
            if !asked || block > 0 {
                return Err("the file has a user block".into());
            }
            let access = self.list(under, GET_ACCESS_LIST).ok_or("its access list cannot be asked for")?;
            let mut sieve = 1;
            host.H5Pget_sieve_buf_size(access, &raw mut sieve);
            let descriptor = self.descriptor(under, access);
            host.H5Pclose(access);
            if sieve > 0 {
                return Err("the file is open elsewhere in this process with a sieve buffer of libhdf5".into());
            }
            let descriptor = descriptor.ok_or("the library does not tell the descriptor of the file")?;
            let mode = libc::fcntl(descriptor, libc::F_GETFL);
            let writable = mode >= 0 && mode & libc::O_ACCMODE == libc::O_RDWR;
            let path = format!("/proc/self/fd/{descriptor}");
            let opened = File::options().read(true).write(writable).open(path);
            opened.map_err(|error| format!("the file cannot be opened once more: {error}"))
        }
    }

    unsafe fn descriptor(&self, under: Ptr, access: Hid) -> Option<c_int> {
        #[repr(C)]
        struct Descriptor {
            access: Hid,
            handle: *mut Ptr,
        }
        #[repr(C)]
        struct Optional {
            operation: c_int,
            arguments: Ptr,
        }
        let (host, mut handle): (_, Ptr) = (self.host, null_mut());
        let mut inner = Descriptor { access, handle: &raw mut handle };
        let mut optional = Optional { operation: GET_DESCRIPTOR, arguments: (&raw mut inner).cast() };
        // SAFETY: the file is open, and the arguments are those of the operation; the usual driver's handle is a
        // pointer to its descriptor.
        unsafe {
            let arguments = (&raw mut optional).cast();
            let status = host.H5VLfile_optional(under, self.connector, arguments, host.default_transfer(), null_mut());
            (status >= 0 && !handle.is_null()).then(|| *handle.cast::<c_int>())
        }
    }
}

/// Whether an access list asks for the `sec2` driver.
unsafe fn is_usual_driver(host: &Host, list: Hid) -> bool {
    // SAFETY: the list is open; the other one is closed here.
    unsafe {
        let usual = host.H5Pcopy(list);
        if usual < 0 {
            return false;
        }
        let same = host.H5Pset_fapl_sec2(usual) >= 0 && host.H5Pget_driver(usual) == host.H5Pget_driver(list);
        host.H5Pclose(usual);
        same
    }
}
