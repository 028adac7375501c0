//! A format that refuses to write to containers for which a log waits.

use super::{discard, notice};
use hyperslab_core::{Caps, Communicator, Container, Format, OpenMode, Result, agree};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The same format, which looks for waiting logs before it opens a container. Removing a container removes its logs too.
pub fn guarded(inner: Arc<dyn Format>) -> Arc<dyn Format> {
    Arc::new(Guarded { inner })
}

#[derive(Debug)]
struct Guarded {
    inner: Arc<dyn Format>,
}

#[deny(clippy::missing_trait_methods)]
impl Format for Guarded {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn extension(&self) -> &'static str {
        self.inner.extension()
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let noticed = match comm.rank() {
            0 => notice(path, how != OpenMode::Read).map(|warnings| {
                warnings.iter().for_each(|warning| eprintln!("hyperslab: warning: {warning}"));
            }),
            _ => Ok(()),
        };
        agree(&**comm, noticed)?;
        self.inner.open(path, how, comm)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        // Before: afterwards nothing says any more which file they were of.
        discard(path)?;
        self.inner.remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.inner.files(path)
    }
}
