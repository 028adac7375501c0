//! A format wrapper that refuses to write to containers with an unrecovered journal.

use super::{check_unrecovered, discard};
use hyperslab_core::{Communicator, Container, Format, OpenMode, Result, agree};
use std::path::Path;
use std::sync::Arc;

/// Wraps a format: checks for unrecovered journals before opening a container, and discards them when removing it.
pub fn with_marker_check(inner: Arc<dyn Format>) -> Arc<dyn Format> {
    Arc::new(MarkerCheck { inner })
}

#[derive(Debug)]
struct MarkerCheck {
    inner: Arc<dyn Format>,
}

#[deny(clippy::missing_trait_methods)]
impl Format for MarkerCheck {
    hyperslab_core::forward!(self, self.inner, [name, caps, extension, exists, files]);

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let checked = match comm.rank() {
            0 => check_unrecovered(path, how != OpenMode::Read).map(|warnings| {
                warnings.iter().for_each(|warning| eprintln!("hyperslab: warning: {warning}"));
            }),
            _ => Ok(()),
        };
        agree(&**comm, checked)?;
        self.inner.open(path, how, comm)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        // First: afterwards the identity of the file is lost.
        discard(path)?;
        self.inner.remove(path)
    }
}
