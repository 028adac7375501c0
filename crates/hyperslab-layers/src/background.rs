//! Transfers on background threads, for layers that stand between a caller and slow storage.

mod available;
mod data;
mod engine;
mod job;
mod overlay;
mod pages;
mod pool;
mod prefetched;
mod queue;
mod staging;
mod sync;
mod times;

pub(crate) use available::share_of_memory;
pub(crate) use data::Data;
pub(crate) use engine::{Engine, Held};
pub(crate) use job::{Job, Place, caught};
pub(crate) use overlay::{copy_elements, read as read_waiting};
pub(crate) use pool::{Buffer, Pool};
pub(crate) use staging::{
    Appended, Filtered, ON_LOG_FAILURE, OnLogFailure, Others, READERS, Record, STEP, Staging, StagingOptions,
    refuse_left_over,
};
pub(crate) use times::Times;
