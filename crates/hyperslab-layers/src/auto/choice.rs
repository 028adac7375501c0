//! The strategies that transfers can go.

use serde::{Deserialize, Serialize};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Choice {
    /// The caller waits for the format below.
    Sync,
    /// The layer `async`.
    Async,
    /// The layer `log`.
    Log,
}

impl Choice {
    /// All of them, those first that hold least back.
    pub const ALL: [Self; 3] = [Self::Sync, Self::Async, Self::Log];

    /// Its place in [`Choice::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// In options and messages.
    pub fn name(self) -> &'static str {
        ["sync", "async", "log"][self.index()]
    }
}

/// A number for each choice.
pub(super) type Each<T> = [T; Choice::ALL.len()];
