//! Recovery: replaying the journals of dead processes into their containers.
//!
//! [`survey`] lists the journals of a directory, and keeps those of dead processes locked. [`Recovery::replay`] applies all
//! journals of a job, rank by rank and each in its order; once the container is durable, the journals are renamed and then
//! removed. A crash in between leaves journals that are replayed again, with the same result, or that only need removal.
//!
//! A damaged journal is replayed up to its first damaged record and then set aside: its files are renamed and never
//! replayed again.

mod chunk_buffer;
mod identity;
mod orphans;
mod replay;
mod target;
mod verify;

pub use crate::{Damage, JournalStorage};
pub use orphans::{JournalStatus, OrphanedJournal, survey};
pub use replay::{Job, Recovery, Replayed, jobs};
pub use verify::Compared;

use crate::NodeDirectory;
use hyperslab_core::{Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Opens a directory of journals. Refuses one in which other users could replace files.
pub fn directory(path: &Path) -> Result<Arc<dyn JournalStorage>> {
    check_group(path)?;
    Ok(Arc::new(NodeDirectory::open(path)?))
}

/// Refuses a directory writable for a group, unless it is the user's private group.
fn check_group(path: &Path) -> Result<()> {
    let about =
        std::fs::metadata(path).map_err(|cause| Error::io("open journal directory", cause).target(path.display()))?;
    let (open, sticky) = (about.mode() & 0o020 != 0, about.mode() & 0o1000 != 0);
    match open && !sticky && about.gid() != about.uid() {
        false => Ok(()),
        true => Err(Error::invalid("open journal directory", format!("group {} may exchange its files", about.gid()))
            .target(path.display())
            .hint("chmod g-w, if nobody else has put files there")),
    }
}

/// Removes the markers of a job whose journals are gone.
pub fn forget(container: &Path, job: &Job) {
    crate::marker::remove_of(container, job.id);
}
