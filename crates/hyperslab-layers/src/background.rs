//! Background transfers: threads, task queue, buffers, prefetching, and staging of writes in memory or a journal. Shared by
//! the layers `async`, `cache` and `log`.

mod engine;
mod huge_pages;
mod job;
mod loom_shim;
mod memory_budget;
mod payload;
mod pool;
mod prefetch_slot;
mod queue;
mod read_your_writes;
mod staging;
mod stats;

pub(crate) use engine::{Engine, StagedPayload};
pub(crate) use job::{ArrayHandle, Job, catch_panic};
pub(crate) use memory_budget::share_of_memory;
pub(crate) use payload::Payload;
pub(crate) use pool::{Buffer, Pool};
pub(crate) use read_your_writes::{copy_elements, read as read_waiting};
pub(crate) use staging::{
    AppendResult, CHECKSUM_STEP, FilteredArrays, Member, ON_LOG_FAILURE, OnLogFailure, PeerStaging, READERS,
    StagedWrite, Staging, StagingOptions, refuse_unrecovered,
};
pub(crate) use stats::TransferTimes;
