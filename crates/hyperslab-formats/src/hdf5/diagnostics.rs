//! What people should know of the transfers on a file.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

/// Why the data plane left arrays or transfers to libhdf5, and how often.
#[derive(Debug, Default)]
pub(super) struct Diagnostics(Mutex<BTreeMap<String, u64>>);

impl Diagnostics {
    /// Notes a reason.
    pub(super) fn note(&self, reason: impl Display) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(reason.to_string()).or_default() += 1;
    }

    /// One sentence for each reason.
    pub(super) fn list(&self) -> Vec<String> {
        let reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = |n: u64| if n == 1 { "once".to_owned() } else { format!("{n} times") };
        reasons.iter().map(|(reason, n)| format!("the data plane left it to libhdf5 {}: {reason}", times(*n))).collect()
    }
}
