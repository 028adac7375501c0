//! Bringing what dead processes left in journals into their containers, exactly once.
//!
//! [`survey`] says what lies in a directory, and keeps the journals of dead processes locked. [`Recovery::replay`] applies all
//! journals of a job, rank by rank and each in its order; when the container has made everything durable, the journals
//! are marked and then removed. A crash on the way leaves journals that are replayed again, with the same result, or that
//! only have to be removed.
//!
//! A damaged journal is replayed up to the first record that cannot be trusted, and then set aside: its files stay, with another
//! name, and are not replayed again.

mod identity;
mod left;
mod replay;
mod target;
mod whole_chunks;

pub use crate::journal::{Damage, Files};
pub use left::{Left, State, survey};
pub use replay::{Job, Recovery, Replayed, jobs};

use crate::journal::NodeDirectory;
use hyperslab_core::Result;
use std::path::Path;
use std::sync::Arc;

/// Opens a directory with journals. Refuses one in which other users could exchange files.
pub fn directory(path: &Path) -> Result<Arc<dyn Files>> {
    Ok(Arc::new(NodeDirectory::open(path)?))
}
