//! From the command line and a workflow to the cases to run.

use crate::arguments::{BenchOptions, Launcher};
use crate::h5bench::{Pattern, PatternKind, Workflow};
use crate::table::{Align, Table};
use anyhow::{Context, Result, bail};
use hyperslab_core::units::display_size;
use hyperslab_core::workload::Workload;
use hyperslab_core::{Format, Stack, parse_stacks, units};
use hyperslab_run::Cache;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BUILT_IN: &str = include_str!("../../../../examples/quickstart.json");
const BUILT_IN_DIRECTORY: &str = "hyperslab-bench";

/// Everything that will be run.
pub struct Plan {
    /// Where data files lie.
    pub directory: PathBuf,
    /// What the user should know beforehand.
    pub notes: Vec<String>,
    /// The cases in order.
    pub cases: Vec<PlannedCase>,
}

/// One workload on one stack.
pub struct PlannedCase {
    /// Number, from 1.
    pub number: usize,
    /// Write or read.
    pub kind: PatternKind,
    /// The container, relative to the directory.
    pub file: String,
    /// What to do.
    pub workload: Workload,
    /// On what, in words.
    pub stack: Stack,
    /// On what.
    pub format: Arc<dyn Format>,
    /// Cold or warm.
    pub cache: Cache,
    /// Bytes of one repetition, all ranks.
    pub bytes: u64,
    /// Bytes of buffers, all ranks.
    pub memory: u64,
    /// What differs from what the workflow asks for.
    pub notes: Vec<String>,
}

impl PlannedCase {
    /// Whether it needs a file that is there already.
    pub fn reads_only(&self) -> bool {
        self.kind == PatternKind::Read
    }
}

impl Plan {
    /// Reads the workflow and combines it with the command line. Touches no data.
    pub fn new(options: &BenchOptions) -> Result<Self> {
        let Launcher::Threads = options.launcher;
        let (mut workflow, mut notes) = match &options.config {
            Some(path) => (read_workflow(path)?, Vec::new()),
            None => {
                let mut built_in = Workflow::parse(BUILT_IN).context("built-in workflow")?;
                built_in.directory = BUILT_IN_DIRECTORY.into();
                let note = format!("no workflow given: running a small built-in one in ./{BUILT_IN_DIRECTORY}");
                (built_in, vec![note])
            }
        };
        notes.append(&mut workflow.notes);
        let stacks = parse_stacks(options.stack.as_deref().or(options.format.as_deref()).unwrap_or("hdf5"))?;
        let ranks = options.ranks.map(|n| n as usize).or(workflow.ranks).unwrap_or(1);
        let caches: &[Cache] = match (options.warm, options.cold) {
            (true, true) => &[Cache::Warm, Cache::Cold],
            (false, true) => &[Cache::Cold],
            (_, false) => &[Cache::Warm],
        };
        let mut cases = Vec::new();
        let names = file_names(&stacks, &workflow.benchmarks)?;
        for (stack_number, stack) in stacks.iter().enumerate() {
            for &cache in caches {
                for pattern in &workflow.benchmarks {
                    let file = names[&(stack_number, pattern.particles.file.clone())].clone();
                    cases.push(plan_case(cases.len() + 1, pattern, stack, &file, cache, ranks)?);
                }
            }
        }
        let directory = options.directory.clone().unwrap_or(workflow.directory);
        Ok(Self { directory, notes, cases })
    }

    /// Refuses a run that the machine's memory or the file system cannot hold.
    pub fn check_room(&self) -> Result<()> {
        let memory = self.cases.iter().map(|c| c.memory).max().unwrap_or(0);
        if let Some(available) = hyperslab_run::memory_available()
            && memory > available
        {
            bail!(
                "the buffers of all ranks need {}, but only {} of memory are available; use smaller extents or fewer ranks",
                display_size(memory),
                display_size(available)
            );
        }
        // Files of one name replace each other; those of different names add up.
        let mut files: HashMap<&str, u64> = HashMap::new();
        for case in self.cases.iter().filter(|c| !c.reads_only() && c.format.caps().persistent) {
            let largest = files.entry(&case.file).or_default();
            *largest = (*largest).max(case.bytes);
        }
        let need: u64 = files.values().fold(0, |sum, bytes| sum.saturating_add(*bytes));
        let available = hyperslab_run::space_available(&self.directory)?;
        if need > available {
            bail!(
                "the files need {}, but {} has only {} left; use smaller extents, fewer formats or another directory",
                display_size(need),
                self.directory.display(),
                display_size(available)
            );
        }
        Ok(())
    }

