//! Whether files are in the page cache.

use serde::{Deserialize, Serialize};

/// State of the page cache that a run finds, or that a prediction assumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Files to read are in the page cache; writes end there.
    Warm,
    /// Files to read are on the device only; flushes wait for the device.
    Cold,
}

impl CacheState {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}
