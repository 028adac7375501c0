//! From the command line and a workflow to the cases to run.

use super::case_template::{CaseReport, CaseTemplate, Effect, FileState, drafts};
use super::kernels::Named;
use super::launch::Launch;
use super::replay::Replay;
use super::run_directory;
use super::sweep::{ParameterSweep, SweepPoint};
use crate::mpi_job::InsideJob;
use crate::options::BenchOptions;
use anyhow::{Context, Result, bail};
use hyperslab_core::units::display_size;
use hyperslab_core::workload::{InputArray, Workload};
use hyperslab_core::{CacheState, ErrorKind, Format, Stack, parse_stacks};
use hyperslab_h5bench::{Striping, Workflow, with_values};
use hyperslab_report::table::{Align, Table};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BUILT_IN: &str = include_str!("../../../examples/quickstart.json");
const BUILT_IN_DIRECTORY: &str = "hyperslab-bench";

/// Everything that will be run.
pub struct Plan {
    /// Where data files lie.
    pub directory: PathBuf,
    /// How files are to be striped.
    pub striping: Option<Striping>,
    /// What the user should know beforehand.
    pub notes: Vec<String>,
    /// What the ranks are; at the first point of a sweep.
    pub launch: Arc<Launch>,
    /// The cases in order, point by point.
    pub cases: Vec<PlannedCase>,
    /// How far each point of a sweep lies from the ends and middles of its axes.
    pub levels: Vec<(u32, u32)>,
}

/// One workload on one stack.
pub struct PlannedCase {
    /// Number, from 1.
    pub number: usize,
    /// Kind of benchmark.
    pub benchmark: String,
    /// The container, relative to the directory.
    pub file: String,
    /// On what, in words.
    pub stack: Stack,
    /// Cold or warm.
    pub cache: CacheState,
    /// Number of ranks.
    pub ranks: usize,
    /// What they are.
    pub launch: Arc<Launch>,
    /// Which point of a sweep it belongs to, from 0.
    pub point: usize,
    /// What a sweep varies, with the values of this case.
    pub axes: BTreeMap<String, Value>,
    /// How often it is run.
    pub repeat: u32,
    /// Unmeasured runs before.
    pub warm_up: u32,
    /// Whether data are compared.
    pub verify: bool,
    /// What it does, in words.
    pub about: String,
    /// Bytes of one repetition, all ranks.
    pub bytes: u64,
    /// What it does to its file.
    pub effect: Effect,
    /// What differs from what the workflow asks for.
    pub notes: Vec<String>,
    /// What is written in h5bench's forms afterwards.
    pub report: CaseReport,
    /// What to run, or why it is skipped.
    pub work: Result<Work, String>,
}

/// What a case runs.
pub struct Work {
    /// What to do.
    pub workload: Workload,
    /// On what.
    pub format: Arc<dyn Format>,
    /// Bytes of buffers, all ranks.
    pub memory: u64,
    /// Bytes that its files need.
    pub room: u64,
    /// Arrays that must be there before.
    pub inputs: Vec<InputArray>,
}

impl Plan {
    /// Reads the workflow and combines it with the command line, at every point of a sweep. Touches no data.
    pub fn new(options: &BenchOptions, inside: Option<&InsideJob>) -> Result<Self> {
        let sweep = ParameterSweep::asked(options)?;
        let mut plan: Option<Self> = None;
        for point in sweep.points()? {
            let Some(at) = sweep.options(options, &point)? else { continue };
            let said =
                || sweep.values(&point).iter().map(|(name, value)| format!("{name}={value} ")).collect::<String>();
            let one = Self::at(&at, inside);
            let one = if sweep.is_empty() { one? } else { one.with_context(|| said().trim_end().to_owned())? };
            plan.get_or_insert_with(|| one.without_cases()).add(one, &sweep, &point);
        }
        plan.context("no stack is left to run on")
    }

    fn without_cases(&self) -> Self {
        Self {
            directory: self.directory.clone(),
            striping: self.striping.clone(),
            notes: Vec::new(),
            launch: self.launch.clone(),
            cases: Vec::new(),
            levels: Vec::new(),
        }
    }

    /// Adds what runs at a point.
    fn add(&mut self, one: Self, sweep: &ParameterSweep, point: &SweepPoint) {
        for mut case in one.cases {
            case.number = self.cases.len() + 1;
            case.point = self.levels.len();
            case.axes = sweep.kept(point, &case.stack);
            self.cases.push(case);
        }
        self.levels.push(point.level);
        let new: Vec<String> = one.notes.into_iter().filter(|note| !self.notes.contains(note)).collect();
        self.notes.extend(new);
    }

    /// Number of points of the sweep; 1 without any.
    pub fn points(&self) -> usize {
        self.levels.len()
    }

