//! Records the I/O of a program as a workload: `trace/posix`, `trace(file=out.jsonl)/async/hdf5`.
//!
//! Each opening of a container is recorded from `open` to `close`, on all ranks, in one file of the format of
//! docs/workload-format.md: containers, arrays, attributes, transfers with their selections and memory layouts, the duration of
//! each call, and the time between calls as `compute` steps. Data is not recorded. `hyperslab bench --workload` replays it.
//!
//! # Writing a trace
//!
//! Each rank appends to a file of its own, `<trace>.rank-<r>.part`, through a small buffer: memory is bounded whatever the
//! length of the run, and a killed run leaves its steps. At `close` the first rank merges the parts, which ranks send through
//! the communicator in bounded pieces, so that they need no shared file system. The trace is renamed into place when complete.
//!
//! # Guarantees
//!
//! * **The program is not disturbed.** All calls are forwarded; an error of the trace is a diagnostic, and ends tracing.
//!   Only a `file` that is a link or no trace is refused, before the container is opened.
//! * **Failed calls** are not recorded. A failed part of a collective transfer is recorded with an empty selection, since the
//!   other ranks took part.
//! * **Several parts at once** (`write_many`) are one step each; if collective, one step of all their elements.
//! * Calls without a step (listing, reading attributes, hints) are not recorded, and their time does not count as computing.
//! * Calls of several threads of a rank are recorded in the order of their ends; overlapping calls have no compute time.

mod array;
mod begin;
mod container;
mod late_names;
mod merge;
mod names;
mod options;
mod rank_spool;
mod recorder;
mod recover;

pub use late_names::LateNames;
pub use recover::{TraceParts, trace_parts};

use crate::LayerEntry;
use container::TraceContainer;
use hyperslab_core::{Communicator, Container, Format, LayerEffect, OpenMode, Result, Stack, StackElement};
use options::Options;
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "trace";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "records every call and its time as a workload, for hyperslab bench --workload",
    options: options::SPECS,
    bare: &["file"],
    wrap,
    effect: |_| Ok(LayerEffect::Through),
    consequence: None,
    connector_mode: None,
    h5bench_mode: None,
};

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    traced(element, inner, LateNames::default())
}

/// The layer above a format, with names of arrays that the program tells later than their making.
pub fn traced(element: &StackElement, inner: Arc<dyn Format>, names: LateNames) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    Ok(Arc::new(TraceFormat { inner, options, names }))
}

/// A format whose calls are recorded.
#[derive(Debug)]
struct TraceFormat {
    inner: Arc<dyn Format>,
    options: Options,
    names: LateNames,
}

#[deny(clippy::missing_trait_methods)]
impl Format for TraceFormat {
    hyperslab_core::forward!(self, self.inner, [caps, extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let recorder = begin::start(&self.options, path, how, comm)?;
        // Dropped with an error, the recorder leaves nothing behind.
        let (inner, recorder) = recorder.first_call(how, || self.inner.open(path, how, comm))?;
        Ok(Arc::new(TraceContainer::new(inner, recorder, comm.clone(), self.names.clone())))
    }
}
