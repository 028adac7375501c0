//! `hyperslab train`: measures this machine and writes what it found to a profile.

use super::compressibility::Compressibility;
use super::evaluate;
use super::held_back;
use super::layer_costs;
use super::measured::{Bench, TIMINGS_OF_A_TRIAL, openings};
use super::measurement::{Access, Measurement};
use super::measurement_plan::{Extent, trials};
use super::memcpy_probe;
use super::metadata_ops::{self, Beside};
use super::profile_path;
use super::sharing;
use super::timings::{Timing, Timings};
use super::{busy_machine, call_floors, python_calls};
use crate::bench::stop_on_ctrl_c;
use crate::cli::EXIT_INTERRUPTED;
use crate::table::{Align, Table};
use anyhow::{Context, Result, bail};
use hyperslab_core::CacheState;
use hyperslab_core::units::display_size;
use hyperslab_core::workload::Workload;
use hyperslab_model::{Class, ContentionCurve, Counting, Fit, Method, Profile, RankKind, Sample, count, ordinary};
use hyperslab_run::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    #[arg(long, conflicts_with = "json")]
    pub held_back: bool,
    /// Print the profile as JSON
    #[arg(long, conflicts_with = "evaluate")]
    pub json: bool,
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
    if options.json {
        println!("{}", profile.to_json()?);
        return Ok(ExitCode::SUCCESS);
    }
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

/// Measures what is not measured yet, as long as there is time: everything once, then everything again, so that what
/// disturbs for a while disturbs few repetitions of each. Returns what is missing, in words.
fn measure_all(
    (trials, rounds): (&[Measurement], usize),
    bench: &Bench<'_>,
    limit: Duration,
    timings: &mut Timings,
) -> Result<Vec<String>> {
    let progress = bench.progress;
    let done: Vec<usize> = trials.iter().map(|trial| timings.rounds(&trial.name(), TIMINGS_OF_A_TRIAL)).collect();
    let missing_in = |round: usize| trials.iter().zip(&done).filter(move |(_, done)| **done <= round);
    let todo: Vec<(usize, &Measurement)> =
        (0..rounds).flat_map(|round| missing_in(round).map(move |(trial, _)| (round, trial))).collect();
    let begin = Instant::now();
    let mut missing = BTreeSet::new();
    for (number, (round, trial)) in todo.iter().enumerate() {
        if progress.stop_requested() {
            return Ok(Vec::new());
        }
        if begin.elapsed() > limit {
            let arrays = todo[number..].iter().filter(|(round, _)| *round == 0).count();
            missing.insert(match arrays {
                0 => format!("repetitions: {round} of {rounds} rounds were done, then there was no more time"),
                _ => format!("{arrays} of {} arrays: there was no more time", trials.len()),
            });
            break;
        }
        let left = begin.elapsed().mul_f64((todo.len() - number) as f64 / number.max(1) as f64);
        let left = if number > 2 { format!(", about {} s left", left.as_secs() + 1) } else { String::new() };
        eprintln!("[{}/{}] round {} of {rounds}: {}{left}", number + 1, todo.len(), round + 1, trial.name());
        match bench.measure(trial) {
            Ok((found, warnings)) => {
                timings.add(found)?;
                if !warnings.is_empty() {
                    missing.insert("cold reads: files stayed in memory".to_owned());
                }
            }
            Err(_) if progress.stop_requested() => return Ok(Vec::new()),
            Err(error) => {
                missing.insert(format!("{}: {error:#}", trial.stack));
            }
        }
    }
    metadata_ops::measure(bench, timings, &mut missing)?;
    sharing::measure(bench, timings, &mut missing)?;
    Ok(missing.into_iter().collect())
}

/// The workload of a timing, for which the model counts.
fn workload_of(trial: &Measurement, timing: &Timing) -> Option<hyperslab_core::Result<Workload>> {
    if let Some(what) = Beside::named(&timing.access) {
        return Some(what.workload(trial, "train"));
    }
    if timing.access == openings(RankKind::Threads) {
        return Some(trial.opened("train", 1, timing.direction == "write"));
    }
    let accesses = Access::WRITES.into_iter().chain(Access::READS);
    let access = accesses.into_iter().find(|access| access.name() == timing.access)?;
    Some(match timing.direction.as_str() {
        "write" => trial.write("train", access, timing.cache == "cold"),
        _ => trial.read("train", access),
    })
}

/// A timing with what the model counts for it.
#[derive(Debug)]
pub struct Measured<'a> {
    /// Counts and seconds. Those of one trial are a group.
    pub sample: Sample,
    /// What was measured.
    pub trial: &'a Measurement,
    /// How.
    pub timing: &'a Timing,
}

/// What was measured of one way of storing, counted in one way. `trials`: of these.
pub fn samples<'a>(
    trials: &'a [Measurement],
    timings: &'a Timings,
    class: Class,
    warmth: CacheState,
    counting: Counting,
) -> Result<Vec<Measured<'a>>> {
    let word = if warmth == CacheState::Cold { "cold" } else { "warm" };
    let by_name: BTreeMap<String, &Measurement> =
        trials.iter().filter(|trial| trial.class == class).map(|trial| (trial.name(), trial)).collect();
    let (mut samples, mut data) = (Vec::new(), Compressibility::new(None));
    for timing in timings.all.iter().filter(|timing| timing.cache == word && timing.ranks == 1) {
        let Some(&trial) = by_name.get(&timing.trial) else { continue };
        let Some(workload) = workload_of(trial, timing) else { continue };
        let workload = workload?;
        let configuration =
            hyperslab::configuration(&trial.stack)?.counting(counting).stored(data.shares(&workload, &trial.stack));
        let costs = count(&workload, &configuration)?;
        let warmth = if counting == Counting::Real { warmth } else { CacheState::Cold };
        let row = costs.by_rank.first().map(|work| work.row(warmth)).unwrap_or_default();
        let sample = Sample { row, seconds: timing.median(), group: trial.name() };
        samples.push(Measured { sample, trial, timing });
    }
    Ok(samples)
}

fn fit(trials: &[Measurement], timings: &Timings, directory: &Path, missing: &mut Vec<String>) -> Result<Profile> {
    let (mut fits, ordinary, least) = (BTreeMap::new(), ordinary(), call_floors::measured(directory)?);
    for class in Class::ALL {
        for warmth in [CacheState::Warm, CacheState::Cold] {
            let samples = samples(trials, timings, class, warmth, Counting::Real)?;
            if samples.iter().all(|one| one.trial.layout == metadata_ops::LAYOUT) {
                missing.push(format!("{}: nothing was measured", class.name()));
                continue;
            }
            let samples: Vec<Sample> = samples.into_iter().map(|one| one.sample).collect();
            fits.insert((class, warmth), Fit::bounded(&samples, Method::Corrected, &ordinary, &least)?);
        }
    }
    missing.sort();
    missing.dedup();
    if fits.is_empty() {
        bail!("nothing could be measured: {}", missing.join("; "));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Profile {
        program: env!("CARGO_PKG_VERSION").into(),
        measured: now.as_secs_f64(),
        machine: profile_path::facts(directory),
        sharing: sharing::found(timings, &fits)?,
        fits,
        missing: missing.clone(),
        layers: BTreeMap::new(),
        alignment: Vec::new(),
        copy_rate: Some(memcpy_probe::rate()?),
        python: BTreeMap::new(),
    })
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