    /// What runs with these options.
    fn at(options: &BenchOptions, inside: Option<&InsideJob>) -> Result<Self> {
        let mut replays = Vec::new();
        let named = Named::asked(options)?;
        let (mut workflow, mut notes) = match &options.config {
            _ if let Some(named) = &named => (named.workflow(), Vec::new()),
            None if !options.workload.is_empty() => {
                let mut notes = Vec::new();
                replays = Replay::all(options, inside, &mut notes)?;
                (Replay::workflow(&replays), notes)
            }
            Some(path) => (read_workflow(path, &options.workflow_values)?, Vec::new()),
            None => {
                let mut built_in = Workflow::parse(BUILT_IN).context("built-in workflow")?;
                built_in.directory = BUILT_IN_DIRECTORY.into();
                let note = format!("no workflow given: running a small built-in one in ./{BUILT_IN_DIRECTORY}");
                (built_in, vec![note])
            }
        };
        notes.append(&mut workflow.notes);
        if let Some(list) = &options.filter {
            workflow.filter(list)?;
        }
        if options.prefix.is_some() {
            notes.push("--prefix is not used: no other programs are started".into());
        }
        let stacks = parse_stacks(options.stacks_text())?;
        let (launch, ranks) = Launch::choose(options, &workflow, inside, &mut notes)?;
        let launch = Arc::new(launch);
        let phases = named.map(|named| named.phases(ranks)).transpose()?;
        let caches: &[CacheState] = match (options.warm, options.cold) {
            (true, true) => &[CacheState::Warm, CacheState::Cold],
            (false, true) => &[CacheState::Cold],
            (_, false) => &[CacheState::Warm],
        };
        let directory = options.directory.clone().unwrap_or_else(|| workflow.directory.clone());
        let mut cases = Vec::new();
        for (stack_number, stack) in stacks.iter().enumerate() {
            let extension = hyperslab_run::open_stack(stack)?.extension();
            let twins = stacks[..stack_number].iter().filter(|s| s.format.name == stack.format.name).count();
            let name = |file: &str| file_name(file, extension, twins, stacks.len());
            let mut files: HashMap<String, FileState> = HashMap::new();
            for &cache in caches {
                for benchmark in &workflow.benchmarks {
                    for draft in drafts(benchmark, ranks, &directory, &name, &mut files, &mut notes)? {
                        run_directory::check(&draft.report).with_context(|| benchmark.place.clone())?;
                        cases.push(plan_case(cases.len() + 1, draft, stack, cache, ranks, &launch, options)?);
                    }
                }
                for (draft, revisits) in phases.as_ref().map_or(Ok(Vec::new()), |phases| phases.drafts(&name))? {
                    let cache = if revisits { CacheState::Warm } else { cache };
                    cases.push(plan_case(cases.len() + 1, draft, stack, cache, ranks, &launch, options)?);
                }
                for replay in &replays {
                    // A recording's file may have been of another format, so its name is never kept for that.
                    let draft = replay.draft(&|file| file_name(file, extension, twins, stacks.len().max(2)))?;
                    cases.push(plan_case(cases.len() + 1, draft, stack, cache, ranks, &launch, options)?);
                }
            }
        }
        notes.dedup();
        Ok(Self { directory, striping: workflow.striping, notes, launch, cases, levels: Vec::new() })
    }

    /// Refuses a run that the machine's memory or the file system cannot hold.
    pub fn check_room(&self) -> Result<()> {
        let works = || self.cases.iter().filter_map(|case| case.work.as_ref().ok().map(|work| (case, work)));
        let memory = works().map(|(_, work)| work.memory).max().unwrap_or(0);
        // Processes may be on other machines.
        if let Some(available) = hyperslab_run::memory_available().filter(|_| self.launch.one_process())
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
        for (case, work) in works().filter(|(_, work)| work.format.caps().data.persistent) {
            let size = files.entry(&case.file).or_default();
            match case.effect {
                Effect::Creates => *size = (*size).max(work.room),
                Effect::Extends => *size = size.saturating_add(work.room),
                Effect::Reads | Effect::Overwrites if work.inputs.is_empty() => {}
                Effect::Reads | Effect::Overwrites => *size = (*size).max(work.room),
            }
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
            let (memory, about) = match &case.work {
                Ok(work) => (display_size(work.memory), case.about.clone()),
                Err(reason) => ("-".into(), format!("skipped: {reason}")),
            };
            table.row(vec![
                case.number.to_string(),
                case.benchmark.clone(),
                case.file.clone(),
                case.stack.to_string(),
                case.cache.name().into(),
                case.ranks.to_string(),
                display_size(case.bytes),
                memory,
                about,
            ]);
        }
        let mut notes: Vec<String> = self.notes.clone();
        notes.extend(self.cases.iter().flat_map(|c| c.notes.clone()));
        notes.dedup();
        let notes: String = notes.iter().map(|n| format!("note: {n}\n")).collect();
        let command = self.launch.command().map_or(String::new(), |command| format!(" with {command}"));
        Ok(format!("{notes}Would run in {}{command}:\n\n{}", self.directory.display(), table.render()))
    }
}

