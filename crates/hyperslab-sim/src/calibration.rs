//! A system's timing from runs that were measured on it.

use crate::calibrate::{Fitted, MeasuredRun, fit};
use crate::judgement::quantile;
use crate::simulation::transfer_seconds;
use crate::stage::Rates;
use crate::system::{Calibration, Sourced, System};
use crate::timing::TimingParameters;
use crate::walk::{RunPlacement, WalkEvent, Walked, walk};
use hyperslab_core::workload::Workload;
use hyperslab_core::{Error, Result, Stack};

/// A run that was measured on the system.
#[derive(Debug, Clone)]
pub struct CalibrationRun {
    /// Where it is from, in words.
    pub name: String,
    /// What it did.
    pub workload: Workload,
    /// On what.
    pub stack: Stack,
    /// Where ranks and stripes were.
    pub placement: RunPlacement,
    /// Bytes per second of its transfers.
    pub rate: f64,
}

/// A run beside what is simulated of it, in bytes per second.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibratedRow {
    /// The run.
    pub name: String,
    /// Measured.
    pub measured: f64,
    /// By the fit to all runs.
    pub fitted: f64,
    /// By a fit to all others.
    pub left_out: f64,
}

/// What a calibration found.
#[derive(Debug, Clone)]
pub struct Calibrated {
    /// The system with its rates and timing.
    pub system: System,
    /// The fit to all runs.
    pub fitted: Fitted,
    /// Row by row.
    pub rows: Vec<CalibratedRow>,
    /// How the rates of links were found, and what the runs do not tell.
    pub notes: Vec<String>,
}

/// Fewer runs tell nothing.
pub const FEWEST_RUNS: usize = 4;
/// More are not taken.
pub const MOST_RUNS: usize = 4096;
/// The link of the system that neutral timings are of, in bytes per second.
const NEUTRAL_LINK: f64 = 112.6e6;

/// Calibrates `base` with runs.
pub fn calibrate(base: &System, runs: &[CalibrationRun]) -> Result<Calibrated> {
    let bad =
        |message: String| Error::invalid("calibrate", message).hint("hyperslab simulate --print-job shell lists runs");
    if runs.len() < FEWEST_RUNS || runs.len() > MOST_RUNS {
        return Err(bad(format!("{} runs were given; {FEWEST_RUNS} to {MOST_RUNS} are needed", runs.len())));
    }
    if let Some(run) = runs.iter().find(|run| !(run.rate.is_finite() && run.rate > 0.0)) {
        return Err(bad(format!("{}: a rate of {} bytes per second is no rate", run.name, run.rate)));
    }
    let mut walked = Vec::with_capacity(runs.len());
    for run in runs {
        let found = walk(&run.workload, &run.stack, base, &run.placement)?;
        if found.written + found.read <= 0.0 {
            return Err(bad(format!("{} moves nothing", run.name)));
        }
        walked.push(found);
    }
    let mut system = base.clone();
    let notes = pin_rates(&mut system, runs, &walked);
    let rates = Rates::of(&system);
    let measured = |(run, walked): (&CalibrationRun, &Walked)| MeasuredRun {
        name: run.name.clone(),
        seconds: (walked.written + walked.read) / run.rate,
        walked: walked.clone(),
        rates,
        weight: 1.0,
    };
    let all: Vec<MeasuredRun> = runs.iter().zip(&walked).map(measured).collect();
    let start = TimingParameters::neutral().faster((rates.link / NEUTRAL_LINK).max(1.0));
    let fitted = fit(&all, &start);
    let rate = |run: &MeasuredRun, timing: &TimingParameters| {
        (run.walked.written + run.walked.read) / transfer_seconds(&run.walked, &run.rates, timing)
    };
    let row = |left: usize| {
        let others: Vec<MeasuredRun> = (0..all.len()).filter(|at| *at != left).map(|at| all[at].clone()).collect();
        let run = &all[left];
        CalibratedRow {
            name: run.name.clone(),
            measured: runs[left].rate,
            fitted: rate(run, &fitted.timing),
            left_out: rate(run, &fit(&others, &start).timing),
        }
    };
    let rows: Vec<CalibratedRow> = (0..all.len()).map(row).collect();
    system.timing = fitted.timing;
    system.calibration = record(&fitted, &rows, &walked);
    system.check()?;
    Ok(Calibrated { system, fitted, rows, notes })
}

