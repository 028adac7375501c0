//! From paths to what can be reported on.

use crate::record::RunRecord;
use hyperslab_core::json_problem;
use serde::Deserialize;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The largest results file that is read.
const MAX_FILE: u64 = 1 << 30;
/// Calls of a rank that are kept for a picture; a longer recording is shown up to there.
const MAX_CALLS: usize = 200_000;
/// Ranks that are kept.
const MAX_RANKS: usize = 4096;

/// A file that was read.
#[derive(Debug)]
pub enum Input {
    /// Results of `bench`.
    Results {
        /// Where they were.
        path: PathBuf,
        /// What they say.
        run: Box<RunRecord>,
        /// Calls of cases, from the samples beside the results.
        recordings: Vec<Recording>,
    },
    /// A recorded program.
    Trace(Recording),
}

/// When each rank was in which call.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// What was recorded, in words.
    pub title: String,
    /// Number of the case, for samples.
    pub case: Option<u64>,
    /// Calls of each rank, in order.
    pub ranks: Vec<Vec<Call>>,
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its kind.
    pub operation: String,
    /// Seconds from the beginning.
    pub start: f64,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Why a file cannot be reported on.
#[derive(Debug)]
pub struct InputError {
    path: PathBuf,
    why: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot read {}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for InputError {}

impl Input {
    /// Reads a results file, a folder with one, or a recording.
    pub fn load(path: &Path) -> Result<Self, InputError> {
        let path = if path.is_dir() { path.join("results.json") } else { path.to_owned() };
        let failed = |why: String| InputError { path: path.clone(), why };
        let file =
            File::open(&path).map_err(|e| failed(format!("{e}\n  try: the results.json of a run, or its folder")))?;
        let mut text = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut text).map_err(|e| failed(e.to_string()))?;
        if text.len() as u64 > MAX_FILE {
            return Err(failed("it is larger than 1 GiB, so no results file".into()));
        }
        let first = text.split(|b| *b == b'\n').next().unwrap_or_default();
        if first.len() < 1 << 20 && first.windows(20).any(|w| w == b"\"hyperslab_workload\"") {
            return trace(&path, &text).map(Self::Trace).map_err(failed);
        }
        let run: RunRecord = serde_json::from_slice(&text).map_err(|e| failed(json_problem(&e)))?;
        if run.hyperslab_results == 0 {
            return Err(failed("it is JSON, but no results of hyperslab bench".into()));
        }
        let recordings = path.parent().map(|folder| samples(folder, &run)).unwrap_or_default();
        Ok(Self::Results { path, run: Box::new(run), recordings })
    }
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    name: String,
    ranks: usize,
}

#[derive(Deserialize)]
struct Step {
    rank: Option<usize>,
    #[serde(rename = "do")]
    operation: String,
    took: Option<u64>,
    nanoseconds: Option<u64>,
}

fn trace(path: &Path, text: &[u8]) -> Result<Recording, String> {
    let mut lines = text.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let header: Header = serde_json::from_slice(lines.next().unwrap_or_default()).map_err(|e| json_problem(&e))?;
    if header.ranks == 0 || header.ranks > MAX_RANKS {
        return Err(format!("{} ranks; 1 to {MAX_RANKS} can be shown", header.ranks));
    }
    let name = if header.name.is_empty() { path.display().to_string() } else { header.name };
    let mut ranks: Vec<Vec<Call>> = vec![Vec::new(); header.ranks];
    let mut now = vec![0.0; header.ranks];
    for line in lines {
        let step: Step = serde_json::from_slice(line).map_err(|e| json_problem(&e))?;
        let who = match step.rank {
            Some(rank) if rank >= header.ranks => return Err(format!("a step of rank {rank}, of {}", header.ranks)),
            Some(rank) => rank..rank + 1,
            None => 0..header.ranks,
        };
        let seconds = step.took.or(step.nanoseconds).unwrap_or(0) as f64 / 1e9;
        for rank in who {
            if seconds > 0.0 && ranks[rank].len() < MAX_CALLS {
                ranks[rank].push(Call { operation: step.operation.clone(), start: now[rank], seconds });
            }
            now[rank] += seconds;
        }
    }
    if ranks.iter().all(Vec::is_empty) {
        return Err(
            "the steps of this workload have no times: it was not recorded\n  try: a file of hyperslab trace".into()
        );
    }
    Ok(Recording { title: format!("recording {name}"), case: None, ranks })
}

/// The samples of the repetition in the middle, of every case that has them.
fn samples(folder: &Path, run: &RunRecord) -> Vec<Recording> {
    let mut found = Vec::new();
    for case in &run.cases {
        let mut order: Vec<usize> = (0..case.repetitions.len()).collect();
        order.sort_by(|a, b| case.repetitions[*a].observed().total_cmp(&case.repetitions[*b].observed()));
        let Some(middle) = order.get(order.len() / 2).map(|index| index + 1) else { continue };
        let ranks: Vec<Vec<Call>> = (0..case.repetitions[middle - 1].ranks.len().min(MAX_RANKS))
            .map_while(|rank| {
                let name = format!("samples-case-{}-repetition-{middle}-rank-{rank}.csv", case.number);
                File::open(folder.join(name)).ok().map(calls)
            })
            .collect();
        if ranks.iter().any(|calls| !calls.is_empty()) {
            let title = format!("{} on {}, repetition {middle}", case.benchmark, case.stack);
            found.push(Recording { title, case: Some(case.number), ranks });
        }
    }
    found
}

fn calls(file: File) -> Vec<Call> {
    let lines = BufReader::new(file.take(MAX_FILE)).lines().skip(1).map_while(Result::ok);
    let call = |line: String| {
        let mut fields = line.split(',').skip(1);
        let (operation, start, seconds) = (fields.next()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let good = |value: f64| value.is_finite() && value >= 0.0;
        (good(start) && good(seconds)).then(|| Call { operation: operation.to_owned(), start, seconds })
    };
    lines.take(MAX_CALLS).filter_map(call).collect()
}
