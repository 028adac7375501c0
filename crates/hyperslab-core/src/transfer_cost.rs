//! What decides the cost of moving elements: how a format and layers do it, as far as models need to know.

use std::time::Duration;

/// How a format moves elements between memory and files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TransferCost {
    /// Byte ranges of raw files; what is scattered in memory or in the file goes through a buffer.
    RawFile {
        /// Bytes of the buffer.
        buffer: u64,
    },
    /// Pieces and chunks of one file.
    ChunkedFile(ChunkedFileCost),
    /// A file for each chunk or shard, read and replaced as a whole.
    ChunkFiles {
        /// Names of chunks have directories.
        directories: bool,
    },
}

/// What decides the cost of a transfer of chunks of one file. `None` is the library's default, which models know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkedFileCost {
    /// Elements go around libhdf5.
    pub direct: bool,
    /// Bytes of the chunk cache of an array.
    pub cache: Option<u64>,
    /// Slots of the chunk cache.
    pub cache_slots: Option<u64>,
    /// How much fully used chunks are dropped first, from 0 to 1.
    pub preemption: f64,
    /// Bytes of the buffer that joins small accesses to what is in one piece.
    pub sieve: u64,
}

/// What becomes of transfers in a layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LayerEffect {
    /// They are handed on.
    Through,
    /// They go on behind the program's back.
    Overlap,
    /// The same if that is faster.
    Chosen,
    /// The same, and what was read stays in memory.
    ReadCache {
        /// Most bytes that stay.
        memory: u64,
    },
    /// Writes are gathered and go to the format later: behind the program's back if there are `drain` bytes of a rank or some
    /// that are older than `age`, otherwise while it waits.
    Logged {
        /// Bytes that go to the format at a time.
        buffer: u64,
        /// Bytes at which that begins.
        drain: u64,
        /// Age at which it begins.
        age: Duration,
    },
    /// Some ranks make the collective transfers of all.
    Together {
        /// How many; `None`: as many as the layer chooses.
        aggregators: Option<u64>,
        /// Bytes of a transfer.
        buffer: u64,
    },
    /// A device is emulated.
    Emulated {
        /// Bytes in a second.
        rate: f64,
        /// Seconds of a call.
        latency: f64,
    },
}
