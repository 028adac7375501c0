//! What the connector did in this process, for those who ask.
//!
//! Counters of one host. The record of them in a file (`record`) is refreshed while the program runs, so that a process
//! that ends without a chance to say anything (`_exit`, a signal) is counted too.

mod record;
mod report;
mod unwritten;

use hyperslab_core::lock;
use record::Record;
use report::{Reason, Report, SideReport};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
pub(crate) use unwritten::Unwritten;

use crate::settings::Settings;

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
        let mut reasons = lock(&self.fell_back);
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
        let reasons = lock(&self.fell_back);
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
    /// Datasets whose storage was overridden.
    pub(crate) overridden: AtomicU64,
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
    /// Data that programs were told was written, and is not.
    unwritten: Mutex<Vec<Unwritten>>,
    record: Mutex<Record>,
    /// Nanoseconds of `since` at which the record is to be refreshed next.
    due: AtomicU64,
    since: Since,
}

/// When counting began.
#[derive(Debug)]
struct Since(Instant);

impl Default for Since {
    fn default() -> Self {
        Self(Instant::now())
    }
}

/// Which library and process numbers are of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whose {
    pub(crate) slot: usize,
    pub(crate) version: (u32, u32, u32),
    pub(crate) open_files: usize,
    /// Whether the library is closing down, so that nothing will be counted any more.
    pub(crate) ended: bool,
}

/// Locks of the counters, held while the process forks.
pub(crate) struct Held<'a> {
    reasons: [MutexGuard<'a, BTreeMap<String, (u64, u64)>>; 2],
    remarks: MutexGuard<'a, Vec<String>>,
    unwritten: MutexGuard<'a, Vec<Unwritten>>,
    record: MutexGuard<'a, Record>,
}

impl Stats {
    /// Notes what a layer says of a file that is closed: the first few.
    pub(crate) fn remark(&self, remark: String) {
        let mut remarks = lock(&self.remarks);
        if remarks.len() < MOST_REMARKS {
            remarks.push(remark);
        }
    }

    /// Notes what a layer did in the background.
    pub(crate) fn add_background(&self, background: &hyperslab_core::BackgroundStats) {
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

    /// Chunks of a dataset that were noted are in the file after all.
    pub(crate) fn note_written(&self, file: &str, dataset: &str) {
        lock(&self.unwritten).retain(|lost| (lost.file.as_str(), lost.dataset.as_str()) != (file, dataset));
    }

    /// Notes data that cannot be written though the program was told that it was: once for each dataset.
    pub(crate) fn note_unwritten(&self, lost: Unwritten) {
        unwritten::note(&mut lock(&self.unwritten), lost);
    }

    /// What could not be written, in one line; `None` if all was.
    pub(crate) fn unwritten(&self) -> Option<String> {
        unwritten::in_words(&lock(&self.unwritten))
    }

    /// Refreshes the record soon, whatever it cost before: something else is asked for, or of another process.
    pub(crate) fn refresh_soon(&self) {
        self.due.store(0, Relaxed);
    }

    /// Whether the record should be refreshed: it was not for a hundred times as long as that takes.
    pub(crate) fn is_due(&self) -> bool {
        self.due.load(Relaxed) <= self.since.0.elapsed().as_nanos() as u64
    }

    /// Puts the numbers of now into the record. `false`: nobody will find them. What cannot be written is lost, and the program
    /// goes on.
    pub(crate) fn refresh(&self, settings: &Settings, whose: Whose) -> bool {
        let mut record = match whose.ended {
            true => lock(&self.record),
            false => match self.record.try_lock() {
                Ok(record) => record,
                Err(_) => return false,
            },
        };
        let Some(to) = &settings.stats else {
            self.due.store(u64::MAX, Relaxed);
            return false;
        };
        let begin = Instant::now();
        let written = record.write(to, whose.ended, &|started| self.report(settings, whose, started));
        let pause = (begin.elapsed() * record::COST).min(record::LONGEST).as_nanos() as u64;
        let next = self.since.0.elapsed().as_nanos() as u64 + pause;
        self.due.store(if written || whose.ended { next } else { u64::MAX }, Relaxed);
        written
    }

    fn report(&self, settings: &Settings, whose: Whose, started: u64) -> Report {
        let version = whose.version;
        Report {
            hyperslab_connector_stats: 1,
            pid: std::process::id(),
            started,
            slot: whose.slot as u64,
            ended: whose.ended,
            open_files: whose.open_files as u64,
            program: program(),
            library: format!("{}.{}.{}", version.0, version.1, version.2),
            mode: settings.modes.to_string(),
            files: self.files.load(Relaxed),
            datasets: self.datasets.load(Relaxed),
            overridden: self.overridden.load(Relaxed),
            write: self.write.report(),
            read: self.read.report(),
            fell_back: self.read.reasons("read").into_iter().chain(self.write.reasons("write")).collect(),
            background_seconds: self.background.load(Relaxed) as f64 / 1e9,
            waited_seconds: self.waited.load(Relaxed) as f64 / 1e9,
            hidden_seconds: self.background.load(Relaxed).saturating_sub(self.waited.load(Relaxed)) as f64 / 1e9,
            // Of the process: of its first library, so that it is told once.
            helper_seconds: if whose.slot == 0 { hyperslab_h5direct::saved_by_workers().as_secs_f64() } else { 0.0 },
            drains: self.drains.load(Relaxed),
            drain_seconds: self.drained.load(Relaxed) as f64 / 1e9,
            peak_memory: self.peak.load(Relaxed),
            rollback_bytes: self.rollback.load(Relaxed),
            errors: self.errors.load(Relaxed),
            remarks: lock(&self.remarks).clone(),
            unwritten: lock(&self.unwritten).clone(),
        }
    }

    /// Takes all locks, so that no other thread holds one while the process forks.
    pub(crate) fn hold_locks(&self) -> Held<'_> {
        Held {
            record: lock(&self.record),
            reasons: [lock(&self.write.fell_back), lock(&self.read.fell_back)],
            remarks: lock(&self.remarks),
            unwritten: lock(&self.unwritten),
        }
    }

    /// Counts anew, in a process that was forked. Memory that it has from its parent it still holds.
    pub(crate) fn begin_anew(&self, mut held: Held<'_>) {
        held.reasons.iter_mut().for_each(|reasons| reasons.clear());
        held.remarks.clear();
        held.unwritten.clear();
        *held.record = Record::default();
        for side in [&self.write, &self.read] {
            for number in
                [&side.calls, &side.bytes, &side.accelerated_calls, &side.accelerated_bytes, &side.nanoseconds]
            {
                number.store(0, Relaxed);
            }
        }
        for number in [
            &self.files,
            &self.datasets,
            &self.overridden,
            &self.background,
            &self.waited,
            &self.drains,
            &self.drained,
            &self.errors,
            &self.due,
        ] {
            number.store(0, Relaxed);
        }
        self.peak.store(self.memory.load(Relaxed), Relaxed);
    }

    /// Whether anything was counted.
    pub(crate) fn is_empty(&self) -> bool {
        [&self.files, &self.write.calls, &self.read.calls, &self.errors].iter().all(|number| number.load(Relaxed) == 0)
    }
}

fn program() -> String {
    let own = std::env::current_exe().ok();
    own.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned())).unwrap_or_default()
}
