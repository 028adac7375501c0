//! The libhdf5 that loaded the connector: the host. A process may contain several.

pub(crate) mod api;
mod old;
mod parallel;

use crate::class::{self, Class};
use crate::settings::Settings;
use crate::stats::{self, Stats, Unwritten, Whose};
use api::{Api, Const, Herr, Hid, Ptr};
use hyperslab_core::{Error, lock};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_uint};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

/// Hosts that a process may have.
pub(crate) const MOST: usize = 8;

/// What the user is told at most, as long as he is told each of it once.
const MOST_SAID: usize = 8;

/// One libhdf5, and the connector's state for it.
pub(crate) struct Host {
    api: Api,
    /// Whether its version's structures are known; otherwise all calls are only forwarded.
    pub(crate) known: bool,
    pub(crate) stats: Stats,
    /// What was asked for last; statistics go by that.
    pub(crate) settings: Mutex<Arc<Settings>>,
    /// Files that are open, by the library's number.
    pub(crate) files: Mutex<HashMap<u64, Weak<crate::accel::FileState>>>,
    /// How many files this process has opened and not closed.
    pub(crate) open_files: AtomicUsize,
    /// Whether there may be buffered data that libhdf5 does not see yet.
    pub(crate) pending: AtomicBool,
    /// Whether the library converts one number type to another as the direct path does, where that was asked.
    pub(crate) conversions: Mutex<Vec<(hyperslab_core::Datatype, hyperslab_core::Datatype, bool)>>,
    /// Datasets that use the direct path.
    pub(crate) direct_datasets: AtomicUsize,
    /// The identifier of libhdf5's own connector, which is there as long as the library; not positive until it is known.
    native: AtomicI64,
    /// A copy of the last transfer list that asked for nothing special; not positive if there is none.
    pub(crate) usual_list: AtomicI64,
    /// Memory reserved by datasets, in bytes.
    memory: AtomicU64,
    /// What the user was told, at most [`MOST_SAID`] texts.
    said: Mutex<Vec<String>>,
    class: OnceLock<&'static Class>,
    /// Its place among the hosts.
    pub(crate) slot: usize,
    /// The library's identifier for our file driver; not positive until it is registered.
    pub(crate) driver: AtomicI64,
    /// Journals of files that are open.
    pub(crate) rollbacks: Mutex<Vec<Weak<hyperslab_rollback::Rollback>>>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor, release) = self.api.version;
        write!(f, "libhdf5 {major}.{minor}.{release}")
    }
}

impl std::ops::Deref for Host {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

/// Guards of a host's locks, held during a fork.
pub(crate) struct HeldLocks<'a> {
    _settings: MutexGuard<'a, Arc<Settings>>,
    _files: MutexGuard<'a, HashMap<u64, Weak<crate::accel::FileState>>>,
    _rollbacks: MutexGuard<'a, Vec<Weak<hyperslab_rollback::Rollback>>>,
    _said: MutexGuard<'a, Vec<String>>,
    stats: stats::Held<'a>,
}

static SLOTS: [OnceLock<&'static Host>; MOST] = [const { OnceLock::new() }; MOST];

/// The host of a slot. Its callbacks exist only after it does.
pub(crate) fn of_slot(slot: usize) -> Option<&'static Host> {
    SLOTS.get(slot)?.get().copied()
}

/// All hosts.
pub(crate) fn all() -> impl Iterator<Item = &'static Host> {
    SLOTS.iter().filter_map(|slot| slot.get().copied())
}

/// Where hosts lie in memory, in the order of their slots.
static BASES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// Keeps hosts from being added while the process forks.
pub(crate) fn hold_hosts() -> MutexGuard<'static, Vec<usize>> {
    lock(&BASES)
}

/// The class for the libhdf5 whose code contains `caller`; null if it cannot be served.
///
/// # Safety
/// `caller` is an address in code of a libhdf5 that stays loaded.
pub(crate) unsafe extern "C" fn class_for(caller: Ptr) -> Const {
    std::panic::catch_unwind(|| {
        // SAFETY: all zeros is a valid value of a structure of pointers.
        let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: any address may be asked for.
        if unsafe { libc::dladdr(caller, &raw mut found) } == 0 {
            say("the library that loads the connector cannot be found");
            return std::ptr::null();
        }
        let base = found.dli_fbase as usize;
        // SAFETY: dladdr has found a file, whose name ends in NUL.
        let find = unsafe { symbols_of(found.dli_fname) };
        add(base, &find).map_or(std::ptr::null(), class::as_ptr)
    })
    .unwrap_or(std::ptr::null())
}

