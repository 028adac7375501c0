//! One row per case.

use crate::record::{CaseRecord, LatencyRecord, PredictionRecord, RankRecord, RunRecord, SpreadRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the time of a case is made of, in the order of the bars.
pub const PARTS: [&str; 7] = ["open", "metadata", "transfer", "flush", "close", "waiting", "computing"];

/// A case as it is shown.
#[derive(Debug, Clone, Serialize)]
pub struct CaseRow {
    /// Number of the file, from 1.
    pub run: usize,
    /// Number of the case in it.
    pub number: u64,
    /// Kind of benchmark.
    pub benchmark: String,
    /// What it does.
    pub workload: String,
    /// On which stack.
    pub stack: String,
    /// Number of ranks.
    pub ranks: u64,
    /// Cold or warm.
    pub cache: String,
    /// How it ended.
    pub status: String,
    /// Whether data were compared.
    pub verified: String,
    /// Why it did not end well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Bytes of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// Observed time.
    pub time: SpreadRecord,
    /// Bytes per second of it.
    pub rate: SpreadRecord,
    /// Bytes per second of transfer calls.
    pub raw_rate: SpreadRecord,
    /// Seconds of each of [`PARTS`], of the slowest rank in the repetition in the middle.
    pub parts: Vec<f64>,
    /// Calls by kind.
    pub calls: BTreeMap<String, LatencyRecord>,
    /// What was predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<PredictionRecord>,
    /// Seconds of computing, of being blocked and of work in the background, if there was any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<[f64; 3]>,
}

/// Something to know about cases.
#[derive(Debug, Clone, Serialize)]
pub struct Note {
    /// What.
    pub text: String,
    /// Which: `file.case`, or only the case with one file.
    pub cases: Vec<String>,
}

impl CaseRow {
    /// Whether it has figures.
    pub fn is_good(&self) -> bool {
        self.status == "ok" && self.time.count > 0
    }

    /// Its number, with that of the file where there are several.
    pub fn label(&self, runs: usize) -> String {
        if runs > 1 { format!("{}.{}", self.run, self.number) } else { self.number.to_string() }
    }

    /// The transfer calls: of those that write or read, the kind that took longest.
    pub fn transfers(&self) -> Option<(&str, &LatencyRecord)> {
        let calls = self.calls.iter().filter(|(name, _)| ["write", "read"].contains(&name.as_str()));
        calls.max_by(|a, b| a.1.total.total_cmp(&b.1.total)).map(|(name, latency)| (name.as_str(), latency))
    }
}

/// The rows of all cases, and the notes on them.
pub fn rows(runs: &[&RunRecord]) -> (Vec<CaseRow>, Vec<Note>) {
    let mut rows = Vec::new();
    let mut notes: Vec<Note> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for case in &run.cases {
            let row = row(index + 1, case);
            for warning in &case.warnings {
                let place = *places.entry(warning).or_insert_with(|| {
                    notes.push(Note { text: warning.clone(), cases: Vec::new() });
                    notes.len() - 1
                });
                notes[place].cases.push(row.label(runs.len()));
            }
            rows.push(row);
        }
    }
    notes.sort_by_key(|note| std::cmp::Reverse(note.cases.len()));
    (rows, notes)
}

fn row(run: usize, case: &CaseRecord) -> CaseRow {
    let slowest = middle(case);
    let parts = slowest.map_or_else(Vec::new, |rank| {
        vec![rank.open_file, rank.metadata, rank.raw, rank.flush, rank.close_file, rank.barrier, rank.compute]
    });
    CaseRow {
        run,
        number: case.number,
        benchmark: case.benchmark.clone(),
        workload: case.workload.clone(),
        stack: case.stack.clone(),
        ranks: case.ranks,
        cache: case.cache.clone(),
        status: case.status.clone(),
        verified: case.verified.clone(),
        error: case.error.clone(),
        bytes: case.bytes,
        stored: case.stored,
        time: case.observed,
        rate: case.observed_rate,
        raw_rate: case.raw_rate,
        parts: parts.into_iter().map(|seconds: f64| seconds.max(0.0)).collect(),
        calls: case.operations.clone(),
        predicted: case.predicted,
        background: slowest.and_then(|rank| Some([rank.compute, rank.blocked, rank.background?.busy])),
    }
}

/// The slowest rank of the repetition in the middle.
fn middle(case: &CaseRecord) -> Option<&RankRecord> {
    let mut order: Vec<_> = case.repetitions.iter().collect();
    order.sort_by(|a, b| a.observed().total_cmp(&b.observed()));
    order.get(order.len() / 2)?.ranks.iter().max_by(|a, b| a.observed.total_cmp(&b.observed))
}
