//! The journal: a crash-safe log of array writes, for layers that hold writes back. docs/log-format.md describes the files.
//!
//! A write is appended as a record "these elements of that array" with its bytes. How safe it is when the append returns is
//! chosen by a [`SyncMode`]: by default it is with the kernel, and survives the end of the process; after [`Journal::sync`]
//! it survives the loss of power too. Later the layer writes the elements to the container and calls [`RecordHandle::done`].
//!
//! # What can be lost
//!
//! | mode | when `append` returns | the end of the process costs | the loss of power costs |
//! |---|---|---|---|
//! | `None` | in memory | the last batch: less than 1 MiB and one write | everything since the last `sync` |
//! | `OnFlush` | with the kernel | nothing | everything since the last `sync` |
//! | `Every(n)` | in memory | the last batch, appended within the last `n` | what was appended in the last `n` and while the sync of the writes before took place |
//! | `EveryWrite` | durable | nothing | nothing |
//!
//! A batch is handed over when it has 1 MiB, and by [`Journal::write_out`], `sync`, [`Journal::checkpoint`] and closing.
//! Whatever is lost is the end: a write is never there without those before it, nor in part.
//!
//! Where the storage refuses a batch, its writes are still in memory, and [`RecordHandle::read_into`] gives their bytes. Any error
//! but `NoSpace` is final for the journal: each later append fails, and the layer brings what it has to the container, in the
//! way that [`Journal::write_out`] describes. After `NoSpace` the journal goes on: appends are [`Append::Full`] until the
//! storage takes the batch, which each append tries again, or until everything is done.
//!
//! # Why replaying is right
//!
//! What a dead process left is brought into the container by applying the records that are still there in the order of
//! their sequence numbers. Records are kept in segments, and segments are removed only from the front: one goes when all its
//! records are done and no older segment is left. So what is there is always a suffix of all records, and every record
//! before it is in the container. An element that a record of the suffix writes gets the value of the last such record,
//! which is the last of all; whether some of them had reached the container before, and in which order, makes no
//! difference. All other elements have their values from records that are done. Replaying twice gives the same.
//!
//! # What the user of a journal must do
//!
//! * Call `done` only when the container's own flush has returned after the write: a format may hold data in memory of the
//!   process. Where the journal shall cover the loss of power, that flush is a `Durable` one.
//! * Before a write goes to the container: [`Journal::write_out`] has returned since it was appended; or, where the journal
//!   shall cover the loss of power, [`Journal::sync`], unless [`RecordHandle::is_durable`] says that it need not. What the journal
//!   forgets must not be in the container already, or older writes would be replayed over it. (In the modes that do not
//!   gather, `write_out` has nothing to do.)
//! * After a `Durable` flush of the container for which writes of the journal were done: `checkpoint`, then [`Journal::sync`].
//!   Segments that were removed, but not durably, could be back after a loss of power, with a part of their records.
//! * Refuse calls in a process that was forked ([`Journal::append`] does not look, for the sake of speed).
//! * Before anything changes the container past the journal (a write that is not logged, a resize, another rank's write of the
//!   same elements after a collective flush): have every overlapping record done, and [`Journal::checkpoint`] return.
//!   Otherwise a replay could put older data over newer.
//! * After an error that is not `NoSpace`: have every write done and [`Journal::close_and_remove`] return `true` before
//!   anything is written past the journal, for the same reason.

mod active_segment;
mod append;
mod batch_read;
mod buffered_reader;
mod checksum;
pub mod chunk_images;
mod commit;
mod completed_set;
mod completion;
mod dir_sync;
mod direct_io;
mod directory;
mod discovery;
mod file_names;
#[doc(hidden)]
pub mod fuzzing;
mod group_commit;
mod head_slots;
mod header;
mod heartbeat;
mod journal;
pub mod marker;
mod node;
mod peer_reader;
mod placement;
mod preallocate;
mod process;
mod reader;
mod record;
pub mod recover;
mod segment;
mod segment_header;
mod segment_list;
#[doc(hidden)]
pub mod selection_wire;
mod storage;
mod sync;
mod sync_mode;
mod truncate;
#[doc(hidden)]
pub mod wire;
mod write_out;

#[cfg(test)]
mod tests;

pub use batch_read::{ReadRequest, read_all};
#[doc(hidden)]
pub use checksum::CHECKSUM_STEP;
pub use chunk_images::ChunkImages;
pub use directory::Directory;
pub use discovery::{FoundJournal, Stage, find};
pub(crate) use head_slots::nanoseconds;
pub use head_slots::{LiveSegments, Sighting};
pub use header::{Header, Id, identify};
pub use heartbeat::{Heartbeat, Pulse};
pub use journal::{Append, Journal, Limits};
pub use node::{NodeDirectory, NodePlace};
pub use peer_reader::PeerJournal;
pub use process::Process;
pub use reader::{ArrayInfo, Damage, Reader, RecoveredWrite};
pub use segment::RecordHandle;
pub use storage::{JournalStorage, Lock, LogFile};
pub use sync_mode::SyncMode;

use hyperslab_core::{Error, ErrorKind};

/// The format version of journals.
pub const VERSION: u32 = 1;
/// The format version of journal headers that identify their container.
pub const HEADER_VERSION: u32 = 2;

pub(crate) fn failed(operation: &'static str, target: impl std::fmt::Display, cause: std::io::Error) -> Error {
    Error::io(operation, cause).backend("journal").target(target)
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, "read journal", message).backend("journal")
}
