//! Everything that is shown, in whatever form.

use crate::activity::{self, Activity};
use crate::cases::{self, CaseRow, Note};
use crate::changes::{self, Change};
use crate::curves::{self, CurveChart};
use crate::groups::{self, Group};
use crate::input::{Input, Recording};
use crate::provenance::{self, RunFacts};
use crate::record::RunRecord;
use crate::verdict;
use serde::Serialize;
use std::path::PathBuf;

/// The version of the JSON form of a report.
pub const REPORT_VERSION: u32 = 1;

/// Results, worked out for people.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of this form.
    #[serde(rename = "hyperslab_report")]
    pub version: u32,
    /// What it is about.
    pub title: String,
    /// The answer in one sentence.
    pub verdict: String,
    /// What else is to be said.
    pub details: Vec<String>,
    /// Published claims beside what was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The files.
    pub runs: Vec<RunFacts>,
    /// All cases of all files.
    pub cases: Vec<CaseRow>,
    /// Notes on cases, each once.
    pub notes: Vec<Note>,
    /// Cases that can be set against each other.
    pub groups: Vec<Group>,
    /// Groups that only the table shows.
    pub groups_left_out: usize,
    /// What varies with what.
    pub curves: Vec<CurveChart>,
    /// The same cases in several files.
    pub changes: Vec<Change>,
    /// Who was in which call when.
    pub activities: Vec<Activity>,
    /// Recordings that are not shown.
    pub activities_left_out: usize,
}

/// A published statement beside what was measured here.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// The study's name.
    pub study: String,
    /// Where it was published: work and place in it.
    pub source: String,
    /// What was published.
    pub published: String,
    /// What was measured here.
    pub here: String,
    /// `holds`, `does not hold`, `cannot tell`.
    pub verdict: String,
    /// Why.
    pub reason: String,
}

impl Report {
    /// Works out what is to be said of files, in the order in which they were measured.
    pub fn of(inputs: Vec<Input>) -> Self {
        let mut runs: Vec<(PathBuf, Box<RunRecord>)> = Vec::new();
        let mut recordings: Vec<(usize, Recording)> = Vec::new();
        let mut inputs = inputs;
        inputs.sort_by(|a, b| started(a).total_cmp(&started(b)));
        for input in inputs {
            match input {
                Input::Results { path, run, recordings: more } => {
                    runs.push((path, run));
                    recordings.extend(more.into_iter().map(|recording| (runs.len(), recording)));
                }
                Input::Trace(recording) => recordings.push((0, recording)),
            }
        }
        let records: Vec<&RunRecord> = runs.iter().map(|(_, run)| &**run).collect();
        let facts: Vec<RunFacts> = runs.iter().map(|(path, run)| provenance::facts(path, run)).collect();
        let (cases, notes) = cases::rows(&records);
        let (groups, groups_left_out) = groups::of(&cases);
        let curves = curves::of(&records);
        let changes = changes::of(&records);
        let titled = recordings.into_iter().map(|(run, recording)| match recording.case {
            Some(case) if runs.len() > 1 => {
                let title = format!("case {run}.{case}: {}", recording.title);
                Recording { title, ..recording }
            }
            Some(case) => Recording { title: format!("case {case}: {}", recording.title), ..recording },
            None => recording,
        });
        let (activities, activities_left_out) = activity::of(titled.collect());
        let (verdict, details) = verdict::words(&facts, &cases, &groups, &changes, activities.len());
        let title = match facts.as_slice() {
            [] => "Recordings".to_owned(),
            [one] => format!("Results of {}, {}", one.host, one.started),
            several => format!("{} results files", several.len()),
        };
        Self {
            version: REPORT_VERSION,
            title,
            verdict,
            details,
            claims: Vec::new(),
            runs: facts,
            cases,
            notes,
            groups,
            groups_left_out,
            curves,
            changes,
            activities,
            activities_left_out,
        }
    }
}

fn started(input: &Input) -> f64 {
    match input {
        Input::Results { run, .. } => provenance::started_seconds(&run.started),
        Input::Trace(_) => f64::INFINITY,
    }
}