/// The class for the libhdf5 at `base` whose symbols `find` finds.
pub(crate) fn add(base: usize, find: &dyn Fn(&str) -> Ptr) -> Option<&'static Class> {
    let mut bases = lock(&BASES);
    if let Some(slot) = bases.iter().position(|known| *known == base) {
        return of_slot(slot).and_then(|host| host.class.get().copied());
    }
    let slot = bases.len();
    if slot >= MOST {
        say("more libhdf5 in one process than can be served");
        return None;
    }
    if let Some((major, minor, release)) = old::version(find) {
        say(&format!(
            "HDF5 {major}.{minor}.{release} is too old for the connector, which needs 1.14 or newer: run the program without it"
        ));
        old::print_no_stack(find);
        return None;
    }
    let api = Api::find(find)
        .inspect_err(|missing| {
            say(&format!(
                "the program's libhdf5 has no {missing}; a statically linked program must be linked with -rdynamic"
            ));
        })
        .ok()?;
    let (major, minor, release) = api.version;
    let known = (major == 1 && minor >= 14) || major == 2;
    if !known {
        say(&format!(
            "HDF5 {major}.{minor}.{release} is not known here: calls are passed on and nothing is accelerated"
        ));
    }
    let host: &'static Host = Box::leak(Box::new(Host {
        api,
        known,
        stats: Stats::default(),
        settings: Mutex::default(),
        files: Mutex::default(),
        open_files: AtomicUsize::new(0),
        pending: AtomicBool::new(false),
        direct_datasets: AtomicUsize::new(0),
        native: AtomicI64::new(-1),
        usual_list: AtomicI64::new(-1),
        memory: AtomicU64::new(0),
        said: Mutex::default(),
        class: OnceLock::new(),
        slot,
        driver: AtomicI64::new(-1),
        conversions: Mutex::default(),
        rollbacks: Mutex::default(),
    }));
    SLOTS[slot].set(host).ok()?;
    bases.push(base);
    crate::fork::watch();
    Some(host.class.get_or_init(|| class::make(slot)))
}

/// Registers the connector with a libhdf5 whose symbols `find` finds, and returns its identifier.
pub(crate) fn register(find: &dyn Fn(&str) -> Ptr) -> hyperslab_core::Result<i64> {
    let unsuitable = || Error::unsupported("register connector", "the program's libhdf5 is not suitable");
    let base = find("H5get_libversion") as usize;
    let class = add(base, find).ok_or_else(unsuitable)?;
    let slot = lock(&BASES).iter().position(|known| *known == base);
    let host = slot.and_then(of_slot).ok_or_else(unsuitable)?;
    // SAFETY: the class lives as long as the program; the caller is a thread that may use the library.
    let id = unsafe { host.H5VLregister_connector(class::as_ptr(class), api::H5P_DEFAULT) };
    if id < 0 { Err(host.failed("register connector")) } else { Ok(id) }
}

