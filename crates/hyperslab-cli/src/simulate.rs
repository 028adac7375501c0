//! `hyperslab simulate`: a workload on a described system, with intervals and what limits it.

pub mod advice;
mod calibration;
mod chosen_system;
mod claims;
mod inputs;
mod outcome;
mod reproduction;
mod reproduction_page;
mod sweep;
mod tables;
mod timeline;

use anyhow::{Context, Result, bail};
use clap::Args;
use hyperslab_bench::Transfers;
use hyperslab_core::{Stack, parse_stacks, units};
use hyperslab_sim::{
    Intervals, LayerEffects, RunLimits, RunPlacement, Simulated, System, Walked, intervals, limits, simulate, template,
    walk,
};
use inputs::SimulatedCase;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab simulate vpic --system cori --ranks 1024
  hyperslab simulate workflow.json --system perlmutter --ranks 4096
  hyperslab simulate ior --system lustre-2014 --ranks 10 -- -b 20g -t 1m -c
      IOR by its flags
  hyperslab simulate flash --system summit --ranks 768 \\
      --compare 'hdf5,hdf5(align=16MiB),twophase/hdf5,log/hdf5'
  hyperslab simulate vpic --system cori --sweep ranks=64,256,1024,4096
  hyperslab simulate --list
      the systems that are described
  hyperslab simulate --template > mine.json
      a description to fill in (docs/system-format.md)
  hyperslab simulate --print-job slurm --ranks 16 > calibrate.sh
  hyperslab simulate --calibrate results/*.json --system mine.json \\
      --stripe-count 16 --output calibrated.json
      runs that tell how fast a system is, and its description from them
  hyperslab simulate --reproduce --page reproduced.html
      published tables and claims beside simulated ones

Nothing is run. docs/simulator.md says how good this is, and where it is not.

Exit codes: 0 done, 2 bad input.";

/// Options of `simulate`.
#[derive(Debug, Clone, Args)]
pub struct SimulateOptions {
    /// A workload file *.jsonl, an h5bench workflow, an application kernel (hyperslab bench --list), or ior
    #[arg(value_name = "WORKLOAD|CONFIG|KERNEL|ior")]
    pub input: Option<PathBuf>,
    /// Keys of the kernel, or after -- flags of ior
    #[arg(value_name = "KEY=VALUE|FLAGS")]
    pub keys: Vec<String>,
    /// A system by its name (--list), laptop for this machine, or a file that describes one
    #[arg(long, value_name = "NAME|FILE", default_value = "lustre-2014")]
    pub system: String,
    /// Number of ranks [default: what the workflow, workload or kernel says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub ranks: Option<u32>,
    /// Ranks of a node [default: the system's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub ranks_per_node: Option<u32>,
    /// The stack, such as 'hdf5(align=1MiB)' [default: hdf5]
    #[arg(long, value_name = "STACK")]
    pub stack: Option<String>,
    /// Compare these stacks
    #[arg(long, value_name = "STACKS", conflicts_with = "stack")]
    pub compare: Option<String>,
    /// Targets that a file is spread over [default: the system's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub stripe_count: Option<u32>,
    /// Bytes of a stripe [default: the system's]
    #[arg(long, value_name = "SIZE")]
    pub stripe_size: Option<String>,
    /// Files lie on the system's burst buffer
    #[arg(long)]
    pub burst_buffer: bool,
    /// Whether ranks make reads and writes together [default: as the input says]
    #[arg(long, value_enum, value_name = "HOW")]
    pub transfers: Option<Transfers>,
    /// Repeat for several values of ranks, ranks-per-node, stripe-count or stripe-size
    #[arg(long, value_name = "WHAT=A,B,...")]
    pub sweep: Option<String>,
    /// Draw what happens when, as SVG
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// List the systems
    #[arg(long)]
    pub list: bool,
    /// Print a description to fill in, or the one of --system
    #[arg(long)]
    pub template: bool,
    /// Set published tables and claims beside simulated ones: tables, claims, a table such as A.4, or one of the works cited [default: all]
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "all")]
    pub reproduce: Option<String>,
    /// Fit the system to runs that were measured on it: output of IOR (text or JSON), results of bench, CSV of h5bench
    #[arg(long, value_name = "RUNS", num_args = 1.., conflicts_with = "reproduce")]
    pub calibrate: Vec<PathBuf>,
    /// Print a job script of the runs that --calibrate needs, for --ranks clients [default: 10]
    #[arg(long, value_enum, value_name = "FOR")]
    pub print_job: Option<calibration::JobKind>,
    /// With --calibrate: write the description of the calibrated system
    #[arg(short, long, value_name = "FILE", requires = "calibrate")]
    pub output: Option<PathBuf>,
    /// Replace a description that is there
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// With --reproduce: write a page
    #[arg(long, value_name = "FILE", requires = "reproduce")]
    pub page: Option<PathBuf>,
}

/// A case that was simulated.
pub struct SimulatedOutcome {
    /// What it was.
    pub label: String,
    /// On what.
    pub stack: Stack,
    /// Where.
    pub run: RunPlacement,
    /// What was walked.
    pub walked: Walked,
    /// What it takes.
    pub simulated: Simulated,
    /// How sure that is.
    pub intervals: Intervals,
    /// What limits it.
    pub limits: RunLimits,
}

/// Simulates, or prints what was asked for.
pub fn run(options: &SimulateOptions) -> Result<ExitCode> {
    if options.list {
        print!("{}", chosen_system::list()?);
        return Ok(ExitCode::SUCCESS);
    }
    if options.template {
        let named = options.system != "lustre-2014";
        let system = if named { chosen_system::load(&options.system)? } else { template()? };
        print!("{}", system.to_json());
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &options.reproduce {
        return reproduction::run(name, options);
    }
    if let Some(kind) = options.print_job {
        return calibration::print_job(kind, options);
    }
    if !options.calibrate.is_empty() {
        return calibration::run(options);
    }
    let Some(input) = &options.input else {
        bail!(
            "what is to be simulated is not said\n  try: a kernel, a workflow, a workload file or ior; --help has examples"
        );
    };
    let system = chosen_system::of(options)?;
    if let Some(sweep) = &options.sweep {
        return sweep::run(options, &system, sweep);
    }
    let outcomes = all(options, input, &system)?;
    if let Some(path) = &options.timeline {
        let svg = timeline::draw(&outcomes);
        std::fs::write(path, svg).with_context(|| format!("write {}", path.display()))?;
    }
    match options.json {
        true => println!("{}", outcome::json(&outcomes, &system)?),
        false => print!("{}", outcome::words(&outcomes, &system)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Every case on every stack.
fn all(options: &SimulateOptions, input: &std::path::Path, system: &System) -> Result<Vec<SimulatedOutcome>> {
    let stacks = options.compare.as_deref().or(options.stack.as_deref()).unwrap_or("hdf5");
    let run = placement(options, system)?;
    let mut outcomes = Vec::new();
    for stack in parse_stacks(stacks)? {
        for case in inputs::cases(options, input, &stack)? {
            outcomes.push(one(case, system, &run)?);
        }
    }
    if outcomes.is_empty() {
        bail!("there is nothing to simulate");
    }
    Ok(outcomes)
}

/// A case whose time was worked out.
pub struct TimedCase {
    /// Where.
    pub run: RunPlacement,
    /// What was walked.
    pub walked: Walked,
    /// What layers do.
    pub layers: LayerEffects,
    /// What it takes.
    pub simulated: Simulated,
}

/// Works out the time of a case.
pub fn timed(case: &SimulatedCase, system: &System, run: &RunPlacement) -> Result<TimedCase> {
    let SimulatedCase { label, workload, stack } = case;
    let place = || format!("{label} on {stack}");
    let layers = LayerEffects::of(stack).with_context(place)?;
    let run = striped(run, stack, system).with_context(place)?;
    let walked = walk(workload, stack, system, &run).with_context(place)?;
    let capacity = system.nodes.count.value as usize;
    if walked.nodes > capacity {
        bail!(
            "{} ranks, {} of a node, need {} nodes; {} has {capacity}\n  try: fewer --ranks, or more --ranks-per-node",
            walked.ranks,
            run.ranks_per_node,
            walked.nodes,
            system.name
        );
    }
    let simulated = simulate(&walked, system, &layers, &system.timing);
    Ok(TimedCase { run, walked, layers, simulated })
}

/// Simulates one case.
fn one(case: SimulatedCase, system: &System, run: &RunPlacement) -> Result<SimulatedOutcome> {
    let TimedCase { run, walked, layers, simulated } = timed(&case, system, run)?;
    let limits = limits(&simulated, &walked, system, &layers);
    let intervals = intervals(&walked, system, &layers);
    Ok(SimulatedOutcome { label: case.label, stack: case.stack, run, walked, simulated, intervals, limits })
}

/// The same with the stripes that the stack asks for.
pub fn striped(run: &RunPlacement, stack: &Stack, system: &System) -> Result<RunPlacement> {
    let mut run = run.clone();
    if let Some(count) = stack.format.number("stripe_count", 1..=system.targets())? {
        run.stripe_count = count;
    }
    if let Some(size) = stack.format.size("stripe_size")? {
        if size < 4096 {
            bail!("stripe_size={size}: a stripe has at least 4KiB");
        }
        run.stripe_size = size;
    }
    Ok(run)
}

/// Where ranks and stripes go.
pub fn placement(options: &SimulateOptions, system: &System) -> Result<RunPlacement> {
    let mut run = RunPlacement::of(system);
    if let Some(ranks) = options.ranks_per_node {
        run.ranks_per_node = ranks as usize;
    }
    if let Some(count) = options.stripe_count {
        let targets = system.targets();
        if u64::from(count) > targets {
            bail!("--stripe-count {count}: {} has {targets} targets", system.name);
        }
        run.stripe_count = u64::from(count);
    }
    if let Some(size) = &options.stripe_size {
        run.stripe_size = units::parse_size(size).context("--stripe-size")?;
        if run.stripe_size < 4096 {
            bail!("--stripe-size {size}: a stripe has at least 4KiB");
        }
    }
    Ok(run)
}
