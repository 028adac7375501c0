//! When appended writes reach the kernel and the device.

use std::time::Duration;

/// How safe a write is when [`append`](super::Journal::append) returns, and what a crash can cost.
///
/// *Crash* is the end of the process, however sudden, while the machine goes on; *power* is the loss of it. In every mode
/// what is left is a beginning of all appends: none is missing in front of one that is there, and none is there in part.
///
/// | mode | a crash costs | a loss of power costs |
/// |---|---|---|
/// | `None` | the last batch: up to 1 MiB and one write | everything since the last [`sync`](super::Journal::sync) |
/// | `OnFlush` | nothing | everything since the last `sync` |
/// | `Every(n)` | the last batch, and no more than the last `n` | the last `n`, and as long as a sync takes |
/// | `EveryWrite` | nothing | nothing |
///
/// A batch is also handed to the kernel by `sync`, [`checkpoint`](super::Journal::checkpoint),
/// [`write_out`](super::Journal::write_out) and by closing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Appends are gathered in memory and handed to the kernel in batches. Nothing is synced unless asked for.
    None,
    /// Every append is with the kernel when it returns. Nothing is synced unless asked for.
    #[default]
    OnFlush,
    /// Gathered as by `None`; a thread of the journal hands over and syncs so long after the first append that is not
    /// durable. Where no thread can be had, like `EveryWrite`.
    Every(Duration),
    /// Every append is durable when it returns. Threads that append at the same time share a sync.
    EveryWrite,
}

impl SyncMode {
    /// Whether appends wait in memory for others.
    pub(super) fn gathers(self) -> bool {
        matches!(self, Self::None | Self::Every(_))
    }

    /// Whether it promises something about the loss of power by itself.
    pub fn covers_power(self) -> bool {
        matches!(self, Self::Every(_) | Self::EveryWrite)
    }
}
