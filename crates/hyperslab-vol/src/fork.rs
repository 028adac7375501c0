//! What happens to open files when the program forks.
//!
//! Before the fork, writes that wait in memory go to their files. The child has no threads of ours: its transfers go the
//! direct way, and what goes on in a log is the parent's alone.

use crate::host;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked from one that had loaded the connector.
pub(crate) fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}

/// Has forks noticed from now on.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    // SAFETY: the functions live as long as the program: the library is never unloaded.
    WATCHED.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), None, Some(in_child));
    });
}

extern "C" fn before() {
    // What fails is told at the next flush or close.
    let _ = std::panic::catch_unwind(|| host::all().for_each(|host| host.before_fork()));
}

extern "C" fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
    // The parent's alone, and its locks end with it.
    let _ = std::panic::catch_unwind(hyperslab_rollback::forget_in_child);
}
