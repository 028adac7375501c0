//! The log layout: `loglayout/hdf5`. Writes are appended to the file in the order of each rank's requests, whatever elements of
//! the array they are for, and an index records their locations.
//!
//! # Storage
//!
//! Every array is created below unchanged, with its shape, type, chunks, filters and attributes. Its data goes to an array of
//! bytes in the group `.hyperslab-loglayout`, its log, of which every rank owns an equal region. A write appends its packed
//! elements to the region of its rank. At a flush or close all ranks collectively publish what they wrote since the last one, as
//! a further array of bytes: a *generation* of the index (specified in docs/log-layout.md).
//!
//! * **Last write wins.** Writes of a later flush win; within a flush, the later write of a rank wins, as in the format below.
//!   The order of writes by different ranks to the same elements between two flushes is unspecified.
//! * **Reads** find overlapping index entries in logarithmic time, read the newest version of each element from the log, and the
//!   rest from the array. They see this rank's writes, and those of other ranks before the last flush.
//! * **Some fields** of compound elements are logged as such: other fields keep their values, also if ranks write different
//!   fields of the same elements. The format below must be able to write some fields.
//! * **A full log.** A write that finds its region full, or whose index entry would be longer than its data, goes to the array,
//!   and the index records that.
//! * **Crash consistency.** Regions are never overwritten, so that a stored index stays valid. An unfinished generation is
//!   ignored: writes since the preceding flush may be lost.
//! * **Growing** an array extends its log. **Shrinking** one first copies all logged data into the array.
//! * Arrays created without the layer have no log, and are written as without the layer.
//!
//! A reader without this layer sees the group with the logs, and fill values where data is in a log.
//! `hyperslab convert IN OUT` writes the same arrays in their canonical layout.
//!
//! # Memory
//!
//! The index of the whole container is in the memory of every rank: about 100 bytes for each write of one hyperslab. A
//! rank adds at most `index` bytes to it; later writes go to the arrays. Transfers use up to 32 MiB of buffers.
//!
//! # Limitations
//!
//! * An array known by two names, as through HDF5 links, counts as two: use the name that it was created with.
//! * Collective reads are independent below, since ranks have different elements in their logs.
//! * [`Container::write_back`] of several ranks is refused while writes wait for a flush.

mod array;
mod array_state;
mod container;
mod entry;
pub mod fuzz_api;
mod generation;
mod index;
mod index_io;
mod log_window;
mod names;
mod options;
mod read;
mod replay;
mod stats;
mod volumes;
mod write;

use crate::LayerEntry;
use container::{LogLayoutContainer, Shared};
use hyperslab_core::{Communicator, Container, Format, LayerEffect, OpenMode, Result, Stack, StackElement};
use options::Options;
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "loglayout";

pub(crate) const ENTRY: LayerEntry = LayerEntry {
    name: NAME,
    about: "requests of a rank one after the other in the file, with an index; hyperslab convert makes it canonical",
    options: options::SPECS,
    bare: &[],
    wrap,
    effect: |_| Ok(LayerEffect::Through),
    consequence: None,
    connector_mode: None,
    h5bench_mode: Some("LOG"),
};

/// Whether an array of this name belongs to the log layout of a container that is opened without the layer.
pub fn is_log_layout(array: &str) -> bool {
    names::is_hidden(array)
}

fn wrap(element: &StackElement, inner: Arc<dyn Format>, _: &Stack) -> Result<Arc<dyn Format>> {
    let options = Options::parse(element)?;
    Ok(Arc::new(LogLayoutFormat { inner, options }))
}

/// A format whose writes are appended to logs.
#[derive(Debug)]
struct LogLayoutFormat {
    inner: Arc<dyn Format>,
    options: Options,
}

#[deny(clippy::missing_trait_methods)]
impl Format for LogLayoutFormat {
    hyperslab_core::forward!(self, self.inner, [caps, extension, exists, remove, files]);

    fn name(&self) -> &'static str {
        NAME
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let inner = self.inner.open(path, how, comm)?;
        let shared = Shared::new(inner, comm, self.caps(), self.options, how == OpenMode::Read);
        if matches!(how, OpenMode::Read | OpenMode::Update) {
            shared.load().map_err(|error| error.target(path.display()))?;
        }
        Ok(Arc::new(LogLayoutContainer { shared: Arc::new(shared) }))
    }
}
