//! The same cases in several files: what changed from the first to the last.

use crate::ratio::{Verdict, of_medians};
use crate::record::{CaseRecord, RunRecord};
use serde::Serialize;
use std::collections::BTreeMap;

/// Differences up to this are none.
pub const THRESHOLD: f64 = 0.05;

/// A case that several files have.
#[derive(Debug, Clone, Serialize)]
pub struct Change {
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
    /// In which files, and the median there: bytes per second, or runs per second if no bytes are moved.
    pub points: Vec<(usize, f64)>,
    /// The last over the first.
    pub ratio: f64,
    /// Its 95 % interval.
    pub ratio_95: Option<[f64; 2]>,
    /// What that means: faster, slower, same, cannot tell.
    pub verdict: &'static str,
}

/// Matches the cases of all files.
pub fn of(runs: &[&RunRecord]) -> Vec<Change> {
    if runs.len() < 2 {
        return Vec::new();
    }
    let mut matched: BTreeMap<_, Vec<(usize, &CaseRecord)>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        let mut times: BTreeMap<_, usize> = BTreeMap::new();
        for case in run.cases.iter().filter(|case| case.status == "ok") {
            let key = (&case.benchmark, &case.workload, &case.stack, case.ranks, &case.cache);
            let time = times.entry(key).or_insert(0);
            *time += 1;
            matched.entry((key, *time)).or_default().push((index + 1, case));
        }
    }
    let change = |cases: Vec<(usize, &CaseRecord)>| {
        let figures = |case: &CaseRecord| -> Vec<f64> { case.repetitions.iter().filter_map(|r| r.figure()).collect() };
        let (first, last) = (cases.first()?, cases.last()?);
        if first.0 == last.0 {
            return None;
        }
        let (_, ratio) = of_medians(&figures(first.1), &figures(last.1))?;
        let points = cases.iter().filter_map(|(run, case)| {
            let figures = figures(case);
            of_medians(&figures, &figures).map(|(medians, _)| (*run, medians[0]))
        });
        Some(Change {
            benchmark: first.1.benchmark.clone(),
            workload: first.1.workload.clone(),
            stack: first.1.stack.clone(),
            ranks: first.1.ranks,
            cache: first.1.cache.clone(),
            points: points.collect(),
            ratio: ratio.value,
            ratio_95: ratio.interval,
            verdict: Verdict::of(&ratio, THRESHOLD).word(),
        })
    };
    let mut changes: Vec<Change> = matched.into_values().filter_map(change).collect();
    changes.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    changes
}
