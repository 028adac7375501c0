//! What `predict` and `advise` look at: a workload or a workflow, read as `bench` would.

use super::compressibility::Compressibility;
use super::measured::spread;
use super::predicted::Predicted;
use super::{memcpy_probe, profile_path};
use anyhow::{Context, Result, bail};
use hyperslab_bench::{self as bench, BenchOptions, Launcher, Transfers};
use hyperslab_core::workload::Workload;
use hyperslab_core::{CacheState, Stack, dims};
use hyperslab_model::{Conditions, Costs, Prediction, Profile, RankKind, count, predict};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The input, and what it is predicted with.
#[derive(Debug, Clone, clap::Args)]
pub struct Input {
    /// A workload (docs/workload-format.md, or recorded by the layer trace) in a file *.jsonl, an h5bench workflow, or the name
    /// of an application kernel (hyperslab bench --list)
    #[arg(value_name = "WORKLOAD|CONFIG|KERNEL")]
    pub input: PathBuf,
    /// Keys of the kernel, or more workloads of the same program
    #[arg(value_name = "KEY=VALUE|WORKLOAD")]
    pub keys: Vec<String>,
    /// Number of ranks [default: what the workflow or workload says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub ranks: Option<u32>,
    /// Whether ranks make reads and writes together [default: as the input says]
    #[arg(long, value_enum, value_name = "HOW")]
    pub transfers: Option<Transfers>,
    /// What ranks are
    #[arg(long, value_enum, default_value = "auto")]
    pub launcher: Launcher,
    /// The profile to predict with [default: that of this machine]
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Use the profile though it is of another machine
    #[arg(long)]
    pub foreign: bool,
    /// Files are not in memory before, and flushes wait for the device
    #[arg(long)]
    pub cold: bool,
    /// How many times smaller codecs make the data [default: found by coding values as the workload makes them]
    #[arg(long, value_name = "TIMES", value_parser = ratio)]
    pub ratio: Option<f64>,
    /// The directory whose file system is meant, and where files of real runs are put
    #[arg(long, value_name = "DIR", default_value = "hyperslab-predict")]
    pub dir: PathBuf,
}

/// What may differ from what the input says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SearchSpace {
    /// Layers are those of the stacks, not the workflow's.
    pub own_layers: bool,
    /// Transfers become collective below the layer that exchanges them.
    pub exchanges: bool,
}

impl Input {
    /// The profile; refused if it is of another machine, and with a note if this one is not as fast as it was.
    pub fn profile(&self) -> Result<Profile> {
        let path = self.profile.clone().map_or_else(profile_path::usual, Ok)?;
        let near = self.dir.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
        let profile = profile_path::load(&path, near, self.foreign)?;
        if !self.foreign
            && let Some(difference) = memcpy_probe::difference(&profile)
        {
            eprintln!("note: {difference}");
        }
        Ok(profile)
    }

    /// What runs of a plan would find.
    pub fn conditions(&self, plan: &bench::Plan, profile: &Profile) -> Conditions {
        let too_large = too_large_for_memory(plan, profile);
        let warmth = if self.cold || too_large { CacheState::Cold } else { CacheState::Warm };
        let ranks = if plan.launch.one_process() { RankKind::Threads } else { RankKind::Processes };
        Conditions { warmth, ranks }
    }

    /// The same input as `bench` would take it.
    pub fn bench_options(&self, stacks: &str) -> BenchOptions {
        let asked = BenchOptions {
            stack: Some(stacks.to_owned()),
            launcher: self.launcher,
            directory: Some(self.dir.clone()),
            out: Some(self.dir.join("measured")),
            overwrite: true,
            repeat: Some(3),
            cold: self.cold,
            transfers: self.transfers,
            rank_list: self.ranks.map(|ranks| ranks.to_string()),
            ..BenchOptions::default()
        };
        if self.input.extension().is_some_and(|extension| extension == "jsonl") {
            let workload = std::iter::once(self.input.clone()).chain(self.keys.iter().map(PathBuf::from)).collect();
            return BenchOptions { workload, ..asked };
        }
        BenchOptions { config: Some(self.input.clone()), keys: self.keys.clone(), ..asked }
    }

    /// A new folder for files of real runs, so that nothing older is measured; gone when it is dropped.
    pub fn fresh_folder(&self) -> Result<TempDir> {
        std::fs::create_dir_all(&self.dir).with_context(|| format!("create directory {}", self.dir.display()))?;
        spread(&self.dir);
        TempDir::with_prefix_in("files-", &self.dir).context("make a directory for real runs")
    }

    /// What `bench` would run on these stacks.
    pub fn plan(&self, stacks: &[String], freedom: SearchSpace) -> Result<bench::Plan> {
        bench::Plan::new(&self.free_options(stacks, freedom), None)
    }

