//! What was measured so far, kept so that a run that was stopped goes on where it was.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// One access, measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Name of the trial.
    pub trial: String,
    /// `read` or `write`.
    pub direction: String,
    /// How it goes over the array.
    pub access: String,
    /// `warm` or `cold`.
    pub cache: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Every repetition.
    pub seconds: Vec<f64>,
}

impl Timing {
    /// Whether the other one is of the same access.
    fn is_of(&self, other: &Self) -> bool {
        self.trial == other.trial
            && (&self.direction, &self.access, &self.cache) == (&other.direction, &other.access, &other.cache)
            && self.ranks == other.ranks
    }

    /// The middle one.
    pub fn median(&self) -> f64 {
        hyperslab_run::Spread::of(self.seconds.iter().copied()).median
    }
}

/// Timings in a file of JSON lines.
#[derive(Debug)]
pub struct Timings {
    path: PathBuf,
    /// All so far.
    pub all: Vec<Timing>,
}

impl Timings {
    /// Those that are there; what a stopped run left unfinished is dropped.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = || format!("read {}", path.display());
        let mut timings = Self { path: path.into(), all: Vec::new() };
        if !path.exists() {
            return Ok(timings);
        }
        let mut whole = true;
        for line in BufReader::new(File::open(path).with_context(failed)?).lines() {
            match serde_json::from_str::<Timing>(&line.with_context(failed)?) {
                Ok(timing) if timing.seconds.iter().all(|s| s.is_finite() && *s > 0.0) => timings.merge(timing),
                _ => whole = false,
            }
        }
        if !whole {
            let known = std::mem::take(&mut timings.all);
            timings.clear()?;
            timings.add(known)?;
        }
        Ok(timings)
    }

    /// Forgets all.
    pub fn clear(&mut self) -> Result<()> {
        self.all.clear();
        match fs::remove_file(&self.path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(e).with_context(|| format!("remove {}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Those of one access of a trial.
    pub fn of<'a>(&'a self, trial: &'a str, access: &'a str) -> impl Iterator<Item = &'a Timing> {
        self.all.iter().filter(move |timing| timing.trial == trial && timing.access == access)
    }

    /// How often a trial of so many accesses was measured to its end.
    pub fn rounds(&self, trial: &str, accesses: usize) -> usize {
        let of_it: Vec<usize> = self
            .all
            .iter()
            .filter(|timing| timing.trial == trial && timing.ranks == 1)
            .map(|t| t.seconds.len())
            .collect();
        if of_it.len() < accesses { 0 } else { of_it.into_iter().min().unwrap_or(0) }
    }

    /// Puts what was measured again to what was measured before.
    fn merge(&mut self, timing: Timing) {
        match self.all.iter_mut().find(|known| known.is_of(&timing)) {
            Some(known) => known.seconds.extend(timing.seconds),
            None => self.all.push(timing),
        }
    }

    /// Adds what one trial gave. The file is whole after each.
    pub fn add(&mut self, timings: Vec<Timing>) -> Result<()> {
        let mut text = String::new();
        for timing in &timings {
            text.push_str(&serde_json::to_string(timing)?);
            text.push('\n');
        }
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .with_context(|| format!("write {}", self.path.display()))?;
        timings.into_iter().for_each(|timing| self.merge(timing));
        Ok(())
    }
}
