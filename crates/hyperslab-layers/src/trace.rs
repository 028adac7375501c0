//! Records what a program does as a workload: `trace/posix`, `trace(file=out.jsonl)/async/hdf5`.
//!
//! Every opening of a container is recorded from its `open` to its `close`, on all ranks, as one file of the form in
//! docs/workload-format.md: containers, arrays, attributes, transfers with their selections and memory layouts, the time that
//! each call took, and the time between calls as `compute` steps. Data are not kept. `hyperslab bench --workload` plays it.
//!
//! # How it is written
//!
//! Each rank appends to a file of its own, `<trace>.rank-<r>.part`, through a small buffer, so that memory is bounded whatever the
//! length of the run, and a run that is killed leaves what it did. At `close` the first rank puts the parts together, each
//! rank sending its own through the communicator in bounded pieces: ranks need no file system in common. The trace appears under
//! its name when it is whole.
//!
//! # What is promised
//!
//! * **The program is not harmed.** Everything is forwarded; what goes wrong with the trace is a remark, and tracing stops.
//!   Only a `file` that is no trace, or a link, is refused, before the container is opened.
//! * **Calls that fail** are not in the trace. One that failed in a collective transfer is there with nothing selected, because the
//!   other ranks took part.
//! * **Several parts as one** (`write_many`) become a step each; if collective, one step of all their elements.
//! * What has no step (listing, reading attributes, hints) is not recorded, and its time is no computing either.
//! * Calls of several threads of a rank are recorded in the order of their ends; while calls overlap, nothing is computed.

mod array;
mod container;
mod names;
mod options;
mod part;
mod publish;
mod recorder;
mod recover;
mod start;

pub use recover::{TraceParts, trace_parts};

use crate::LayerEntry;
use container::TraceContainer;
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use options::Options;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "trace";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "records every call and its time as a workload, for hyperslab bench --workload",
    options: options::SPECS,
    bare: &["file"],
    wrap,
};

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    Ok(Arc::new(TraceFormat { inner, options }))
}

/// A format whose calls are recorded.
#[derive(Debug)]
struct TraceFormat {
    inner: Arc<dyn Format>,
    options: Options,
}

#[deny(clippy::missing_trait_methods)]
impl Format for TraceFormat {
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
        let recorder = start::start(&self.options, path, how, comm)?;
        // Dropped with an error, the recorder leaves nothing behind.
        let (inner, recorder) = recorder.first_call(how, || self.inner.open(path, how, comm))?;
        Ok(Arc::new(TraceContainer::new(inner, recorder, comm.clone())))
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