    /// The same input as `bench` would take it, with what may differ from what it says.
    pub fn free_options(&self, stacks: &[String], freedom: SearchSpace) -> BenchOptions {
        let mut options = self.bench_options(&stacks.join(","));
        options.own_layers = freedom.own_layers;
        if freedom.exchanges {
            options.transfers = Some(Transfers::CollectiveToExchange);
        }
        options
    }

    /// Every case on every stack, predicted; those that cannot run are left out.
    pub fn predicted(&self, stacks: &str, profile: &Profile) -> Result<Vec<Predicted>> {
        let plan = self.plan(&[stacks.to_owned()], SearchSpace::default())?;
        let conditions = self.conditions(&plan, profile);
        let mut data = Compressibility::new(self.ratio);
        let mut found = Vec::new();
        for case in &plan.cases {
            let work = match &case.work {
                Ok(work) => work,
                Err(reason) => {
                    eprintln!("note: {} on {} is left out: {reason}", case.benchmark, case.stack);
                    continue;
                }
            };
            check_ranks(work.workload.header.ranks, profile)?;
            let (costs, prediction) = prediction(&work.workload, &case.stack, profile, conditions, &mut data)?;
            let (benchmark, stack) = (case.benchmark.clone(), case.stack.to_string());
            found.push(Predicted { number: case.number, benchmark, stack, costs, prediction });
        }
        Ok(found)
    }
}

fn prediction(
    workload: &Workload,
    stack: &Stack,
    profile: &Profile,
    conditions: Conditions,
    data: &mut Compressibility,
) -> Result<(Costs, Prediction)> {
    let configuration = hyperslab::configuration(stack)?.stored(data.shares(workload, stack));
    let costs = count(workload, &configuration).with_context(|| stack.to_string())?;
    let prediction = predict(&costs, configuration.class(), profile, conditions)?;
    Ok((costs, prediction))
}

/// Seconds that each case of a plan takes once, computing included, by the profile of this machine: `None` where that is not
/// known.
pub fn estimate(plan: &bench::Plan) -> Vec<Option<f64>> {
    let near = plan.directory.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("."));
    let profile = profile_path::usual().and_then(|path| profile_path::load(&path, near, false)).ok();
    let mut data = Compressibility::new(None);
    let seconds = |case: &bench::PlannedCase| {
        let (profile, work) = (profile.as_ref()?, case.work.as_ref().ok()?);
        let ranks = if case.launch.one_process() { RankKind::Threads } else { RankKind::Processes };
        let conditions = Conditions { warmth: case.cache, ranks };
        let (costs, found) = prediction(&work.workload, &case.stack, profile, conditions, &mut data).ok()?;
        let seconds = found.seconds + costs.compute.as_secs_f64();
        (seconds.is_finite() && seconds > 0.0).then_some(seconds)
    };
    plan.cases.iter().map(seconds).collect()
}

fn ratio(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|ratio| ratio.is_finite() && *ratio > 0.0);
    number.ok_or_else(|| "a number above 0, such as 3".into())
}

/// Of memory at most this part holds files.
const FILES_IN_MEMORY: f64 = 0.7;
/// No machine has less memory: what profiles say below that is not known.
pub const LEAST_MEMORY: u64 = 64 << 20;
/// Ranks that share a processor in what `train` measures.
const MOST_ON_A_PROCESSOR: usize = 2;

/// Whether a file of the plan is larger than what memory holds of files, so that it is not warm whoever says so. Said
/// if it is, and nothing is known of files that are not.
fn too_large_for_memory(plan: &bench::Plan, profile: &Profile) -> bool {
    let size = |work: &Workload| {
        let arrays = work.header.arrays.iter();
        arrays
            .map(|array| dims::byte_count(&array.spec.shape, array.spec.dtype.size()).unwrap_or(u64::MAX))
            .fold(0, u64::saturating_add)
    };
    let largest = plan.cases.iter().filter_map(|case| case.work.as_ref().ok()).map(|work| size(&work.workload)).max();
    let stated = profile.machine.memory >= LEAST_MEMORY;
    let large = stated && largest.unwrap_or(0) as f64 > FILES_IN_MEMORY * profile.machine.memory as f64;
    let known = profile.fits.keys().any(|(_, warmth)| *warmth == CacheState::Cold);
    if large {
        eprintln!(
            "note: the data are larger than what memory holds of files, so they are {}",
            if known {
                "taken to be on the device"
            } else {
                "slower than predicted: the profile knows only files in memory"
            }
        );
    }
    large && known
}

/// Refuses more ranks than this machine can be asked about.
pub fn check_ranks(ranks: usize, profile: &Profile) -> Result<()> {
    let most = MOST_ON_A_PROCESSOR * profile.machine.processors.max(1);
    if ranks > most {
        bail!(
            "{ranks} ranks are more than the {} processors of this machine can be asked about\n  try: at most --ranks \
             {most}, or hyperslab simulate, which is about machines of many nodes",
            profile.machine.processors
        );
    }
    Ok(())
}

/// Where real runs leave their results.
pub fn results_file(directory: &Path) -> PathBuf {
    directory.join("measured/results.json")
}
