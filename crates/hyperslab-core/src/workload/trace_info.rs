//! What a recorded workload says about its recording.

use serde::{Deserialize, Serialize};

/// Marks a workload that was recorded from a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceInfo {
    /// The program and version that wrote it.
    pub by: String,
    /// The run came to its end. Otherwise the steps end where it did, and files are closed after them.
    pub complete: bool,
    /// The steps of all ranks together, so that a file that was cut off is noticed.
    pub steps: u64,
}
