//! Tracks which threads are inside a callback of libhdf5: only those may call it.

use hyperslab_core::{Error, Result};
use hyperslab_rollback::Rollback;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A call of libhdf5.
type Call = Box<dyn FnOnce() -> Result<()>>;

/// Where a thread is. Its address identifies the thread.
struct Thread {
    /// Callbacks that it is in.
    depth: Cell<u32>,
    /// Whether journals wait in [`WRITTEN`].
    has_written: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = const { Thread { depth: Cell::new(0), has_written: Cell::new(false) } };
    /// The program's own libhdf5 call, to be run by the innermost array or container.
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
    /// Journals of files that were written in the callback.
    static WRITTEN: RefCell<Vec<Weak<Rollback>>> = const { RefCell::new(Vec::new()) };
}

/// The thread of the last callback.
static LAST: AtomicUsize = AtomicUsize::new(0);

fn this_thread() -> usize {
    THREAD.with(|thread| std::ptr::from_ref(thread) as usize)
}

/// Marks this thread as inside a callback until dropped.
pub(crate) struct CallbackScope(());

impl CallbackScope {
    /// Enters a callback.
    pub(crate) fn enter() -> Self {
        THREAD.with(|thread| {
            thread.depth.set(thread.depth.get() + 1);
            LAST.store(std::ptr::from_ref(thread) as usize, Ordering::Relaxed);
        });
        Self(())
    }

    /// Enters outside a callback, such as before a fork, on the thread of the last callback; `None` on any other.
    pub(crate) fn reenter() -> Option<Self> {
        (LAST.load(Ordering::Relaxed) == this_thread()).then(Self::enter)
    }
}

impl Drop for CallbackScope {
    fn drop(&mut self) {
        let settles = THREAD.with(|thread| {
            thread.depth.set(thread.depth.get() - 1);
            thread.depth.get() == 0 && thread.has_written.take()
        });
        if settles {
            // libhdf5 closes down after this thread's variables are gone.
            let written = WRITTEN.try_with(RefCell::take).unwrap_or_default();
            written.iter().filter_map(Weak::upgrade).for_each(|rollback| rollback.settle());
        }
    }
}

/// Has a journal note how its file is: when this callback ends, or at once on threads of our own.
pub(crate) fn settle(rollback: &Arc<Rollback>) {
    let later = |written: &RefCell<Vec<Weak<Rollback>>>| {
        THREAD.with(|thread| thread.has_written.set(true));
        let mut written = written.borrow_mut();
        if !written.iter().any(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(rollback))) {
            written.push(Arc::downgrade(rollback));
        }
    };
    if !in_callback() || WRITTEN.try_with(later).is_err() {
        rollback.settle();
    }
}

/// Whether this thread is inside a callback.
pub(crate) fn in_callback() -> bool {
    THREAD.with(|thread| thread.depth.get() > 0)
}

/// Runs `body`, which passes through layers to an array or container that runs `native` by [`run_native_call`].
pub(crate) fn with_native_call<T>(native: impl FnOnce() -> Result<()>, body: impl FnOnce() -> T) -> T {
    let native: Box<dyn FnOnce() -> Result<()> + '_> = Box::new(native);
    // SAFETY: only the lifetime changes; what is left of it goes below, before anything it borrows does.
    let native = unsafe { std::mem::transmute::<Box<dyn FnOnce() -> Result<()> + '_>, Call>(native) };
    let _emptied = Emptied(CALL.replace(Some(native)));
    body()
}

/// Restores the outer call when dropped.
struct Emptied(Option<Call>);

impl Drop for Emptied {
    fn drop(&mut self) {
        let before = self.0.take();
        drop(CALL.replace(before));
    }
}

/// Runs the call that [`with_native_call`] was given, at most once.
pub(crate) fn run_native_call() -> Result<()> {
    match CALL.take() {
        Some(call) => call(),
        None => Err(Error::unsupported("call libhdf5", "there is no call to make")),
    }
}