    /// What would be done, for `--dry-run`.
    pub fn describe(&self) -> Result<String> {
        let mut table = Table::new(&[
            ("case", Align::Right),
            ("benchmark", Align::Left),
            ("file", Align::Left),
            ("stack", Align::Left),
            ("cache", Align::Left),
            ("ranks", Align::Right),
            ("data", Align::Right),
            ("buffers", Align::Right),
            ("what", Align::Left),
        ]);
        for case in &self.cases {
            table.row(vec![
                case.number.to_string(),
                case.kind.name().into(),
                case.file.clone(),
                case.stack.to_string(),
                case.cache.name().into(),
                case.workload.header.ranks.to_string(),
                display_size(case.bytes),
                display_size(case.memory),
                case.workload.header.about.clone(),
            ]);
        }
        let mut notes: Vec<String> = self.notes.clone();
        notes.extend(self.cases.iter().flat_map(|c| c.notes.clone()));
        notes.dedup();
        let notes: String = notes.iter().map(|n| format!("note: {n}\n")).collect();
        Ok(format!("{notes}Would run in {}:\n\n{}", self.directory.display(), table.render()))
    }
}

fn read_workflow(path: &Path) -> Result<Workflow> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    Workflow::parse(&text).with_context(|| path.display().to_string())
}

/// The file of each stack and workflow file. The format's own extension replaces another format's; stacks of the same
/// format get a number.
fn file_names(stacks: &[Stack], benchmarks: &[Pattern]) -> Result<HashMap<(usize, String), String>> {
    let mut names = HashMap::new();
    for (number, stack) in stacks.iter().enumerate() {
        let extension = hyperslab_run::resolve(stack)?.extension();
        let twins = stacks[..number].iter().filter(|s| s.format.name == stack.format.name).count();
        for pattern in benchmarks {
            let file = &pattern.particles.file;
            let (stem, given) = file.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((file, ""));
            let extension = if extension.is_empty() { given } else { extension };
            let suffix = if twins > 0 { format!("-{}", twins + 1) } else { String::new() };
            // A name in the format's usual form, or any name on HDF5 alone, is kept as it is.
            let keep = suffix.is_empty() && (given == extension || (stacks.len() == 1 && extension == "h5"));
            let name = if keep { file.clone() } else { format!("{stem}{suffix}.{extension}") };
            names.insert((number, file.clone()), name.trim_end_matches('.').to_owned());
        }
    }
    Ok(names)
}

fn plan_case(
    number: usize,
    pattern: &Pattern,
    stack: &Stack,
    file: &str,
    cache: Cache,
    ranks: usize,
) -> Result<PlannedCase> {
    let mut particles = pattern.particles.clone();
    particles.ranks = ranks;
    particles.file = file.to_owned();
    let mut stack = stack.clone();
    let mut notes = Vec::new();
    if let Some((length, threshold)) = pattern.alignment {
        align(&mut stack, length, threshold, &mut notes);
    }
    let format = hyperslab_run::resolve(&stack)?;
    let (workload, bytes) = match pattern.kind {
        PatternKind::Write => (particles.write()?, particles.total_bytes()?),
        PatternKind::Read => (particles.read(pattern.reading)?, particles.read_bytes(pattern.reading)?),
    };
    let memory = particles.buffer_bytes()?.saturating_mul(ranks as u64);
    Ok(PlannedCase {
        number,
        kind: pattern.kind,
        file: file.to_owned(),
        workload,
        stack,
        format,
        cache,
        bytes,
        memory,
        notes,
    })
}

/// Adds the workflow's alignment to the stack, where the format has such options and the user gave none.
fn align(stack: &mut Stack, length: u64, threshold: u64, notes: &mut Vec<String>) {
    let known = |option: &str| {
        let entry = hyperslab_formats::formats().iter().find(|entry| entry.name == stack.format.name);
        entry.is_some_and(|entry| entry.options.iter().any(|o| o.name == option))
    };
    if !known("align") {
        notes.push(format!("{} has no alignment: ALIGN has no effect on it", stack.format.name));
        return;
    }
    for (option, value) in [("align", length), ("align_threshold", threshold)] {
        if known(option) && stack.format.get(option).is_none() {
            stack.format.options.push((option.into(), units::exact_size(value)));
        }
    }
}
