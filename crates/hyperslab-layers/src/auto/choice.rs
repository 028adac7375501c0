//! The strategies between which the layer chooses.

use serde::{Deserialize, Serialize};

/// A strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Choice {
    /// Synchronous: the caller waits for the format below.
    Sync,
    /// The layer `async`.
    Async,
    /// The layer `log`.
    Log,
}

impl Choice {
    /// All strategies, in the order of how much they buffer.
    pub const ALL: [Self; 3] = [Self::Sync, Self::Async, Self::Log];

    /// Index in [`Choice::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// Name in options and messages.
    pub fn name(self) -> &'static str {
        ["sync", "async", "log"][self.index()]
    }
}

/// A value for each choice.
pub(super) type Each<T> = [T; Choice::ALL.len()];
