//! A burst-buffer log: `log(dir=/local/scratch)/hdf5`.
//!
//! Many small scattered writes become appends to a log on fast storage, and later few large writes in the order of the
//! file. A write returns when it is in the log. In the background, at a flush and at close, what is there is put in order
//! ([`reorder`]) and moved to the format below. docs/log-format.md describes the files.
//!
//! # What is promised
//!
//! * **A crash of the program loses nothing** that a write call has returned for, unless `durability` says that it may:
//!   `hyperslab recover DIR` moves it to the file.
//! * **Order.** The last of overlapping writes of a rank counts, always. A read sees every earlier write of the same rank, from
//!   the log if it is still there, merged with the file: nothing has to be moved for it. Other ranks and programs see
//!   writes after a flush, as with the format alone. (Of formats that do not tell objects apart, an array known by two names
//!   counts as two: flush between accesses by different names.)
//! * **Moved** are writes when `drain` bytes have gathered or one is older than `age`, at a flush, at close, before a write
//!   that cannot be logged, before a change of the shape other than more rows by one rank alone, and before a read that touches more than 65,536 of them. The
//!   program waits for it in these cases, and when the log is full; else never.
//! * **All together.** At a flush and at close ranks move their writes in rounds of `buffer` bytes, as many as the rank with
//!   most of them needs. Pieces of different ranks that interleave are exchanged first, as in `twophase`, so that few
//!   ranks write large pieces. Ranks that are threads have nothing to exchange: of arrays without chunks, few of them read
//!   from the logs of all. In the background each rank writes for itself.
//! * **Memory.** About 200 bytes for each write in the log, at most `memory`; `buffer` for a round, as much for writes of which
//!   only parts are needed, and what the exchange takes.
//! * **A log that is full or fails** is emptied as far as possible; then writes go straight to the file, with a remark. If the
//!   file fails, what is in the log stays there for recovery, the container refuses everything but close, and the error
//!   is reported once, at the next flush or at close.
//! * What is written through and never logged: some fields of elements; arrays with filters where ranks are processes. What cannot
//!   be logged is as safe in the container, where it is found, when the call returns.
//! * **Arrays with filters** whose chunks the format may move ([`Caps::relocates_chunks`]) are logged by one rank alone, with some fields
//!   too. They are moved chunk by chunk, each kept whole meanwhile ([`images`](crate::images)); several ranks write them through.
//! * Of arrays that only threads of the program may transfer ([`Array::allows_background_io`](hyperslab_core::Array::allows_background_io)) the
//!   background moves nothing: flush, close and whoever finds the log full do.
//! * Collective transfers are made by every rank for itself. Closing an array does not wait for its writes.
//! * Dropping a container without closing it moves what is left. After a fork the child is refused.

mod array;
mod batch;
mod chunks;
mod container;
mod drain;
mod named;
mod options;
mod pace;
mod read;
pub mod reorder;
mod session;
mod shares;
mod store;
mod together;
mod windows;

use crate::LayerEntry;
use crate::background::{Filtered, Pool, Staging, StagingOptions, refuse_left_over};
use crate::share::share;
use container::LogContainer;
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use options::{Begin, Options};
use pace::Pace;
use session::Session;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;
use together::Group;

const NAME: &str = "log";
/// The most that gathers before the background begins, unless the user says so.
const MOST_GATHERED: u64 = 256 << 20;

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "writes are appended to a log that survives a crash, and moved to the file in large pieces (burst buffer)",
    options: options::SPECS,
    bare: &[],
    wrap,
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
            filtered: if self.inner.caps().relocates_chunks { Filtered::WithImages } else { Filtered::Usual },
        }
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for LogFormat {
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
        if how == OpenMode::Read {
            return self.inner.open(path, how, comm);
        }
        let options = self.staging(path);
        refuse_left_over(&options, path, &**comm)?;
        // Of its own, so that calls in the background never mix with those of the program.
        let background = comm.duplicate()?;
        let below = if comm.size() > 1 { &self.together } else { &self.inner };
        let inner = below.open(path, how, &background)?;
        let pool = Arc::new(Pool::default());
        let staging = Staging::create(&options, path, &inner, &**comm, pool.clone())?;
        let begin = match self.options.begin {
            Begin::Usual => Some((staging.limit() / 8).min(MOST_GATHERED)),
            Begin::Bytes(bytes) => Some(bytes),
            Begin::Never => None,
        };
        let pace = Pace::new(begin.unwrap_or(u64::MAX), self.options.age, self.options.rate);
        let group = match comm.one_process() {
            _ if comm.size() == 1 || self.exchanges => None,
            true => Some(share(&**comm, || Arc::new(Group::threads(comm.size())))?),
            false => staging.is_readable().then(|| Arc::new(Group::Processes)),
        };
        let store = Store::new(staging, pool, self.options.clone(), pace, comm.clone(), group);
        let session = Arc::new(Session::new(store, begin.is_some() && comm.many_threads()));
        Ok(Arc::new(LogContainer { inner, session }))
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
