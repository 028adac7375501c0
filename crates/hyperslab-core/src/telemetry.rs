//! What containers and arrays tell of themselves, besides their data.

use crate::{MemoryLayout, Result, Selection};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Reports of a container or an array, on this rank. Nothing here is collective.
pub trait Telemetry {
    /// Human-readable notes on a container's transfers so far, such as collective transfers that were executed independently.
    fn diagnostics(&self) -> Vec<String> {
        Vec::new()
    }
    /// Statistics of a container's background I/O so far.
    fn background(&self) -> BackgroundStats {
        BackgroundStats::default()
    }
    /// Explains in words what an independent transfer of these elements of an array would do, and why; `None` if there is
    /// nothing to explain.
    fn explain(&self, _selection: &Selection, _layout: &MemoryLayout, _writes: bool) -> Result<Option<String>> {
        Ok(None)
    }
}

/// The telemetry of what has nothing to report.
#[derive(Debug)]
pub struct NoTelemetry;

impl Telemetry for NoTelemetry {}

/// Background I/O of a container on one rank, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundStats {
    /// Time the format below was busy in the background.
    pub busy: Duration,
    /// Time callers were blocked on background I/O.
    pub waited: Duration,
    /// Bytes written or read in the background.
    pub bytes: u64,
    /// Peak memory held for background I/O, in bytes.
    pub memory: u64,
}

impl BackgroundStats {
    /// Fraction of background I/O time that overlapped with the caller's work, 0 to 1; `None` if there was none.
    pub fn hidden(&self) -> Option<f64> {
        let share = self.waited.as_secs_f64() / self.busy.as_secs_f64();
        (!self.busy.is_zero()).then_some(1.0 - share.min(1.0))
    }
}

impl std::ops::AddAssign for BackgroundStats {
    fn add_assign(&mut self, other: Self) {
        self.busy += other.busy;
        self.waited += other.waited;
        self.bytes += other.bytes;
        self.memory = self.memory.max(other.memory);
    }
}
