//! Recovering a trace from the spools of an incomplete run.
//!
//! Ranks stop at different steps: each is used up to the last collective step that all recorded, and its independent steps
//! after that. Then everything that is open is closed.

use super::merge::{Output, header};
use super::names::{open_plain, part_of};
use super::rank_spool::{Declares, SpoolHeader, declares, next_line, read_begin};
use hyperslab_core::workload::{Step, write_step};
use hyperslab_core::{ArraySpec, Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// The spools of a trace that was not merged.
#[derive(Debug)]
pub struct TraceParts {
    trace: PathBuf,
    begin: SpoolHeader,
}

/// The spools left by a run that was to write `trace`; `None` if there are none.
pub fn trace_parts(trace: &Path) -> Option<TraceParts> {
    let file = open_plain(&part_of(trace, 0), OFlags::RDONLY).ok()?;
    let begin = read_begin(&mut BufReader::new(file))?;
    Some(TraceParts { trace: trace.into(), begin })
}

/// A step line of a spool.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "rank")]
    _rank: usize,
    #[serde(default)]
    took: Option<u64>,
    #[serde(flatten)]
    step: Step,
}

impl TraceParts {
    /// Merges the spools into the trace and removes them. Fails while the run is active.
    pub fn merge(&self) -> Result<()> {
        let ranks = self.begin.ranks;
        let mut common = u64::MAX;
        let mut total = Found::default();
        for rank in 0..ranks {
            let mut found = Found::default();
            self.walk(rank, &mut found, &mut |_, _| Ok(true))?;
            common = common.min(found.collective);
            if rank == 0 {
                total = found;
            }
        }
        if common == 0 {
            return Err(Error::invalid(
                "put trace together",
                "the run ended before anything was recorded on all ranks",
            )
            .target(self.trace.display()));
        }
        // A first pass counts the steps, which the header has.
        let mut steps = 0;
        for rank in 0..ranks {
            self.upto(rank, common, &mut |_, _| {
                steps += 1;
                Ok(())
            })?;
        }
        let mut header = header(&self.begin, &total.specs, None, total.extended, None);
        if let Some(recorded) = &mut header.recorded {
            recorded.steps = steps;
        }
        let mut output = Output::create(&self.trace, &header)?;
        for rank in 0..ranks {
            let mut line = Vec::new();
            self.upto(rank, common, &mut |step, took| {
                line.clear();
                write_step(Some(rank), took, step, &mut line)?;
                output.append(&line)
            })?;
        }
        output.finish(&self.trace)?;
        for rank in 0..ranks {
            // Best effort: a spool that stays is replaced by a later run.
            let _ = std::fs::remove_file(part_of(&self.trace, rank));
        }
        Ok(())
    }

    /// Visits the steps of `rank` up to the last common collective step, and those that close what is open.
    fn upto(&self, rank: usize, common: u64, visit: &mut dyn FnMut(&Step, Option<u64>) -> Result<()>) -> Result<()> {
        let mut found = Found::default();
        let mut together = 0;
        self.walk(rank, &mut found, &mut |step, took| {
            together += u64::from(step.is_collective());
            if together > common {
                return Ok(false);
            }
            visit(step, took).map(|()| true)
        })?;
        found.open.iter().try_for_each(|&slot| visit(&Step::CloseArray { slot }, None))?;
        if found.file_open { visit(&Step::CloseFile { file: 0 }, None) } else { Ok(()) }
    }

    /// Reads the spool of `rank` to its end, to an unreadable line, or until `visit` returns false.
    fn walk(
        &self,
        rank: usize,
        found: &mut Found,
        visit: &mut dyn FnMut(&Step, Option<u64>) -> Result<bool>,
    ) -> Result<()> {
        let path = part_of(&self.trace, rank);
        let mut lines = BufReader::new(open(&path)?);
        let expected = SpoolHeader { rank, ..self.begin.clone() };
        if read_begin(&mut lines).as_ref() != Some(&expected) {
            return Err(Error::new(ErrorKind::Corrupt, "put trace together", "it is a part of another trace")
                .target(path.display()));
        }
        while let Some(line) = next_line(&mut lines).map_err(|e| Error::io("read trace", e).target(path.display()))? {
            if declares(&line) {
                let Ok(kind) = serde_json::from_slice::<Declares>(&line) else { return Ok(()) };
                found.specs.push(kind.array);
                continue;
            }
            let Ok(line) = serde_json::from_slice::<Line>(&line) else { return Ok(()) };
            if !visit(&line.step, line.took)? {
                return Ok(());
            }
            found.note(&line.step);
        }
        Ok(())
    }
}

fn open(path: &Path) -> Result<File> {
    let failed = |e| {
        Error::io("read trace", e).target(path.display()).hint("the parts of all ranks are needed, in one directory")
    };
    let file = open_plain(path, OFlags::RDONLY).map_err(failed)?;
    flock(&file, FlockOperation::NonBlockingLockShared).map_err(|_| {
        Error::invalid("read trace", "it is being recorded now").target(path.display()).hint("wait for the run to end")
    })?;
    Ok(file)
}

/// Totals of the steps so far.
#[derive(Default)]
struct Found {
    specs: Vec<ArraySpec>,
    collective: u64,
    open: BTreeSet<u32>,
    there_before: BTreeSet<u32>,
    file_open: bool,
    extended: bool,
}

impl Found {
    fn note(&mut self, step: &Step) {
        self.collective += u64::from(step.is_collective());
        match step {
            Step::OpenFile { .. } => self.file_open = true,
            Step::CloseFile { .. } => self.file_open = false,
            Step::Create { slot, .. } => {
                self.open.insert(*slot);
            }
            Step::Open { slot, .. } => {
                self.open.insert(*slot);
                self.there_before.insert(*slot);
            }
            Step::Resize { slot, .. } => self.extended |= self.there_before.contains(slot),
            Step::CloseArray { slot } => {
                self.open.remove(slot);
                self.there_before.remove(slot);
            }
            _ => {}
        }
    }
}
