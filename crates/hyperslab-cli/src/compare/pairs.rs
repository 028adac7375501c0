//! Which case of one file is which case of the other.

use crate::cli::Matched;
use hyperslab_core::units::display_size;
use hyperslab_run::{CaseResult, Results, Status};
use std::collections::HashMap;

/// The same case in two files.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// In the first.
    pub a: &'a CaseResult,
    /// In the second.
    pub b: &'a CaseResult,
}

impl Pair<'_> {
    /// Its number, or both if they differ.
    pub fn numbers(&self) -> String {
        if self.a.number == self.b.number {
            self.a.number.to_string()
        } else {
            format!("{}/{}", self.a.number, self.b.number)
        }
    }
}

/// All cases of two files.
#[derive(Debug, Default)]
pub struct Pairing<'a> {
    /// In both, and good in both; in the order of the first file.
    pub pairs: Vec<Pair<'a>>,
    /// The others, and why.
    pub left_out: Vec<(&'a CaseResult, String)>,
    /// Whether a case that was good in the first file failed in the second.
    pub broke: bool,
}

/// What makes two cases the same, apart from their place among equals.
fn key(case: &CaseResult, matched: &[Matched]) -> Vec<String> {
    let part = |what: &Matched| match what {
        Matched::Benchmark => case.benchmark.clone(),
        Matched::Workload => case.workload.clone(),
        Matched::Stack => case.stack.to_string(),
        Matched::Ranks => case.ranks.to_string(),
        Matched::Cache => case.cache.name().to_owned(),
    };
    matched.iter().map(part).collect()
}

impl<'a> Pairing<'a> {
    /// Matches the cases; the n-th of several equal ones belongs to the n-th of the other file.
    pub fn of(a: &'a Results, b: &'a Results, matched: &[Matched]) -> Self {
        let mut pairing = Self::default();
        let mut waiting: HashMap<_, Vec<&CaseResult>> = HashMap::new();
        for case in b.cases.iter().rev() {
            waiting.entry(key(case, matched)).or_default().push(case);
        }
        for a in &a.cases {
            match waiting.get_mut(&key(a, matched)).and_then(Vec::pop) {
                Some(b) => pairing.add(Pair { a, b }),
                None => pairing.left_out.push((a, "only in the first file".into())),
            }
        }
        let mut rest: Vec<_> = waiting.into_values().flatten().collect();
        rest.sort_by_key(|case| case.number);
        pairing.left_out.extend(rest.into_iter().map(|case| (case, "only in the second file".into())));
        pairing
    }

    fn add(&mut self, pair: Pair<'a>) {
        self.broke |= pair.a.status == Status::Ok && pair.b.status == Status::Failed;
        let bad = [(pair.a, "first"), (pair.b, "second")].into_iter().find(|(case, _)| case.status != Status::Ok);
        match bad {
            None if pair.a.bytes != pair.b.bytes => {
                let (a, b) = (display_size(pair.a.bytes), display_size(pair.b.bytes));
                self.left_out.push((pair.a, format!("not the same work: {a} in the first file, {b} in the second")));
            }
            None => self.pairs.push(pair),
            Some((case, which)) => {
                let status = match case.status {
                    Status::Planned => "not run",
                    Status::Ok => "ok",
                    Status::Failed => "failed",
                    Status::Skipped => "skipped",
                    Status::Interrupted => "interrupted",
                };
                let why = case.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
                self.left_out.push((case, format!("{status} in the {which} file{why}")));
            }
        }
    }
}
