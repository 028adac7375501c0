//! A cache: `cache(dir=/local/scratch,memory=4GiB)/hdf5`.
//!
//! Writes are staged, in memory or in a journal that survives the process, and moved to the format below in the
//! background: all of that is [`async_io`]'s, which `wrap` puts above the rest of this module. It keeps what was read.
//!
//! Elements that were read stay in memory block by block, and are read from there when asked for again: from the second
//! epoch on, shuffled samples of a data set that fits cost a copy. Blocks are the chunks of an array; arrays without
//! chunks are cut into whole rows of up to 256 KiB, or as `block` says.
//!
//! # What is kept
//!
//! * **Memory.** At most `memory` bytes per rank and container are held: blocks, those being read or copied from, their
//!   bookkeeping, and buffers. Threads that open a container together for reading share one cache of all their bytes.
//!   Blocks larger than a quarter of it are not kept.
//! * **While there is room**, a block is kept when all of it is read. It is read whole for less: for a sixteenth of it if the
//!   array fits in memory, for half of it if not, for anything if it has filters, which decode whole chunks, and when
//!   it is asked for the second time.
//! * **When memory is full**, a block is kept only if it was asked for lately and not kept then; others leave in turn, those
//!   used meanwhile later ([`replacement`]). So what is read once, as in a scan, displaces nothing and is not even
//!   copied, and neither does a single read larger than half of the memory.
//! * What is not kept is read by the very call that the program made. Missing blocks that are neighbours are read together.
//!   Reads of more than 4096 blocks are left to the format below.
//!
//! # What is promised
//!
//! * **Own writes are seen.** A write of any form drops the blocks it touches, however it ends, and blocks that are being
//!   read meanwhile are not kept.
//! * **Other ranks' writes are seen after a flush**, which drops everything, unless the container is open for reading
//!   only: then blocks stay until it is closed. A flush of several ranks returns when all have flushed. Collective writes
//!   drop the blocks of the array.
//! * **Collective reads** of several ranks are left to the format below, so that every rank takes part.
//! * Of formats that do not tell objects apart ([`Array::object`](hyperslab_core::Array::object)), an array known by two names
//!   counts as two: flush between accesses by different names.
//! * Nothing is kept of a read that failed.
//! * Hints ([`Array::prefetch`](hyperslab_core::Array::prefetch)) are handed on for what is not in memory.

mod array;
mod block;
mod container;
mod counts;
mod geometry;
mod named;
mod options;
mod piece;
mod plan;
mod read;
mod replacement;
mod store;

use crate::LayerEntry;
use crate::async_io::{self, AsyncFormat};
use crate::background::{Filtered, StagingOptions, share_of_memory};
use crate::journal::SyncMode;
use container::{CachedContainer, Shared};
use counts::Counts;
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use options::Options;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use store::Store;

const NAME: &str = "cache";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "writes are staged on the node and moved in the background; what was read stays in memory",
    options: options::SPECS,
    bare: &[],
    wrap,
};

/// Staged writes above, what was read below: reads of what is staged never get further.
fn wrap(element: &StackElement, inner: Arc<dyn Format>, below: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    // Writes are moved one by one, not chunk by chunk.
    let filtered = if inner.caps().relocates_chunks { Filtered::Never } else { Filtered::Usual };
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

/// A format whose elements stay in memory once they were read.
#[derive(Debug)]
struct ReadCached {
    inner: Arc<dyn Format>,
    options: Options,
}

impl ReadCached {
    /// The cache of a container that is about to be opened. Collective.
    fn store(&self, read_only: bool, comm: &dyn Communicator) -> Result<Arc<Store>> {
        let memory = match self.options.memory {
            Some(bytes) => bytes,
            None => share_of_memory(comm)?,
        };
        // Threads that write have a cache each: what one has written the others may not see yet.
        match read_only && comm.one_process() && comm.size() > 1 {
            true => crate::share::share(comm, || Store::new(memory, comm.size() as u64)),
            false => Ok(Store::new(memory, 1)),
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for ReadCached {
    fn name(&self) -> &'static str {
        NAME
    }

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn extension(&self) -> &'static str {
        self.inner.extension()
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
            prefetch: self.inner.caps().prefetch,
            counts: Counts::default(),
            closed: AtomicBool::new(false),
        };
        Ok(Arc::new(CachedContainer { inner, shared: Arc::new(shared) }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.inner.files(path)
    }
}
