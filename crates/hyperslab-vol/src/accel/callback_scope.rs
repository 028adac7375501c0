//! Which threads may call libhdf5: those that it has called, while they are inside that call.

use hyperslab_core::{Error, Result};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A call of libhdf5.
type Call = Box<dyn FnOnce() -> Result<()>>;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Any address will do to tell threads apart.
    static THREAD: u8 = const { 0 };
    /// A call of libhdf5 that something further in makes at the right moment.
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// The thread that libhdf5 has called last.
static LAST: AtomicUsize = AtomicUsize::new(0);

fn this_thread() -> usize {
    THREAD.with(|thread| std::ptr::from_ref(thread) as usize)
}

/// Ends with the callback.
pub(crate) struct CallbackScope(());

impl CallbackScope {
    /// To be held by a callback.
    pub(crate) fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        LAST.store(this_thread(), Ordering::Relaxed);
        Self(())
    }

    /// For what the thread does on its own that was the last to be called, as before a fork; `None` on any other.
    pub(crate) fn reenter() -> Option<Self> {
        (LAST.load(Ordering::Relaxed) == this_thread()).then(Self::enter)
    }
}

impl Drop for CallbackScope {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Whether this thread is inside a call of libhdf5.
pub(crate) fn in_callback() -> bool {
    DEPTH.get() > 0
}

/// Runs `body`, in which layers call an array or a container of ours that makes the call `native` (`run_native_call`).
pub(crate) fn with_native_call<T>(native: impl FnOnce() -> Result<()>, body: impl FnOnce() -> T) -> T {
    let native: Box<dyn FnOnce() -> Result<()> + '_> = Box::new(native);
    // SAFETY: only the lifetime changes; what is left of it goes below, before anything it borrows does.
    let native = unsafe { std::mem::transmute::<Box<dyn FnOnce() -> Result<()> + '_>, Call>(native) };
    let _emptied = Emptied(CALL.replace(Some(native)));
    body()
}

/// Puts back what was there before, whatever happens.
struct Emptied(Option<Call>);

impl Drop for Emptied {
    fn drop(&mut self) {
        let before = self.0.take();
        drop(CALL.replace(before));
    }
}

/// Makes the call that `with_native_call` was given.
pub(crate) fn run_native_call() -> Result<()> {
    match CALL.take() {
        Some(call) => call(),
        None => Err(Error::unsupported("call libhdf5", "there is no call to make")),
    }
}
