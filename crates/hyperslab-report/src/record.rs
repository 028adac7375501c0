//! What is read of a results file. Every key may be missing, and unknown ones are passed over, so that files of all versions
//! and of runs that were cut short can be shown.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A results file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// Version of the form.
    pub hyperslab_results: u32,
    /// Name and version of the program.
    pub program: String,
    /// The command line.
    pub command: Vec<String>,
    /// Seconds since 1970, or in later versions an ISO time.
    pub started: Value,
    /// Whether all cases were gone through.
    pub complete: bool,
    /// The command that started the ranks.
    pub launch: Option<String>,
    /// On what it was measured.
    pub machine: BTreeMap<String, Value>,
    /// Where it comes from, in later versions.
    pub provenance: BTreeMap<String, Value>,
    /// The cases.
    pub cases: Vec<CaseRecord>,
}

/// A case of a results file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CaseRecord {
    /// Number, from 1.
    pub number: u64,
    /// Kind of benchmark.
    pub benchmark: String,
    /// The container.
    pub file: String,
    /// What it does, in words.
    pub workload: String,
    /// The stack.
    pub stack: String,
    /// How ranks were made.
    pub launcher: String,
    /// How many.
    pub ranks: u64,
    /// `warm` or `cold`.
    pub cache: String,
    /// How it ended.
    pub status: String,
    /// Why not well.
    pub error: Option<String>,
    /// Whether data were compared.
    pub verified: String,
    /// What to know.
    pub warnings: Vec<String>,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Observed time.
    pub observed: SpreadRecord,
    /// Bytes over observed time.
    pub observed_rate: SpreadRecord,
    /// Bytes over the time of transfers.
    pub raw_rate: SpreadRecord,
    /// Calls by kind.
    pub operations: BTreeMap<String, LatencyRecord>,
    /// Bytes of the files.
    pub stored: Option<u64>,
    /// What was varied: name and value of each axis of a sweep.
    #[serde(deserialize_with = "axes")]
    pub axes: BTreeMap<String, Value>,
    /// What was predicted.
    pub predicted: Option<PredictionRecord>,
    /// Every repetition.
    pub repetitions: Vec<RepetitionRecord>,
}

/// Several measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct SpreadRecord {
    /// How many.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Lower quartile.
    pub q1: f64,
    /// In the middle.
    pub median: f64,
    /// Upper quartile.
    pub q3: f64,
    /// Largest.
    pub max: f64,
    /// The 95 % interval of the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_95: Option<[f64; 2]>,
}

impl SpreadRecord {
    /// The interval, or with too few measurements for one the smallest and the largest.
    pub fn reach(&self) -> [f64; 2] {
        self.median_95.unwrap_or([self.min, self.max])
    }
}

/// Times of calls of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct LatencyRecord {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total: f64,
    /// Fastest.
    pub min: f64,
    /// Half.
    pub p50: f64,
    /// Nine tenths.
    pub p90: f64,
    /// All but one of a hundred.
    pub p99: f64,
    /// Slowest.
    pub max: f64,
}

/// A predicted time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, serde::Serialize)]
#[serde(default)]
pub struct PredictionRecord {
    /// Of all I/O.
    pub seconds: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A repetition.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RepetitionRecord {
    /// The ranks.
    pub ranks: Vec<RankRecord>,
}

/// A rank of a repetition.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct RankRecord {
    /// From first to last step.
    pub wall: f64,
    /// Without computing and preparing.
    pub observed: f64,
    /// Emulated compute.
    pub compute: f64,
    /// Transfers.
    pub raw: f64,
    /// Groups, arrays, attributes.
    pub metadata: f64,
    /// Opening.
    pub open_file: f64,
    /// Flushes.
    pub flush: f64,
    /// Closing.
    pub close_file: f64,
    /// Waiting for others.
    pub barrier: f64,
    /// In calls of the stack.
    pub blocked: f64,
    /// Bytes written.
    pub bytes_written: f64,
    /// Bytes read.
    pub bytes_read: f64,
    /// What layers did meanwhile.
    pub background: Option<BackgroundRecord>,
}

/// I/O behind the program's back.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct BackgroundRecord {
    /// At work.
    pub busy: f64,
    /// Waited for.
    pub waited: f64,
}

impl RepetitionRecord {
    /// Observed time of the slowest rank.
    pub fn observed(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.observed).fold(0.0, f64::max)
    }

    /// Bytes per second of observed time, or runs per second where nothing is moved.
    pub fn figure(&self) -> Option<f64> {
        let bytes: f64 = self.ranks.iter().map(|rank| rank.bytes_written + rank.bytes_read).sum();
        let figure = if bytes > 0.0 { bytes / self.observed() } else { 1.0 / self.observed() };
        (figure.is_finite() && figure > 0.0).then_some(figure)
    }
}

/// A map, or a list of objects with `name` and `value`; anything else is no axis.
fn axes<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Value>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Object(map) => map.into_iter().collect(),
        Value::Array(list) => {
            let pair = |axis: &Value| Some((axis["name"].as_str()?.to_owned(), axis.get("value")?.clone()));
            list.iter().filter_map(pair).collect()
        }
        _ => BTreeMap::new(),
    })
}
