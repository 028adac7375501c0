//! Metadata of a recorded workload (trace).

use serde::{Deserialize, Serialize};

/// Marks a workload that was recorded from a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceInfo {
    /// The program and version that wrote it.
    pub by: String,
    /// The run completed. Otherwise the steps stop where it did, followed by closing the files.
    pub complete: bool,
    /// Number of steps of all ranks, to detect truncated files.
    pub steps: u64,
}