/// Finds symbols of an object that is loaded already; of the whole program, if the object has none.
///
/// # Safety
/// `file` is null or ends in NUL.
unsafe fn symbols_of(file: *const libc::c_char) -> impl Fn(&str) -> Ptr {
    // SAFETY: nothing new is loaded.
    let mut handle = unsafe { libc::dlopen(file, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    // SAFETY: the handle is live, the name ends in NUL.
    if handle.is_null() || unsafe { libc::dlsym(handle, c"H5VLdataset_write".as_ptr()) }.is_null() {
        // SAFETY: the program itself.
        handle = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
    }
    move |name| match CString::new(name) {
        // SAFETY: the handle stays open, the name ends in NUL.
        Ok(name) => unsafe { libc::dlsym(handle, name.as_ptr()) },
        Err(_) => std::ptr::null_mut(),
    }
}

/// Whether `hyperslab run` started the program, and tells its user what statistics say.
fn under_run() -> bool {
    std::env::var_os("HYPERSLAB_RUN").is_some_and(|value| !value.is_empty())
}

/// Tells the user something, on the only channel a library has.
pub(crate) fn say(text: &str) {
    // One call, so that lines of several processes do not mix. Nobody may be listening.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("hyperslab: {text}\n").as_bytes());
}

impl Host {
    /// Takes memory for decoded chunks of a dataset: half of what is left, up to `most`.
    pub(crate) fn take_memory(&self, limit: u64, most: u64) -> u64 {
        let take = |used: u64| (limit.saturating_sub(used) / 2).min(most);
        let before = self.memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| Some(used + take(used)));
        let taken = take(before.unwrap_or_default());
        self.stats.hold(taken);
        taken
    }

    /// Whether more than half of the memory is taken.
    pub(crate) fn is_memory_short(&self, limit: u64) -> bool {
        self.memory.load(Ordering::Relaxed) > limit / 2
    }

    /// Takes exactly so many bytes, if they are left.
    pub(crate) fn try_memory(&self, limit: u64, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= limit);
        let taken = self.memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        if taken {
            self.stats.hold(bytes);
        }
        taken
    }

    /// Gives it back.
    pub(crate) fn give_memory(&self, bytes: u64) {
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
        self.stats.release(bytes);
    }

    /// The one identifier of libhdf5's own connector that all files use, with a reference for the caller, in the place of one
    /// more that was just registered. It stays valid as long as the library.
    ///
    /// # Safety
    /// Inside a call of the library; the identifier is one of libhdf5's own connector, and the caller's.
    pub(crate) unsafe fn only_native(&self, registered: i64) -> i64 {
        let known = self.native.load(Ordering::Relaxed);
        // SAFETY: the caller's; an identifier of before the library was closed is refused.
        unsafe {
            if known > 0 && self.preserving_error_stack(|| self.H5Iinc_ref(known)) > 0 {
                self.H5Idec_ref(registered);
                return known;
            }
            self.H5Iinc_ref(registered);
        }
        self.native.store(registered, Ordering::Relaxed);
        registered
    }

    /// Whether this is libhdf5's own connector, of which no references are needed.
    pub(crate) fn is_native(&self, connector: i64) -> bool {
        connector > 0 && self.native.load(Ordering::Relaxed) == connector
    }

    /// Whether anybody will see the numbers.
    pub(crate) fn wants_stats(&self) -> bool {
        lock(&self.settings).stats.is_some()
    }

    /// What is asked for from now on.
    pub(crate) fn set_settings(&self, settings: Arc<Settings>) {
        *lock(&self.settings) = settings;
        self.stats.refresh_soon();
    }

    /// Refreshes the record of what was done if that is due.
    pub(crate) fn refresh_stats_if_due(&self) {
        if self.stats.is_due() {
            self.refresh_stats(false);
        }
    }

    /// Refreshes the record of what was done. `ended`: the library closes down. Whether somebody will find it.
    pub(crate) fn refresh_stats(&self, ended: bool) -> bool {
        if crate::fork::is_child() && self.stats.is_empty() {
            return false;
        }
        let (settings, open_files) = (lock(&self.settings).clone(), self.open_files.load(Ordering::Relaxed));
        self.stats.refresh(&settings, Whose { slot: self.slot, version: self.version, open_files, ended })
    }

    /// Notes data that the program believes to be written, for statistics and the end.
    pub(crate) fn note_unwritten(&self, lost: Unwritten) {
        self.stats.note_unwritten(lost);
        self.refresh_stats(false);
    }

    /// The library closes down: the numbers are final, and what is not written is said if nobody else will.
    pub(crate) fn end(&self) {
        self.usual_list.store(-1, Ordering::Relaxed);
        let found = self.refresh_stats(true);
        if let Some(text) = self.stats.unwritten().filter(|_| !(found && under_run())) {
            say(&text);
        }
    }

    /// Takes the locks that any thread may hold for a moment, so that none does while the process forks.
    pub(crate) fn hold_locks(&self) -> HeldLocks<'_> {
        HeldLocks {
            _settings: lock(&self.settings),
            _files: lock(&self.files),
            _rollbacks: lock(&self.rollbacks),
            _said: lock(&self.said),
            stats: self.stats.hold_locks(),
        }
    }

    /// Begins anew in a process that was forked.
    pub(crate) fn begin_anew(&self, held: HeldLocks<'_>) {
        self.open_files.store(0, Ordering::Relaxed);
        self.stats.begin_anew(held.stats);
    }

    /// Has what waits written by threads of ours, without the library. Nobody may use the connector from now on.
    pub(crate) fn write_pending(&self) {
        let files: Vec<_> = lock(&self.files).values().filter_map(Weak::upgrade).collect();
        files.iter().for_each(|file| file.write_pending());
        self.refresh_stats(false);
        // The last reference must not go on a thread that may not call the library.
        files.into_iter().for_each(std::mem::forget);
    }

    /// Before the program forks.
    pub(crate) fn before_fork(&self) {
        let files: Vec<_> = lock(&self.files).values().filter_map(Weak::upgrade).collect();
        files.iter().for_each(|file| file.before_fork());
    }

    /// Tells the user something, unless the same was said before or too much was.
    pub(crate) fn say_once(&self, text: &str) {
        let mut said = lock(&self.said);
        if said.len() < MOST_SAID && !said.iter().any(|before| before == text) {
            said.push(text.to_owned());
            say(text);
        }
    }

    /// Hands an error to the program through the library's error stack. The number that the system gave is written as
    /// the library itself does, which is how h5py finds it.
    pub(crate) fn report(&self, error: &Error) {
        self.stats.errors.fetch_add(1, Ordering::Relaxed);
        let mut text = format!("hyperslab: {error}");
        if let Some(number) = number_of(error) {
            let meaning = std::io::Error::from_raw_os_error(number);
            text += &format!(", errno = {number}, error message = '{meaning}'");
        }
        text.retain(|c| c != '\0');
        if let Ok(text) = CString::new(text) {
            self.push_error(&text);
        }
    }

    /// Runs something that calls the library, and leaves the program's error stack as it was. Nothing is printed.
    pub(crate) fn preserving_error_stack<T>(&self, body: impl FnOnce() -> T) -> T {
        // SAFETY: called inside a call of the library.
        let stack = unsafe { self.H5Eget_current_stack() };
        let result = self.quietly(body);
        // SAFETY: the stack was just taken.
        unsafe { self.H5Eset_current_stack(stack) };
        result
    }

    /// Runs something that calls the library, which prints no errors by itself meanwhile.
    pub(crate) fn quietly<T>(&self, body: impl FnOnce() -> T) -> T {
        let (mut function, mut data): (Ptr, Ptr) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: called inside a call of the library; 0 is the stack of this thread.
        let known = unsafe {
            let known = self.H5Eget_auto2(0, &raw mut function, &raw mut data) >= 0;
            if known {
                self.H5Eset_auto2(0, std::ptr::null_mut(), std::ptr::null_mut());
            }
            known
        };
        let result = body();
        if known {
            // SAFETY: as above, with what was there before.
            unsafe { self.H5Eset_auto2(0, function, data) };
        }
        result
    }

    /// The library's last error as ours, with the number that the system gave. Its stack is left as it is: the program finds
    /// the cause there.
    pub(crate) fn failed(&self, doing: &'static str) -> Error {
        let cause = self.system_error().map(|cause| format!(": {cause}")).unwrap_or_default();
        Error::new(hyperslab_core::ErrorKind::Io, doing, format!("libhdf5 refused{cause}"))
    }

    /// The error of the system that the library's error stack tells of, which it writes as `errno = N`.
    fn system_error(&self) -> Option<std::io::Error> {
        /// `H5E_error2_t`.
        #[repr(C)]
        struct Entry {
            class: Hid,
            major: Hid,
            minor: Hid,
            line: c_uint,
            function: *const libc::c_char,
            file: *const libc::c_char,
            text: *const libc::c_char,
        }
        unsafe extern "C" fn visit(_: c_uint, entry: *const Entry, found: Ptr) -> Herr {
            // SAFETY: the library hands an entry of its stack and what it was given, for the time of this call.
            let (entry, found) = unsafe { (entry.as_ref(), found.cast::<Option<i32>>().as_mut()) };
            if let (Some(entry), Some(found)) = (entry, found) {
                // SAFETY: a text of the library, or null.
                let text = unsafe { text(entry.text) };
                let number =
                    text.split_once("errno = ").and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
                *found = found.or(number);
            }
            0
        }
        let mut found: Option<i32> = None;
        // SAFETY: called inside a call of the library; `found` outlives the walk.
        unsafe { self.H5Ewalk2(0, 0, visit as Ptr, (&raw mut found).cast()) };
        found.filter(|number| *number != 0).map(std::io::Error::from_raw_os_error)
    }
}

/// The number that the system gave an error, if any.
fn number_of(error: &Error) -> Option<i32> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(number) = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) {
            return Some(number);
        }
        cause = error.source();
    }
    // An error that is told later has the text of its cause only.
    let text = error.to_string();
    let (_, after) = text.rsplit_once("(os error ")?;
    after.split(')').next()?.parse().ok()
}

/// Text of the library, as far as it is valid.
///
/// # Safety
/// `text` is null or ends in NUL.
pub(crate) unsafe fn text(text: *const libc::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and it ends in NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
