//! A burst-buffer log: `log(dir=/local/scratch)/hdf5`.
//!
//! Many small scattered writes are appended to a journal on fast storage, and later drained to the format below as few large
//! writes in file order. A write returns once it is in the log. The background, a flush and close merge the pending writes
//! ([`reorder`]) and drain them. docs/log-format.md specifies the files.
//!
//! # Guarantees
//!
//! * **Crash safety.** A write that has returned survives a process crash, unless `durability` says otherwise:
//!   `hyperslab recover DIR` brings it to the file.
//! * **Order.** The last of overlapping writes of a rank always wins. A read sees every earlier write of the same rank: what is
//!   in the log is overlaid on the file, without draining. Other ranks and programs see writes after a flush, as with the
//!   format alone. (In formats without object identity, an array known by two names counts as two: flush between accesses
//!   by different names.)
//! * **Draining** starts when `drain` bytes are pending or one write is older than `age`, at a flush, at close, before a write
//!   that cannot be logged, before a change of shape (except a single rank growing the first dimension), and before a read that
//!   overlaps more than 65,536 pending writes. The program waits for it in these cases and when the log is full, and never
//!   otherwise.
//! * **Collective drains.** At a flush and at close all ranks drain in rounds of `buffer` bytes, as many as the rank with the
//!   most pending writes needs. Interleaved requests of different ranks are exchanged first, as in `twophase`, so that few ranks
//!   write large requests. Ranks that are threads need no exchange for arrays without chunks: few of them read from all logs.
//!   In the background each rank drains by itself.
//! * **Memory.** About 200 bytes for each pending write, at most `memory`; `buffer` for a round, as much for partly needed
//!   writes, and the buffers of the exchange.
//! * **A full or failed log** is drained as far as possible; then writes are written through, with a diagnostic. If the
//!   file fails, pending writes stay in the log for recovery, the container refuses everything but close, and the error
//!   is reported once, at the next flush or at close.
//! * **Written through, never logged:** writes of some fields of elements, and arrays with filters if ranks are processes. Such a
//!   write is as durable in the container as a logged one when the call returns.
//! * **Arrays with filters** whose chunks the format may relocate (`Execution::relocates_chunks`) are logged by a single rank only,
//!   writes of some fields included. They are drained chunk by chunk, each protected by a
//!   [chunk image](hyperslab_journal::chunk_images); several ranks write them through.
//! * **Arrays without background I/O** ([`Array::allows_background_io`](hyperslab_core::Array::allows_background_io)) are drained
//!   by the program's threads only: at flush, close, and when the log is full.
//! * **Collective transfers** are independent for every rank. Closing an array does not wait for its writes.
//! * Dropping a container without closing it drains what is left. After a fork the child is refused.

mod array;
mod array_log;
mod chunk_drain;
mod collective_drain;
mod container;
mod drain;
mod drain_throttle;
mod log_state;
mod merged_read;
mod options;
mod partition;
mod pending_writes;
mod read_windows;
pub mod reorder;
mod session;

use crate::LayerEntry;
use crate::background::{FilteredArrays, Pool, Staging, StagingOptions, refuse_unrecovered};
use crate::rank_shared::share;
use collective_drain::Group;
use container::LogContainer;
use drain_throttle::DrainThrottle;
use hyperslab_core::{Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use log_state::LogState;
use options::Options;
pub(crate) use options::check_durability;
use session::Session;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "log";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "writes are appended to a log that survives a crash, and moved to the file in large pieces (burst buffer)",
    options: options::SPECS,
    bare: &[],
    wrap,
    effect: options::effect,
    consequence: Some(
        "after a crash, hyperslab recover brings what is in the log into the file; until it is drained other programs do not see it",
    ),
    connector_mode: Some(NAME),
    h5bench_mode: None,
};

fn wrap(element: &StackElement, inner: Arc<dyn Format>, below: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    let exchanges = below.has_layer(crate::twophase::NAME);
    let together = if exchanges { inner.clone() } else { crate::twophase::over(inner.clone())? };
    Ok(Arc::new(LogFormat { inner, together, exchanges, options, below: below.to_string() }))
}

/// A format whose writes go through a log.
#[derive(Debug)]
struct LogFormat {
    inner: Arc<dyn Format>,
    /// The same, with an exchange between ranks.
    together: Arc<dyn Format>,
    /// Whether the stack asks for the exchange.
    exchanges: bool,
    options: Options,
    /// The stack below.
    below: String,
}

impl LogFormat {
    fn staging(&self, path: &Path) -> StagingOptions {
        let beside = || match path.parent() {
            Some(folder) if folder != Path::new("") => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let directory = self.options.directory.clone().unwrap_or_else(beside);
        StagingOptions {
            directory,
            limit: self.options.limit,
            below: self.below.clone(),
            layer: NAME,
            sync: self.options.durability,
            direct: self.options.direct,
            per_node: self.options.per_node,
            on_failure: self.options.on_failure,
            member: self.options.member,
            filtered: if self.inner.caps().execution.relocates_chunks {
                FilteredArrays::WithImages
            } else {
                FilteredArrays::Usual
            },
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for LogFormat {
    hyperslab_core::forward!(self, self.inner, [caps, extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        if how == OpenMode::Read {
            return self.inner.open(path, how, comm);
        }
        let options = self.staging(path);
        refuse_unrecovered(&options, path, &**comm)?;
        // Of its own, so that calls in the background never mix with those of the program.
        let background = comm.duplicate()?;
        let below = if comm.size() > 1 { &self.together } else { &self.inner };
        let inner = below.open(path, how, &background)?;
        let pool = Arc::new(Pool::default());
        let staging = Staging::create(&options, path, &inner, &**comm, pool.clone())?;
        let begin = self.options.begin.bytes(staging.limit());
        let pace = DrainThrottle::new(begin.unwrap_or(u64::MAX), self.options.age, self.options.rate);
        let group = match comm.one_process() {
            _ if comm.size() == 1 || self.exchanges => None,
            true => Some(share(&**comm, || Arc::new(Group::threads(comm.size())))?),
            false => staging.is_readable().then(|| Arc::new(Group::Processes)),
        };
        let store = LogState::new(staging, pool, self.options.clone(), pace, comm.clone(), group);
        let session = Arc::new(Session::new(store, begin.is_some() && comm.many_threads()));
        Ok(Arc::new(LogContainer { inner, session }))
    }
}
