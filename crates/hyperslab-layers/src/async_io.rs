//! Asynchronous I/O: `async(threads=2,memory=1GiB)/hdf5`.
//!
//! A write returns after its data is copied to a buffer, and the format below writes it in the background while the program
//! computes. Elements are prefetched by hints or by the pattern of earlier reads.
//!
//! # Guarantees
//!
//! * **Order.** Overlapping accesses, one of them a write, run in the order of the calls; others in any order, concurrently with
//!   `threads`. A read sees every earlier write of the same rank. Other ranks and programs see writes after a flush, as with the
//!   format alone. (An array known by two names, as through HDF5 hard links, counts as two arrays: flush between accesses by
//!   different names.)
//! * **Memory.** At most `memory` bytes per rank and container, including pooled buffers. When they are in use, the caller
//!   blocks (backpressure); a single larger transfer is synchronous, without a copy.
//! * **Lag.** With `lag=1s` a write blocks while an earlier one has been queued for longer, and while more than 8 MiB are queued
//!   that would take longer than that to drain at the rate measured so far.
//! * **Errors.** A background error is reported once: by the request of `submit_write`, otherwise by the next flush or close,
//!   with the name of the array. From then on the container refuses everything but close; queued writes are cancelled, and
//!   reported as such. Close always releases everything.
//! * **Collective transfers** keep their order and run one at a time. A rank that failed still takes an empty part, so that no
//!   other waits for it. Collective calls other than writes wait for earlier collective writes.
//! * Closing an array does not wait for its writes: the array below is closed later, at the latest by the next flush or
//!   close of the container; at most 32 arrays are kept open that way.
//! * Arrays without background I/O ([`Array::allows_background_io`](hyperslab_core::Array::allows_background_io)) are written
//!   synchronously, and not prefetched.
//! * Dropping a container without closing it completes the queue; errors are lost.
//! * After a fork the child is refused: background threads do not survive it.
//!
//! # Prefetching
//!
//! By hints ([`Array::prefetch`](hyperslab_core::Array::prefetch)), and the next two selections when the last three of an array
//! had equal strides. Prefetched data is dropped when this rank overwrites any of it, when memory is needed for writes, and,
//! unless the container is open read-only, at every call that makes other ranks' writes visible.

mod array;
mod container;
mod options;
mod readahead;

use crate::LayerEntry;
use crate::background::{Staging, StagingOptions, refuse_unrecovered, share_of_memory};
pub(crate) use container::AsyncContainer;
use container::Shared;
use hyperslab_core::{Caps, Communicator, Container, Format, LayerEffect, OpenMode, Result, Stack, StackElement};
pub(crate) use options::{AHEAD, Options, lag};
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "async";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "writes return after a copy and go on in the background; reads are made ahead",
    options: options::SPECS,
    bare: &[],
    wrap,
    effect: |_| Ok(LayerEffect::Overlap),
    consequence: Some("writes are held in memory until they are stored: a crash of the program loses them"),
    connector_mode: Some(NAME),
    h5bench_mode: Some("ASYNC"),
};

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    Ok(Arc::new(AsyncFormat { inner, options, staging: None }))
}

/// A format whose transfers go on in the background.
#[derive(Debug)]
pub(crate) struct AsyncFormat {
    pub inner: Arc<dyn Format>,
    pub options: Options,
    /// Where writes wait, if not in memory.
    pub staging: Option<StagingOptions>,
}

#[deny(clippy::missing_trait_methods)]
impl Format for AsyncFormat {
    hyperslab_core::forward!(self, self.inner, [extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        self.options.layer
    }

    fn caps(&self) -> Caps {
        let mut caps = self.inner.caps();
        caps.execution.prefetch = true;
        caps
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(self.open_container(path, how, comm)?))
    }
}

impl AsyncFormat {
    /// Opens a container. Collective.
    pub fn open_container(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<AsyncContainer> {
        // Of its own, so that calls in the background never mix with those of the program.
        let background = comm.duplicate()?;
        let memory = match self.options.memory {
            Some(bytes) => bytes,
            None => share_of_memory(&**comm)?,
        };
        let staging = self.staging.as_ref().filter(|_| how != OpenMode::Read && comm.many_threads());
        if let Some(options) = staging {
            refuse_unrecovered(options, path, &**comm)?;
        }
        let inner = self.inner.open(path, how, &background)?;
        let mut shared = Shared::new(how, comm.clone(), background, self.options, memory);
        let caps = self.inner.caps();
        (shared.partial_fields, shared.hands_hints_on) = (caps.data.partial_fields, caps.execution.prefetch);
        if let Some(options) = staging {
            let staging = Staging::create(options, path, &inner, &**comm, shared.engine.pool().clone())?;
            shared.staging = Some(Arc::new(staging));
        }
        Ok(AsyncContainer { inner, shared: Arc::new(shared) })
    }
}
