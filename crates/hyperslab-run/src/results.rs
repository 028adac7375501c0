//! The results file: `results.json`, documented in docs/results-format.md.

use crate::latency::Latency;
use crate::machine::Machine;
use crate::measure::RankMeasurement;
use crate::provenance::Provenance;
use crate::rank_balance::RankBalance;
use crate::statistics::Spread;
use hyperslab_core::{CacheState, Error, ErrorKind, Result, Stack, json_problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// The largest results file that is read.
const MAX_FILE: u64 = 1 << 30;

/// The version of the results form that this build writes.
pub const RESULTS_VERSION: u32 = 2;

/// Everything a `bench` run found out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Version of this form.
    #[serde(rename = "hyperslab_results")]
    pub version: u32,
    /// Version of the program.
    pub program: String,
    /// The command line.
    pub command: Vec<String>,
    /// When the run began, in seconds since 1970; an ISO time in the file.
    #[serde(with = "start_time")]
    pub started: f64,
    /// Whether all cases were gone through.
    pub complete: bool,
    /// The command that started the ranks, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<String>,
    /// On what it was measured.
    pub machine: Machine,
    /// Where all this comes from; empty in files of version 1.
    #[serde(default)]
    pub provenance: Provenance,
    /// The cases in order.
    pub cases: Vec<CaseResult>,
}

/// How a case ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Not reached.
    Planned,
    /// Every repetition succeeded.
    Ok,
    /// An error ended it.
    Failed,
    /// It was left out, with a reason in `error`.
    Skipped,
    /// The user stopped it.
    Interrupted,
}

/// Whether the data were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verified {
    /// Every byte written or read was compared and right.
    Yes,
    /// Nobody asked.
    NotAsked,
    /// The format keeps nothing that could be compared, or no rule tells what a file that was read must hold.
    Impossible,
    /// A comparison failed, or an error came before it.
    No,
}

/// One workload on one stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Number of the case, from 1.
    pub number: usize,
    /// Kind of benchmark, such as `write`.
    pub benchmark: String,
    /// The container, relative to the machine's `directory`.
    pub file: String,
    /// What the workload does, in words.
    pub workload: String,
    /// The stack it ran on.
    pub stack: Stack,
    /// How ranks were made.
    pub launcher: String,
    /// Number of ranks.
    pub ranks: usize,
    /// What a sweep varies, with the values of this case.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub axes: BTreeMap<String, serde_json::Value>,
    /// Cold or warm.
    pub cache: CacheState,
    /// How it ended.
    pub status: Status,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the data were checked.
    pub verified: Verified,
    /// What the user should know about these numbers.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Bytes that all ranks together transferred in one repetition.
    pub bytes: u64,
    /// Observed time in seconds of the slowest rank, over the repetitions.
    pub observed: Spread,
    /// Bytes per second of observed time, over the repetitions.
    pub observed_rate: Spread,
    /// Bytes per second of the time in which some rank was in a transfer call, over the repetitions.
    pub raw_rate: Spread,
    /// The calls of all ranks in all repetitions, by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operations: BTreeMap<String, Latency>,
    /// The rank that spent least in its own calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fastest_rank: Option<RankBalance>,
    /// The rank that spent most in its own calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_rank: Option<RankBalance>,
    /// Bytes of the files after a case that writes: less than what was written when it compresses well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// What was predicted, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted: Option<PredictedTime>,
    /// Load average of the machine over the minute before the case ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Every repetition, unabridged.
    pub repetitions: Vec<Repetition>,
}

/// How long a case was predicted to take, in seconds of observed time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PredictedTime {
    /// In the middle.
    pub seconds: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One run of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Part of the files in the page cache before the run, from 0 to 1; absent when the files were new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_before: Option<f64>,
    /// What each rank measured.
    pub ranks: Vec<RankMeasurement>,
}

impl Repetition {
    /// The largest of a time over the ranks: the slowest rank defines it.
    pub fn slowest(&self, time: impl Fn(&RankMeasurement) -> f64) -> f64 {
        self.ranks.iter().map(time).fold(0.0, f64::max)
    }

    /// Bytes of all ranks.
    pub fn bytes(&self) -> u64 {
        self.ranks.iter().fold(0, |sum: u64, r| sum.saturating_add(r.bytes_written).saturating_add(r.bytes_read))
    }

    /// Observed time in seconds.
    pub fn observed(&self) -> f64 {
        self.slowest(|m| m.observed)
    }

    /// Bytes per second of observed time; 0 when no time passed.
    pub fn observed_rate(&self) -> f64 {
        self.rate(self.observed())
    }

    /// Bytes per second of the time in which some rank transferred; 0 when no time passed.
    pub fn raw_rate(&self) -> f64 {
        self.rate(self.slowest(|m| m.raw.max(m.transferring)))
    }

    fn rate(&self, seconds: f64) -> f64 {
        if seconds > 0.0 { self.bytes() as f64 / seconds } else { 0.0 }
    }
}

impl CaseResult {
    /// Takes over the repetitions and works out the figures over them.
    pub fn set_repetitions(&mut self, repetitions: Vec<Repetition>) {
        self.bytes = repetitions.first().map_or(self.bytes, Repetition::bytes);
        self.observed = Spread::of(repetitions.iter().map(Repetition::observed));
        self.observed_rate = Spread::of(repetitions.iter().map(Repetition::observed_rate));
        self.raw_rate = Spread::of(repetitions.iter().map(Repetition::raw_rate));
        let ranks = RankBalance::ordered(&repetitions);
        self.fastest_rank = ranks.first().copied();
        self.slowest_rank = ranks.last().copied();
        self.repetitions = repetitions;
    }
}

impl Results {
    /// Replaces the file at `path` in one step, so that it is whole at every moment.
    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |e: std::io::Error| Error::io("write results", e).target(path.display());
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|e| Error::new(ErrorKind::Io, "write results", e.to_string()))?;
        text.push(b'\n');
        let new = path.with_extension("json.new");
        let mut file = File::create(&new).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, path).map_err(failed)
    }

    /// Reads a results file of a version this build knows, of at most 1 GiB.
    pub fn load(path: &Path) -> Result<Self> {
        let mut text = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut text))
            .map_err(|e| Error::io("read results", e).target(path.display()))?;
        if text.len() as u64 > MAX_FILE {
            return Err(Error::new(ErrorKind::Corrupt, "read results", "it is larger than 1 GiB, so no results file")
                .target(path.display()));
        }
        Self::from_json(&text).map_err(|e| e.target(path.display()))
    }

    /// Reads the text of a results file of a version this build knows.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let results: Self = serde_json::from_slice(text)
            .map_err(|e| Error::new(ErrorKind::Corrupt, "read results", json_problem(&e)))?;
        if !(1..=RESULTS_VERSION).contains(&results.version) {
            return Err(Error::unsupported("read results", format!("version {} is not known", results.version)));
        }
        Ok(results)
    }
}

/// Seconds since 1970 in memory, an ISO time in files; those of version 1 have the seconds.
mod start_time {
    use hyperslab_core::units::{iso_time, parse_iso_time};
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(seconds: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&iso_time(*seconds))
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Seconds(f64),
        Iso(String),
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(match Written::deserialize(from)? {
            Written::Seconds(seconds) => seconds,
            Written::Iso(text) => parse_iso_time(&text).ok_or_else(|| serde::de::Error::custom("not a time"))?,
        })
    }
}
