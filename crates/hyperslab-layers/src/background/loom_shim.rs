//! The parts of the standard library that `hyperslab-interleavings` replaces, so that every order of threads can be tried.

pub(super) use std::sync::{Condvar, Mutex, MutexGuard};
