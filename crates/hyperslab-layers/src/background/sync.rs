//! The parts of the standard library that the queue's tests replace, so that every order of threads can be tried.

#[cfg(loom)]
pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