fn read_workflow(path: &Path, values: &[(String, String)]) -> Result<Workflow> {
    let mut text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    if !values.is_empty() {
        text = with_values(&text, values)?;
    }
    Workflow::parse(&text).with_context(|| path.display().to_string())
}

/// The name of a workflow's file on one of `stacks` stacks. The format's own extension replaces another format's; a
/// stack with `twins` of the same format before it gets a number.
fn file_name(file: &str, extension: &str, twins: usize, stacks: usize) -> String {
    let (stem, given) = file.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((file, ""));
    let extension = if extension.is_empty() { given } else { extension };
    let suffix = if twins > 0 { format!("-{}", twins + 1) } else { String::new() };
    // A name in the format's usual form, or any name on HDF5 alone, is kept as it is.
    let keep = suffix.is_empty() && (given == extension || (stacks == 1 && extension == "h5"));
    let name = if keep { file.to_owned() } else { format!("{stem}{suffix}.{extension}") };
    name.trim_end_matches('.').to_owned()
}

fn plan_case(
    number: usize,
    mut draft: CaseTemplate,
    stack: &Stack,
    cache: CacheState,
    ranks: usize,
    launch: &Arc<Launch>,
    options: &BenchOptions,
) -> Result<PlannedCase> {
    let mut stack = stack.clone();
    let mut notes = Vec::new();
    let mut denied = None;
    for wish in &draft.wishes {
        if let Err(reason) = wish.apply(&mut stack, !launch.one_process(), &mut notes) {
            denied = Some(reason);
        }
    }
    let layer = draft.layer.clone().filter(|_| !options.own_layers);
    if let Some(layer) = layer.filter(|layer| stack.layers.iter().all(|own| own.name != layer.name)) {
        stack.layers.insert(0, layer);
    }
    let transfer = options.transfers.and_then(|transfers| Some((transfers.on(&stack)?, transfers.word())));
    if let (Some((transfer, word)), Ok(work)) = (transfer, &mut draft.work) {
        work.workload = work.workload.with_transfers(transfer);
        work.workload.header.about.push_str(&format!(", all transfers {word}"));
        draft.report = draft.report.with_transfers(transfer);
    }
    let (about, bytes) = match &draft.work {
        Ok(work) => (work.workload.header.about.clone(), work.bytes),
        Err(_) => (String::new(), 0),
    };
    let resolved = hyperslab_run::open_stack(&stack);
    draft.work = match (draft.work, &resolved) {
        (Ok(work), Ok(format)) => Ok(work.fitted_to(&format.caps())?),
        (work, _) => work,
    };
    let work = match (denied.map_or(draft.work, Err), resolved) {
        (Err(reason), _) => Err(reason),
        // The user's own stack was resolved before, so what is missing is the layer that MODE asks for.
        (Ok(_), Err(error)) if draft.layer.is_some() && error.kind() == ErrorKind::Unsupported => {
            Err(format!("{} is not available in this build", draft.layer_reason))
        }
        (Ok(_), Err(error)) if draft.wishes.iter().any(|w| w.vital) && error.kind() == ErrorKind::Unsupported => {
            Err(error.to_string())
        }
        (Ok(_), Err(error)) => return Err(error.into()),
        (Ok(work), Ok(format)) => match work.lacking(&format.caps()) {
            Some(what) => Err(format!("{} has no {what}", stack.format.name)),
            None if ranks > 1
                && !launch.one_process()
                && !format.caps().execution.many_processes
                && work.shares_files() =>
            {
                Err(format!(
                    "{} in this build works within one process: use a build with its parallel library, a file per rank, or \
                     --launcher threads",
                    stack.format.name
                ))
            }
            None if matches!(**launch, Launch::Processes(_))
                && !format.caps().data.persistent
                && draft.effect != Effect::Creates =>
            {
                Err(format!("{} keeps nothing when its processes end: use --launcher threads", stack.format.name))
            }
            None => {
                Ok(Work { workload: work.workload, format, memory: work.memory, room: work.room, inputs: work.inputs })
            }
        },
    };
    let repeat = options.repeat.unwrap_or(draft.repeat);
    // The first write into fresh pages is slower than the next; a cold run has no such state to reach.
    let usual_warm_up = u32::from(repeat > 1 && cache == CacheState::Warm);
    Ok(PlannedCase {
        number,
        benchmark: draft.label,
        file: draft.file,
        stack,
        cache,
        ranks,
        launch: launch.clone(),
        point: 0,
        axes: BTreeMap::new(),
        repeat,
        warm_up: options.warm_up.unwrap_or(usual_warm_up),
        verify: options.verify || draft.verify,
        about,
        bytes,
        effect: draft.effect,
        notes,
        report: draft.report,
        work,
    })
}
