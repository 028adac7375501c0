//! `simulate --calibrate`: a system's timing from measured runs.

mod ior_output;
mod job;
mod measured_runs;
mod planned_again;

use super::{SimulateOptions, chosen_system, placement};
use crate::table::{Align, Table, wrapped};
use anyhow::{Context, Result, bail};
use hyperslab_sim::{Accuracy, Calibrated, System, TimingParameters, calibrate, conformal_factor};
pub use job::JobKind;
use serde_json::json;
use std::process::ExitCode;

/// Clients of the runs unless --ranks says otherwise.
const CLIENTS: usize = 10;

/// Prints the script of the runs to make.
pub fn print_job(kind: JobKind, options: &SimulateOptions) -> Result<ExitCode> {
    let system = chosen_system::load(&options.system)?;
    let most = (system.nodes.count.value as usize).min(system.targets() as usize).max(1);
    let clients = options.ranks.map_or(CLIENTS.min(most), |ranks| ranks as usize);
    print!("{}", job::script(kind, clients, &options.system));
    Ok(ExitCode::SUCCESS)
}

/// Fits the system to runs, says how good that is, and writes the description.
pub fn run(options: &SimulateOptions) -> Result<ExitCode> {
    let system = chosen_system::load(&options.system)?;
    let (runs, left_out) = measured_runs::read(&options.calibrate, &placement(options, &system)?)?;
    let found = calibrate(&system, &runs)?;
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&value(&found)).context("print the calibration")?),
        false => print!("{}", words(&found, &left_out)),
    }
    if let Some(path) = &options.output {
        write(&found.system, path, options.overwrite)?;
        if !options.json {
            println!("System: {}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write(system: &System, path: &std::path::Path, overwrite: bool) -> Result<()> {
    if path.exists() && !overwrite {
        bail!("{} exists\n  try: another --output, or --overwrite", path.display());
    }
    crate::report::write(path, &system.to_json(), true)
}

fn words(found: &Calibrated, left_out: &[String]) -> String {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("MB/s", Align::Right),
        ("fitted", Align::Right),
        ("left out", Align::Right),
    ]);
    let percent = |rate: f64, measured: f64| format!("{:+.0} %", (rate / measured - 1.0) * 100.0);
    for row in &found.rows {
        table.row(vec![
            row.name.clone(),
            format!("{:.1}", row.measured / 1e6),
            percent(row.fitted, row.measured),
            percent(row.left_out, row.measured),
        ]);
    }
    let mut text = table.render();
    text += &wrapped("fitted: error of the fit to all runs; left out: of a fit to all others.", 80, 0);
    text += &accuracy(found);
    text.push('\n');
    text += &parameters(found).render();
    let fitted = &found.fitted;
    if !fitted.unknown.is_empty() {
        text += &wrapped(
            &format!("No run tells anything of {}: where they begin is kept.", fitted.unknown.join(", ")),
            80,
            0,
        );
    }
    for (a, b, correlation) in &fitted.alike {
        text += &wrapped(&format!("{a} and {b} cannot be told apart (correlation {correlation:.2})."), 80, 0);
    }
    for note in found.notes.iter().chain(left_out) {
        text += &wrapped(&format!("note: {note}"), 80, 6);
    }
    text
}

fn accuracy(found: &Calibrated) -> String {
    let pairs: Vec<(f64, f64)> = found.rows.iter().map(|row| (row.left_out, row.measured)).collect();
    let Accuracy { correlation, median, ninety, .. } = Accuracy::of(&pairs);
    let errors = &found.system.calibration.errors;
    let within = |share: f64| match conformal_factor(errors, share) {
        factor if factor.is_finite() => format!("a factor of {factor:.2}"),
        _ => "nothing that so few runs could tell".into(),
    };
    let words = format!(
        "Runs left out: rank correlation {correlation:.3}, median error {:.1} %, 90th percentile {:.1} %. Of runs like these half \
         will be within {}, nine of ten within {} (conformal).",
        median * 100.0,
        ninety * 100.0,
        within(0.5),
        within(0.9)
    );
    wrapped(&words, 80, 0)
}

fn parameters(found: &Calibrated) -> Table {
    let mut table = Table::new(&[("parameter", Align::Left), ("value", Align::Right), ("+-", Align::Right)]);
    let values = found.fitted.timing.values();
    for (at, name) in TimingParameters::NAMES.iter().enumerate() {
        let unknown = found.fitted.unknown.contains(name);
        let deviation =
            if unknown { "unknown".into() } else { format!("{:.0} %", found.fitted.deviations[at] * 100.0) };
        table.row(vec![(*name).into(), format!("{:.4e}", values[at]), deviation]);
    }
    table
}

fn value(found: &Calibrated) -> serde_json::Value {
    let rows: Vec<_> = found
        .rows
        .iter()
        .map(|row| json!({"run": row.name, "measured": row.measured, "fitted": row.fitted, "left_out": row.left_out}))
        .collect();
    let alike: Vec<_> = found.fitted.alike.iter().map(|(a, b, by)| json!([a, b, by])).collect();
    json!({
        "hyperslab_calibration": 1,
        "runs": rows,
        "parameters_alike": alike,
        "parameters_unknown": found.fitted.unknown,
        "notes": found.notes,
        "system": found.system,
    })
}
