//! Transfers on background threads, for layers that stand between a caller and slow storage.

mod available;
mod engine;
mod job;
mod pool;
mod prefetched;
mod queue;
mod sync;
mod times;

pub(crate) use available::share_of_memory;
pub(crate) use engine::Engine;
pub(crate) use job::{Job, Place};
