//! A read cache with staged writes: `cache(dir=/local/scratch,memory=4GiB)/hdf5`.
//!
//! Writes are staged in memory, or in a journal that survives a process crash, and drained to the format below in the
//! background: that is the layer [`async_io`], which `wrap` puts above the read cache of this module.
//!
//! Elements that were read stay in memory by block: from the second epoch on, shuffled samples of a data set that fits cost
//! a copy. Blocks are the chunks of an array; arrays without chunks are divided into whole rows of up to 256 KiB, or as the
//! option `block` says.
//!
//! # Admission and eviction
//!
//! * **Memory.** At most `memory` bytes per rank and container: blocks, including those being read or copied from, their
//!   bookkeeping, and buffers. Threads that open a container together for reading share one cache of all their bytes.
//!   Blocks larger than a quarter of it are not cached.
//! * **With free memory**, a block is cached when all of it is read. It is read whole for less: for a sixteenth of it if the
//!   array fits in memory, for half of it if not, and for any part if it has filters, which decode whole chunks, or is
//!   requested for the second time.
//! * **With full memory**, a block is cached only if it was requested recently and not cached then; others are evicted in CLOCK
//!   order ([`eviction`]). Data read once, as in a scan, evicts nothing and is not even copied, and neither does a
//!   single read larger than half of the memory.
//! * What is not cached is read by the program's own call. Adjacent missing blocks are read by one request.
//!   Reads of more than 4096 blocks bypass the cache.
//!
//! # Guarantees
//!
//! * **Own writes are visible.** A write of any form, successful or not, invalidates the blocks it overlaps, including blocks
//!   that are being read.
//! * **Other ranks' writes are visible after a flush**, which invalidates everything, unless the container is open
//!   read-only: then blocks stay until it is closed. A flush of several ranks returns when all have flushed. Collective writes
//!   invalidate all blocks of the array.
//! * **Collective reads** of several ranks bypass the cache, so that every rank takes part.
//! * In formats without object identity ([`Array::object`](hyperslab_core::Array::object)), an array known by two names
//!   counts as two: flush between accesses by different names.
//! * Failed reads are not cached.
//! * Hints ([`Array::prefetch`](hyperslab_core::Array::prefetch)) are forwarded for what is not in memory.

mod array;
mod array_state;
mod block;
mod block_cache;
mod boxes;
mod container;
mod eviction;
mod geometry;
mod options;
mod read;
mod read_plan;
mod stats;

use crate::LayerEntry;
use crate::async_io::{self, AsyncFormat};
use crate::background::{FilteredArrays, StagingOptions, share_of_memory};
use block_cache::BlockCache;
use container::{CachedContainer, Shared};
use hyperslab_core::{Communicator, Container, Format, LayerEffect, OpenMode, Result, Stack, StackElement};
use hyperslab_journal::SyncMode;
use options::Options;
use stats::CacheStats;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const NAME: &str = "cache";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "writes are staged on the node and moved in the background; what was read stays in memory",
    options: options::SPECS,
    bare: &[],
    wrap,
    effect: |element| Ok(LayerEffect::ReadCache { memory: element.size("memory")?.unwrap_or(u64::MAX) }),
    consequence: Some("writes are held in memory, and what other programs write is seen after a flush only"),
    connector_mode: Some(NAME),
    h5bench_mode: None,
};

/// Staging above, read cache below: reads of staged elements do not reach the cache.
fn wrap(element: &StackElement, inner: Arc<dyn Format>, below: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    // Writes are drained one by one, not chunk by chunk.
    let filtered = if inner.caps().execution.relocates_chunks { FilteredArrays::Never } else { FilteredArrays::Usual };
    let cached = Arc::new(ReadCached { inner, options: options.clone() });
    let staging = options.directory.as_ref().map(|directory| StagingOptions {
        directory: directory.clone(),
        limit: options.stage,
        below: below.to_string(),
        layer: NAME,
        sync: SyncMode::OnFlush,
        direct: false,
        per_node: false,
        filtered,
        on_failure: options.on_failure,
        member: None,
    });
    let background = async_io::Options {
        layer: NAME,
        threads: options.threads,
        memory: options.stage.filter(|_| staging.is_none()),
        ahead: async_io::AHEAD,
        lag: options.lag,
    };
    Ok(Arc::new(AsyncFormat { inner: cached, options: background, staging }))
}

/// A format that caches blocks of what is read.
#[derive(Debug)]
struct ReadCached {
    inner: Arc<dyn Format>,
    options: Options,
}

impl ReadCached {
    /// Creates the block cache of a container that is about to be opened. Collective.
    fn store(&self, read_only: bool, comm: &dyn Communicator) -> Result<Arc<BlockCache>> {
        let memory = match self.options.memory {
            Some(bytes) => bytes,
            None => share_of_memory(comm)?,
        };
        // Writing threads have separate caches: one rank's writes may not yet be visible to the others.
        match read_only && comm.one_process() && comm.size() > 1 {
            true => crate::rank_shared::share(comm, || BlockCache::new(memory, comm.size() as u64)),
            false => Ok(BlockCache::new(memory, 1)),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for ReadCached {
    hyperslab_core::forward!(self, self.inner, [caps, extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let read_only = how == OpenMode::Read;
        let store = self.store(read_only, &**comm)?;
        let inner = self.inner.open(path, how, comm)?;
        let shared = Shared {
            store,
            comm: comm.clone(),
            options: self.options.clone(),
            read_only,
            prefetch: self.inner.caps().execution.prefetch,
            counts: CacheStats::default(),
            closed: AtomicBool::new(false),
        };
        Ok(Arc::new(CachedContainer { inner, shared: Arc::new(shared) }))
    }
}
