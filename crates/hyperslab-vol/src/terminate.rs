//! SIGTERM while writes wait in memory: they are written first, and then the process dies of the signal as it would have.
//!
//! Only where the program leaves the signal to the system, and only from the first file on whose writes may wait. The handler
//! wakes a thread, which waits for the threads that move bytes; it never calls libhdf5. Calls of the program that come to
//! the connector meanwhile do not return.

use crate::host;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering::SeqCst};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

/// How long the end may take before the user is told.
const PATIENCE: Duration = Duration::from_secs(1);

/// The process that has the thread; 0 for none.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// What the thread waits for. A descriptor could have been closed by the program and be another file's.
static WAKE: AtomicPtr<libc::sem_t> = AtomicPtr::new(std::ptr::null_mut());
static UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// Has SIGTERM wait for writes from now on, unless the program does something else with it.
pub(crate) fn watch() {
    static WATCHED: Mutex<()> = Mutex::new(());
    // Another thread does it.
    let Ok(_watched) = WATCHED.try_lock() else { return };
    // SAFETY: asks for a number.
    let own = unsafe { libc::getpid() };
    if OWNER.load(SeqCst) == own || action() != libc::SIG_DFL {
        return;
    }
    let Some(semaphore) = semaphore() else { return };
    let address = semaphore as usize;
    let started = without_signals(|| {
        let builder = std::thread::Builder::new().name("hyperslab-term".into());
        builder.spawn(move || wait_for_signal(address as *mut libc::sem_t)).is_ok()
    });
    if started {
        WAKE.store(semaphore, SeqCst);
        OWNER.store(own, SeqCst);
        set_action(on_signal as *const () as usize);
    }
}

/// In a process that was forked: the thread is not here.
pub(crate) fn in_child() {
    if OWNER.swap(0, SeqCst) != 0 && action() == on_signal as *const () as usize {
        set_action(libc::SIG_DFL);
    }
    UNDER_WAY.store(false, SeqCst);
}

/// Does not return if the process is about to die.
pub(crate) fn stop_here_if_under_way() {
    while UNDER_WAY.load(SeqCst) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Runs `body`, after a second of which the user is told `what`, once in the life of the process.
pub(crate) fn telling_if_slow<T>(what: String, body: impl FnOnce() -> T) -> T {
    static SAID: AtomicBool = AtomicBool::new(false);
    let (done, ended) = mpsc::channel::<()>();
    let watch = move || {
        let late = ended.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if late && !SAID.swap(true, SeqCst) {
            host::say(&what);
        }
    };
    // Without a thread nothing is said.
    let _ = without_signals(|| std::thread::Builder::new().name("hyperslab-word".into()).spawn(watch));
    let result = body();
    drop(done);
    result
}

extern "C" fn on_signal(signal: c_int) {
    // SAFETY: all calls are allowed in a handler; the semaphore lives as long as the program, and errno is this thread's.
    unsafe {
        let number = *libc::__errno_location();
        if libc::getpid() == OWNER.load(SeqCst) {
            UNDER_WAY.store(true, SeqCst);
            libc::sem_post(WAKE.load(SeqCst));
        } else {
            // A copy without the thread.
            set_action(libc::SIG_DFL);
            libc::raise(signal);
        }
        *libc::__errno_location() = number;
    }
}

/// The thread: dies with the process.
fn wait_for_signal(semaphore: *mut libc::sem_t) {
    // SAFETY: the semaphore lives as long as the program.
    while unsafe { libc::sem_wait(semaphore) } != 0 {}
    let _ = std::panic::catch_unwind(|| {
        let what = "SIGTERM: the process ends when what waits in memory is written".to_owned();
        telling_if_slow(what, || host::all().for_each(|host| host.write_pending()));
    });
    if action() == on_signal as *const () as usize {
        set_action(libc::SIG_DFL);
    }
    // SAFETY: sends a signal to this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGTERM) };
    // The program may have taken the signal over meanwhile.
    UNDER_WAY.store(false, SeqCst);
    OWNER.store(0, SeqCst);
}

/// A semaphore for the life of the program.
fn semaphore() -> Option<*mut libc::sem_t> {
    // SAFETY: all zeros are valid memory for one.
    let semaphore = Box::into_raw(Box::new(unsafe { std::mem::zeroed::<libc::sem_t>() }));
    // SAFETY: the memory is never freed.
    (unsafe { libc::sem_init(semaphore, 0, 0) } == 0).then_some(semaphore)
}

/// Runs `body`, whose threads get no signals: these are the program's.
fn without_signals<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: all zeros are a valid set; both are variables of this function.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        let blocked = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0;
        let result = body();
        if blocked {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
        result
    }
}

/// What is done with SIGTERM; something that is nobody's if that cannot be asked.
fn action() -> usize {
    // SAFETY: all zeros are a valid action, and the pointer is to a variable.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        let asked = libc::sigaction(libc::SIGTERM, std::ptr::null(), &raw mut now) == 0;
        if asked { now.sa_sigaction } else { usize::MAX }
    }
}

fn set_action(to: usize) {
    // SAFETY: all zeros are a valid action; a handler of ours makes only calls that are allowed in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = to;
        action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut());
    }
}
