//! A crash-safe write-ahead log of array writes, and the recovery that replays it. docs/log-format.md specifies the files.
//!
//! A layer appends each write as a record, the selected elements of an array, and returns to its caller. How durable the record
//! is by then is chosen by a [`SyncMode`]: by default it is in the kernel and survives a process crash; after [`Journal::sync`]
//! it survives power loss. Later the layer writes the elements to the container and calls [`RecordHandle::done`].
//!
//! # What can be lost
//!
//! | mode | when `append` returns | a process crash loses | power loss loses |
//! |---|---|---|---|
//! | `None` | in memory | the last batch: less than 1 MiB and one write | everything since the last `sync` |
//! | `OnFlush` | in the kernel | nothing | everything since the last `sync` |
//! | `Every(n)` | in memory | the last batch, appended within the last `n` | appends of the last `n`, and of the time the preceding sync took |
//! | `EveryWrite` | durable | nothing | nothing |
//!
//! A batch is written out when it reaches 1 MiB, and by [`Journal::write_out`], `sync`, [`Journal::checkpoint`] and closing.
//! Only a suffix of the appends can be lost: no write survives without all earlier ones, or in part.
//!
//! If the storage refuses a batch, its writes remain in memory, and [`RecordHandle::read_into`] returns their bytes. Every error
//! except `NoSpace` is final for the journal: further appends fail, and the layer writes what is pending to the container as
//! described at [`Journal::write_out`]. After `NoSpace` the journal stays usable: appends return [`Append::Full`] until the
//! storage takes the batch, which each append retries, or until all writes are completed.
//!
//! # Why replay is correct
//!
//! Replay applies the surviving records to the container in the order of their sequence numbers. Records are stored in segments,
//! and segments are removed only from the front: a segment is removed when all its records are completed and no older segment
//! is left. The surviving records are therefore a suffix of all records, and every earlier record is in the container. An
//! element that some record of the suffix writes gets the value of the last such record, which is the last of all; whether
//! and in which order some of them had reached the container before makes no difference. All other elements have their values
//! from completed records. Replay is idempotent.
//!
//! # Obligations of the caller
//!
//! * Call `done` only after a flush of the container that follows the write has returned: a format may buffer data in process
//!   memory. If the journal must cover power loss, that flush is a `Durable` one.
//! * Before a write reaches the container, call [`Journal::write_out`]; if the journal must cover power loss, [`Journal::sync`]
//!   instead, unless [`RecordHandle::is_durable`] is already true. A record that the journal loses must not be in the container
//!   already, or replay would overwrite it with older data. (In modes that do not batch, `write_out` does nothing.)
//! * After a `Durable` flush of the container that completes writes: `checkpoint`, then [`Journal::sync`]. Otherwise removed
//!   segments can reappear after power loss, with some of their records.
//! * Refuse calls in a forked child ([`Journal::append`] does not check, for speed).
//! * Before the container is changed without the journal (an unlogged write, a resize, another rank's write of the same
//!   elements after a collective flush): complete every overlapping record and call [`Journal::checkpoint`]. Otherwise replay
//!   could overwrite newer data with older.
//! * After an error other than `NoSpace`: complete every write and have [`Journal::close_and_remove`] return `true` before
//!   writing to the container without the journal, for the same reason.

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
pub mod fuzz_api;
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
