//! What the connector did, for those who ask at the end.

use crate::settings::Settings;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most reasons that are told apart.
const MOST_REASONS: usize = 64;

/// The most remarks that are kept.
const MOST_REMARKS: usize = 16;

/// Transfers of one direction.
#[derive(Debug, Default)]
pub(crate) struct Side {
    calls: AtomicU64,
    bytes: AtomicU64,
    accelerated_calls: AtomicU64,
    accelerated_bytes: AtomicU64,
    nanoseconds: AtomicU64,
    fell_back: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl Side {
    /// Notes a transfer, and why libhdf5 made it, if it did.
    pub(crate) fn note(&self, bytes: u64, took: Duration, why_not: Option<&str>) {
        self.calls.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Relaxed);
        let Some(why) = why_not else {
            self.accelerated_calls.fetch_add(1, Relaxed);
            self.accelerated_bytes.fetch_add(bytes, Relaxed);
            return;
        };
        let mut reasons = self.fell_back.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reasons.len() < MOST_REASONS || reasons.contains_key(why);
        let entry = reasons.entry(if known { why.to_owned() } else { "other reasons".into() }).or_default();
        entry.0 += 1;
        entry.1 += bytes;
    }

    fn report(&self) -> SideReport {
        SideReport {
            calls: self.calls.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            accelerated_calls: self.accelerated_calls.load(Relaxed),
            accelerated_bytes: self.accelerated_bytes.load(Relaxed),
            seconds: self.nanoseconds.load(Relaxed) as f64 / 1e9,
        }
    }

    fn reasons(&self, what: &'static str) -> Vec<Reason> {
        let reasons = self.fell_back.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.iter().map(|(why, &(calls, bytes))| Reason { what, why: why.clone(), calls, bytes }).collect()
    }
}

/// Everything that is counted, of one host.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) write: Side,
    pub(crate) read: Side,
    pub(crate) files: AtomicU64,
    pub(crate) datasets: AtomicU64,
    background: AtomicU64,
    waited: AtomicU64,
    drains: AtomicU64,
    drained: AtomicU64,
    memory: AtomicU64,
    peak: AtomicU64,
    /// Bytes saved to rollback journals.
    pub(crate) rollback: AtomicU64,
    pub(crate) errors: AtomicU64,
    remarks: Mutex<Vec<String>>,
}

impl Stats {
    /// Notes what a layer says of a file that is closed: the first few.
    pub(crate) fn remark(&self, remark: String) {
        let mut remarks = self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        if remarks.len() < MOST_REMARKS {
            remarks.push(remark);
        }
    }

    /// Notes what a layer did in the background.
    pub(crate) fn add_background(&self, background: &hyperslab_core::Background) {
        self.background.fetch_add(background.busy.as_nanos() as u64, Relaxed);
        self.waited.fetch_add(background.waited.as_nanos() as u64, Relaxed);
        self.peak.fetch_max(self.memory.load(Relaxed) + background.memory, Relaxed);
    }

    /// Notes a wait for other threads.
    pub(crate) fn note_drain(&self, took: Duration) {
        self.drains.fetch_add(1, Relaxed);
        self.drained.fetch_add(took.as_nanos() as u64, Relaxed);
    }

    /// Notes that memory is held.
    pub(crate) fn hold(&self, bytes: u64) {
        let now = self.memory.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(now, Relaxed);
    }

    /// Notes that it is no longer.
    pub(crate) fn release(&self, bytes: u64) {
        self.memory.fetch_sub(bytes, Relaxed);
    }

    /// Hands the numbers over as the settings say. What cannot be written is lost: the program is about to end.
    pub(crate) fn report(&self, settings: &Settings, version: (u32, u32, u32)) {
        let Some(to) = &settings.stats else { return };
        let (read, write) = (self.read.report(), self.write.report());
        let report = Report {
            hyperslab_connector_stats: 1,
            pid: std::process::id(),
            program: program(),
            library: format!("{}.{}.{}", version.0, version.1, version.2),
            mode: settings.modes.to_string(),
            files: self.files.load(Relaxed),
            datasets: self.datasets.load(Relaxed),
            write,
            read,
            fell_back: self.read.reasons("read").into_iter().chain(self.write.reasons("write")).collect(),
            background_seconds: self.background.load(Relaxed) as f64 / 1e9,
            waited_seconds: self.waited.load(Relaxed) as f64 / 1e9,
            hidden_seconds: self.background.load(Relaxed).saturating_sub(self.waited.load(Relaxed)) as f64 / 1e9,
            drains: self.drains.load(Relaxed),
            drain_seconds: self.drained.load(Relaxed) as f64 / 1e9,
            peak_memory: self.peak.load(Relaxed),
            rollback_bytes: self.rollback.load(Relaxed),
            errors: self.errors.load(Relaxed),
            remarks: self.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let Ok(mut line) = serde_json::to_vec(&report) else { return };
        line.push(b'\n');
        if to == "stderr" {
            let _ = std::io::stderr().write_all(&line);
            return;
        }
        use std::os::unix::fs::OpenOptionsExt;
        let path = to.replace("%p", &std::process::id().to_string());
        let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let file = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(path);
        // One write, so that lines of several processes do not mix.
        let _ = file.and_then(|mut file| file.write_all(&line));
    }
}

fn program() -> String {
    let own = std::env::current_exe().ok();
    own.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned())).unwrap_or_default()
}

#[derive(Serialize)]
struct Report {
    hyperslab_connector_stats: u32,
    pid: u32,
    program: String,
    library: String,
    mode: String,
    files: u64,
    datasets: u64,
    write: SideReport,
    read: SideReport,
    fell_back: Vec<Reason>,
    background_seconds: f64,
    waited_seconds: f64,
    hidden_seconds: f64,
    drains: u64,
    drain_seconds: f64,
    peak_memory: u64,
    rollback_bytes: u64,
    errors: u64,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct SideReport {
    calls: u64,
    bytes: u64,
    accelerated_calls: u64,
    accelerated_bytes: u64,
    seconds: f64,
}

#[derive(Serialize)]
struct Reason {
    what: &'static str,
    why: String,
    calls: u64,
    bytes: u64,
}
