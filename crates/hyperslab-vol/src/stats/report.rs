//! The numbers as users get them: one JSON object (docs/connector.md). Keys may be added.

use super::Unwritten;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) hyperslab_connector_stats: u32,
    pub(super) pid: u32,
    /// Milliseconds since 1970 when the record was begun: numbers of processes are used again.
    pub(super) started: u64,
    /// Tells the libraries of a process apart.
    pub(super) slot: u64,
    /// Whether the library closed down, so that nothing is missing.
    pub(super) ended: bool,
    pub(super) open_files: u64,
    pub(super) program: String,
    pub(super) library: String,
    pub(super) mode: String,
    pub(super) files: u64,
    pub(super) datasets: u64,
    pub(super) overridden: u64,
    pub(super) write: SideReport,
    pub(super) read: SideReport,
    pub(super) fell_back: Vec<Reason>,
    pub(super) background_seconds: f64,
    pub(super) waited_seconds: f64,
    pub(super) hidden_seconds: f64,
    pub(super) helper_seconds: f64,
    pub(super) drains: u64,
    pub(super) drain_seconds: f64,
    pub(super) peak_memory: u64,
    pub(super) rollback_bytes: u64,
    pub(super) errors: u64,
    pub(super) remarks: Vec<String>,
    pub(super) unwritten: Vec<Unwritten>,
}

#[derive(Serialize)]
pub(super) struct SideReport {
    pub(super) calls: u64,
    pub(super) bytes: u64,
    pub(super) accelerated_calls: u64,
    pub(super) accelerated_bytes: u64,
    pub(super) seconds: f64,
}

#[derive(Serialize)]
pub(super) struct Reason {
    pub(super) what: &'static str,
    pub(super) why: String,
    pub(super) calls: u64,
    pub(super) bytes: u64,
}
