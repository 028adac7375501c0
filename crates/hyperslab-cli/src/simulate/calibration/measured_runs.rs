//! Measured runs out of files: IOR's output, our results, and h5bench's CSV beside its configuration.

use super::{ior_output, planned_again};
use anyhow::{Context, Result, bail};
use hyperslab_run::{CaseResult, Results, Status};
use hyperslab_sim::{CalibrationRun, RunPlacement};
use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of a file.
const MOST_BYTES: u64 = 256 << 20;

/// All runs of all files; what cannot be used is said.
pub fn read(paths: &[PathBuf], placement: &RunPlacement) -> Result<(Vec<CalibrationRun>, Vec<String>)> {
    let (mut runs, mut notes) = (Vec::new(), Vec::new());
    for path in paths {
        let failed = || format!("read {}", path.display());
        let metadata = fs::metadata(path).with_context(failed)?;
        if !metadata.is_file() || metadata.len() > MOST_BYTES {
            bail!("{}: measured runs are files of at most 256 MiB\n  try: the files in it", path.display());
        }
        let text = fs::read_to_string(path).with_context(failed)?;
        let found = if path.extension().is_some_and(|extension| extension == "csv") {
            h5bench(path, &text, placement)
        } else if text.contains("\"hyperslab_results\"") {
            results(path, placement, &mut notes)
        } else if ior_output::is_ior(&text) {
            ior(path, &text, placement)
        } else {
            bail!("{}: neither output of IOR, nor results of hyperslab bench, nor CSV of h5bench", path.display());
        };
        runs.extend(found.with_context(|| path.display().to_string())?);
    }
    Ok((runs, notes))
}

fn name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |stem| stem.to_string_lossy().into_owned())
}

fn mean(rates: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = rates.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn ior(path: &Path, text: &str, placement: &RunPlacement) -> Result<Vec<CalibrationRun>> {
    let output = ior_output::read(text)?;
    let Some(tests) = hyperslab_ior::parse(&output.flags, &mut Vec::new())? else { bail!("its flags ask for help") };
    let [settings] = tests.as_slice() else { bail!("its flags are of {} tests", tests.len()) };
    let stack = hyperslab_ior::stack(settings)?;
    let [write, read] = hyperslab_ior::workloads(settings, output.ranks)?;
    let placement = RunPlacement { ranks_per_node: output.per_node, ..placement.clone() };
    let mut runs = Vec::new();
    for (workload, writes, word) in [(write, true, "write"), (read, false, "read")] {
        if let Some(rate) = mean(output.rates.iter().filter(|(wrote, _)| *wrote == writes).map(|(_, rate)| *rate)) {
            let (stack, placement) = (stack.clone(), placement.clone());
            let named = name(path);
            let name = if named.ends_with(word) { named } else { format!("{named} {word}") };
            runs.push(CalibrationRun { name, workload, stack, placement, rate });
        }
    }
    Ok(runs)
}

/// Cases of `hyperslab bench`, which are planned again from the command that made them.
fn results(path: &Path, placement: &RunPlacement, notes: &mut Vec<String>) -> Result<Vec<CalibrationRun>> {
    let results = Results::load(path)?;
    let plan = planned_again::of_results(&results)?;
    let mut runs = Vec::new();
    for case in plan.cases {
        let same = |one: &&CaseResult| one.number == case.number && one.stack == case.stack;
        let Some(measured) = results.cases.iter().find(same).filter(|one| one.status == Status::Ok) else { continue };
        let label = format!("{} {} {}", name(path), case.number, case.benchmark);
        let Ok(work) = case.work else { continue };
        if measured.bytes == 0 || measured.raw_rate.median <= 0.0 {
            notes.push(format!("{label} moves nothing, and is left out"));
            continue;
        }
        let rate = measured.raw_rate.median;
        let workload = work.workload;
        runs.push(CalibrationRun { name: label, workload, stack: case.stack, placement: placement.clone(), rate });
    }
    if runs.is_empty() {
        bail!("none of its cases can be used");
    }
    Ok(runs)
}

/// The file of h5bench's keys that lies beside its CSV.
const KEYS: &str = "h5bench.cfg";

fn h5bench(path: &Path, text: &str, placement: &RunPlacement) -> Result<Vec<CalibrationRun>> {
    let row = |metric: &str| {
        let find = |line: &str| {
            let cells: Vec<&str> = line.split(',').map(str::trim).collect();
            (cells.first() == Some(&metric)).then(|| {
                (cells.get(1).copied().unwrap_or("").to_owned(), cells.get(2).copied().unwrap_or("").to_owned())
            })
        };
        text.lines().find_map(find).with_context(|| format!("there is no line {metric:?}"))
    };
    let ranks: u32 = row("ranks")?.0.parse().context("its number of ranks is no number")?;
    let operation = row("operation")?.0;
    let (rate, unit) = row("raw rate")?;
    let rate = rate.parse::<f64>().context("its raw rate is no number")? * scale(&unit)?;
    let keys = path.with_file_name(KEYS);
    let settings = fs::read_to_string(&keys).with_context(|| {
        format!("read {}, which h5bench writes beside its CSV and which says what ran", keys.display())
    })?;
    let plan = planned_again::of_keys(&benchmark(&operation), &settings, ranks)?;
    let mut cases = plan.cases.into_iter().filter_map(|case| Some((case.work.ok()?.workload, case.stack)));
    let (workload, stack) = cases.next().context("h5bench's settings ask for nothing that can be run")?;
    Ok(vec![CalibrationRun { name: name(path), workload, stack, placement: placement.clone(), rate }])
}

/// h5bench's name of a benchmark, from the operation in its CSV.
fn benchmark(operation: &str) -> String {
    if operation.contains("read") { "read".into() } else { operation.to_owned() }
}

fn scale(unit: &str) -> Result<f64> {
    let unit = unit.trim_end_matches("/s").trim();
    let powers = ["B", "KB", "MB", "GB", "TB"];
    match powers.iter().position(|known| *known == unit) {
        Some(power) => Ok(1024_f64.powi(power as i32)),
        None => bail!("{unit:?} is no unit of h5bench"),
    }
}