/// The most that a prediction of a run is off in this share of cases, as a factor: the conformal quantile of the errors of
/// runs that were left out. Infinite where there are too few of them to say.
pub fn conformal_factor(errors: &[f64], share: f64) -> f64 {
    let rank = ((errors.len() + 1) as f64 * share).ceil() as usize;
    if rank == 0 { 1.0 } else { errors.get(rank - 1).map_or(f64::INFINITY, |error| error.exp()) }
}

/// Network and disk cannot be told apart by rates alone: the link is what a client reaches that has a server for itself.
fn pin_rates(system: &mut System, runs: &[CalibrationRun], walked: &[Walked]) -> Vec<String> {
    let per_node = |run: &CalibrationRun, walked: &Walked| run.rate / walked.nodes.max(1) as f64;
    let alone =
        |walked: &Walked| loads(walked).all(|load| load.kind.posix && load.fan_in < 1.5) && loads(walked).count() > 0;
    let fastest = |wanted: &dyn Fn(&Walked) -> bool| {
        let all = runs.iter().zip(walked).filter(|(_, walked)| wanted(walked));
        all.map(|(run, walked)| (per_node(run, walked), run.name.clone())).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let mut notes = Vec::new();
    if let Some((rate, name)) = fastest(&alone) {
        let source = format!("measured: {name}, every client alone on a target");
        system.nodes.link_rate = Sourced::new(rate, &source);
        let (most, storage) = (system.nodes.link_rate.value, &mut system.storage);
        storage.server_rate = Sourced::new(rate * storage.targets.value, &source);
        for disk in [&mut storage.write_rate, &mut storage.read_rate] {
            if disk.value < most {
                *disk = Sourced::new(most, format!("at least: {source}"));
            }
        }
        notes.push(format!("links of nodes and servers are those of {name}: {:.1} MB/s", rate / 1e6));
    } else if let Some((rate, name)) = fastest(&|_| true) {
        notes.push("no run has every client alone on a target: rates of links are those of the description".into());
        if rate > system.nodes.link_rate.value {
            system.nodes.link_rate = Sourced::new(rate, format!("measured: at least that of {name}"));
            notes.push(format!(
                "{name} was faster than the links of nodes were said to be: {:.1} MB/s are taken",
                rate / 1e6
            ));
        }
    }
    notes
}

fn loads(walked: &Walked) -> impl Iterator<Item = &crate::load::Load> {
    fn of(event: &WalkEvent) -> &[crate::load::Load] {
        match event {
            WalkEvent::Transfer(loads) => loads,
            _ => &[],
        }
    }
    walked.events.iter().flat_map(of).filter(|load| load.bytes > 0.0)
}

fn record(fitted: &Fitted, rows: &[CalibratedRow], walked: &[Walked]) -> Calibration {
    let mut errors: Vec<f64> = rows.iter().map(|row| (row.left_out / row.measured).ln().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let calls = || walked.iter().flat_map(loads).map(|load| load.bytes / load.ranks.max(1.0));
    let deviations = TimingParameters::NAMES.iter().zip(fitted.deviations);
    Calibration {
        source: format!(
            "fitted to {} runs of this system; errors are those of leaving out one run, median {:.1} %",
            rows.len(),
            (quantile(&errors, 0.5).exp() - 1.0) * 100.0
        ),
        runs: rows.len(),
        most_clients: walked.iter().map(|walked| walked.nodes).max().unwrap_or(0),
        calls: [calls().fold(f64::INFINITY, f64::min) as u64, calls().fold(0.0, f64::max) as u64],
        errors,
        deviations: deviations.map(|(name, deviation)| ((*name).to_owned(), deviation)).collect(),
    }
}
