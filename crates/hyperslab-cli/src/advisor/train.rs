//! `hyperslab train`: measures this machine and writes what it found to a profile.

use crate::cli::EXIT_INTERRUPTED;
use crate::table::{Align, Table};
use anyhow::{Context, Result};
use hyperslab_advisor::{
    Bench, Extent, Measurement, Timings, busy_machine, evaluate, fit, held_back, layer_costs, measure_all,
    metadata_ops, profile_path, python_calls, trials,
};
use hyperslab_bench::stop_on_ctrl_c;
use hyperslab_core::CacheState;
use hyperslab_core::units::display_size;
use hyperslab_model::{ContentionCurve, Profile, RankKind};
use hyperslab_run::Progress;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Shown below the help.
pub const TRAIN_EXAMPLES: &str = "\
Examples:
  hyperslab train
      under two minutes, for the file system of this directory
  hyperslab train --full --dir /scratch/me
  hyperslab train --evaluate
      how good predictions are on what they do not know

A run that is stopped goes on where it was when it is started again.";

/// Options of `train`.
#[derive(Debug, clap::Args)]
pub struct TrainOptions {
    /// Measure a little, in under two minutes (the default)
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// Measure much, in under half an hour
    #[arg(long)]
    pub full: bool,
    /// Measure the file system of this directory; timings are kept here too
    #[arg(long, value_name = "DIR", default_value = "hyperslab-train")]
    pub dir: PathBuf,
    /// Write the profile here [default: the user's state directory]
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Measure anew, without regard for timings that are there
    #[arg(long)]
    pub fresh: bool,
    /// Measure also what calls of h5py, netCDF4 and zarr-python take in this Python
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
    /// Begin nothing new after so many seconds [default: 85, with --full 1500]
    #[arg(long, value_name = "SECONDS")]
    pub within: Option<u64>,
    /// Judge the model on what was measured: tables, and a plot beside the timings
    #[arg(long)]
    pub evaluate: bool,
    /// Judge the profile on 60 workloads that nothing is fitted to: a table, and their timings beside those of train
    #[arg(long)]
    pub held_back: bool,
}

/// Measures, fits, reports.
pub fn run(options: &TrainOptions) -> Result<ExitCode> {
    let extent = if options.full { Extent::Full } else { Extent::Quick };
    let path = options.profile.clone().map_or_else(profile_path::usual, Ok)?;
    fs::create_dir_all(&options.dir).with_context(|| format!("create directory {}", options.dir.display()))?;
    let mut timings = Timings::open(&options.dir.join("timings.jsonl"))?;
    if options.fresh {
        timings.clear()?;
    }
    let trials = trials(extent)?;
    let all: Vec<Measurement> = trials.iter().cloned().chain(metadata_ops::trials()?).collect();
    let progress = Arc::new(Progress::default());
    stop_on_ctrl_c(&progress)?;
    let limit = Duration::from_secs(options.within.unwrap_or(extent.seconds()));
    let busy = busy_machine::wait_until_quiet(busy_machine::PATIENCE.min(limit));
    let bench = Bench::new(&options.dir, &progress)?;
    let mut missing = measure_all((&trials, extent.rounds()), &bench, limit, &mut timings)?;
    drop(bench);
    if progress.stop_requested() {
        eprintln!("stopped; start it again to go on");
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    let busy = busy.or_else(|| busy_machine::wait_until_quiet(Duration::ZERO));
    let was_busy = busy.is_some();
    missing.extend(busy);
    let mut profile = fit(&all, &timings, &options.dir, &mut missing)?;
    if was_busy {
        profile.fits.values_mut().for_each(|fit| fit.interval = fit.interval.wider(busy_machine::LESS_SURE));
    }
    layer_costs::measure(&options.dir, &progress, &mut profile)?;
    if let Some(python) = &options.python {
        profile.python = python_calls::measured(python, &options.dir)?;
    }
    profile_path::save(&profile, &path)?;
    println!("{}", describe(&profile));
    println!("Profile: {}", path.display());
    if options.evaluate {
        println!("\n{}", evaluate::report(&all, &timings, &options.dir)?);
    }
    if options.held_back {
        println!("\n{}", held_back::report(&profile, (&all, &timings), &options.dir, &progress)?);
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(profile: &Profile) -> String {
    let mut table = Table::new(&[
        ("format", Align::Left),
        ("cache", Align::Left),
        ("runs", Align::Right),
        ("log10 error", Align::Right),
        ("90 % within a factor of", Align::Right),
        ("threads at a time", Align::Right),
        ("processes", Align::Right),
    ]);
    for ((class, warmth), fit) in &profile.fits {
        table.row(vec![
            class.name().into(),
            if *warmth == CacheState::Cold { "cold" } else { "warm" }.into(),
            fit.quality.samples.to_string(),
            format!("{:.3}", fit.quality.log10_rmse),
            format!("{:.2}", fit.interval.factor),
            at_a_time(profile.sharing(*class, RankKind::Threads)),
            at_a_time(profile.sharing(*class, RankKind::Processes)),
        ]);
    }
    let missing: String = profile.missing.iter().map(|what| format!("not measured: {what}\n")).collect();
    let copies =
        profile.copy_rate.map(|rate| format!("A copy in memory: {} in a second.\n", display_size(rate as u64)));
    let (copies, table) = (copies.unwrap_or_default(), table.render());
    format!(
        "Errors are of runs that the fit did not know. Ranks at a time: how many ranks' worth of reading and of writing gets done \
         when more ranks work.\n\n{table}\n{copies}{}",
        missing.trim_end()
    )
}

fn at_a_time(sharing: Option<ContentionCurve>) -> String {
    let words = |sharing: ContentionCurve| {
        let (read, write) = sharing.most();
        format!("{read:.1}, {write:.1}")
    };
    sharing.map_or("?".into(), words)
}
