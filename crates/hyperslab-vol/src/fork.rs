//! Fork handling.
//!
//! Before the fork, buffered writes are written back. The child has no background threads and shares the parent's
//! descriptors: inherited open files use the direct path without layers, and a log belongs to the parent only. Files
//! that the child opens itself are accelerated as usual. The forking thread holds all global locks of the connector, so
//! that no other thread does at that moment.

use crate::host::{self, Host};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, Once};

/// Forks between the process that loaded the connector and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Which process this is, for what belongs to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// That of this process.
pub(crate) fn generation() -> Generation {
    Generation(GENERATION.load(Ordering::Relaxed))
}

/// Whether this process was forked from one that had loaded the connector.
pub(crate) fn is_child() -> bool {
    GENERATION.load(Ordering::Relaxed) > 0
}

/// Everything that must not change while the process forks.
struct Held {
    hosts: Vec<(&'static Host, host::HeldLocks<'static>)>,
    _bases: MutexGuard<'static, Vec<usize>>,
    layers: hyperslab_layers::fork::ForkGuard,
    journals: hyperslab_rollback::HeldJournals,
}

thread_local! {
    /// Of the thread that forks, until that is done.
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Has forks noticed from now on.
pub(crate) fn watch() {
    static WATCHED: Once = Once::new();
    // SAFETY: the functions live as long as the program: the library is never unloaded.
    WATCHED.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

extern "C" fn before() {
    // What fails is told at the next flush or close.
    let _ = std::panic::catch_unwind(|| {
        host::all().for_each(|host| host.before_fork());
        let bases = host::hold_hosts();
        let layers = hyperslab_layers::fork::lock();
        let hosts = host::all().map(|host| (host, host.hold_locks())).collect();
        // Last: files that are closed take it with others held.
        let journals = hyperslab_rollback::hold_journals();
        let _ = HELD.try_with(|held| held.replace(Some(Held { hosts, _bases: bases, layers, journals })));
    });
}

extern "C" fn in_parent() {
    let _ = std::panic::catch_unwind(take);
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    crate::terminate::in_child();
    let _ = std::panic::catch_unwind(|| {
        hyperslab_h5direct::reset_after_fork();
        if let Some(Held { hosts, layers, _bases, journals }) = take() {
            // The parent's alone, and its locks end with it.
            journals.forget_in_child();
            hosts.into_iter().for_each(|(host, held)| host.begin_anew(held));
            layers.reset_in_child();
        }
    });
}

fn take() -> Option<Held> {
    HELD.try_with(RefCell::take).ok().flatten()
}
