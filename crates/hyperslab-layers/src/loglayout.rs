//! The log layout: `loglayout/hdf5`. Requests of a rank are appended to the file one after the other, wherever their elements
//! belong in the array, and an index says where they are.
//!
//! # What is in the file
//!
//! Every array is created below as it is, with its shape, type, chunks, filters and attributes; and beside it, in the group
//! `.hyperslab-loglayout`, one array of bytes, its log, of which every rank has an equal region. A write appends its elements,
//! packed, to the region of its rank. At a flush or close all ranks publish together what they wrote since the last: one
//! more array of bytes, a *generation* of the index (docs/log-layout.md has every byte of it).
//!
//! * **Which write counts.** That of the later flush; of one flush, the later of a rank, as the format below would have it
//!   too. Ranks that write the same elements between two flushes do so in no particular order.
//! * **Reads** find the entries that touch their range in logarithmic time, take the newest of each element from the log, and the
//!   rest from the array. They see what this rank wrote, and what the others had written before the last flush.
//! * **Some fields** of compound elements are logged as such: the other fields keep what they had, also when
//!   ranks write different fields of the same elements. The format below must be able to write some fields.
//! * **No room.** A write that finds its region full, or whose description would be longer than its data, goes to the array,
//!   and the index hears that its elements are there now.
//! * Regions are never overwritten, so that an index that was stored stays right. A generation that was not finished when
//!   the program ended counts as not there, and writes since the flush before it may be lost.
//! * **Growing** an array makes more room for its log. **Shrinking** one brings all that its log has into the array first.
//! * Arrays that were made without the layer have no log: they are written as if the layer were not there.
//!
//! Whoever opens the file without this layer sees the group with the logs, and arrays with fill values where the log
//! has the elements. `hyperslab convert IN OUT` writes the same arrays in their usual, canonical form.
//!
//! # Memory
//!
//! The index of the whole container is in the memory of every rank: about 100 bytes for each write that is one hyperslab. A
//! rank adds no more than `index` bytes to it, and what comes after goes to the arrays. Transfers need up to 32 MiB beside.
//!
//! # What it cannot do
//!
//! * An array known by two names, as HDF5's links allow, counts as two: use the name that it was created with.
//! * Collective reads are independent below, since ranks have different elements in their logs.
//! * [`Container::write_back`] of several ranks is refused while writes wait for a flush.

mod array;
mod container;
mod counts;
mod entry;
pub mod fuzzing;
mod generation;
mod index;
mod log_window;
mod named;
mod names;
mod options;
mod publish;
mod read;
mod replay;
mod room;
mod write;

use crate::LayerEntry;
use container::{LogContainer, Shared};
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, Stack, StackElement};
use options::Options;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "loglayout";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "requests of a rank one after the other in the file, with an index; hyperslab convert makes it canonical",
    options: options::SPECS,
    bare: &[],
    wrap,
};

/// Whether an array of this name belongs to the log layout of a container that is opened without the layer.
pub fn is_log_layout(array: &str) -> bool {
    names::is_hidden(array)
}

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    Ok(Arc::new(LogFormat { inner, options }))
}

/// A format whose writes are appended to logs.
#[derive(Debug)]
struct LogFormat {
    inner: Arc<dyn Format>,
    options: Options,
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
        let inner = self.inner.open(path, how, comm)?;
        let shared = Shared::new(inner, comm, self.caps(), self.options, how == OpenMode::Read);
        if matches!(how, OpenMode::Read | OpenMode::Update) {
            shared.load().map_err(|error| error.target(path.display()))?;
        }
        Ok(Arc::new(LogContainer { shared: Arc::new(shared) }))
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
