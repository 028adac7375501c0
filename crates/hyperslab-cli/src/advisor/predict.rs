//! `hyperslab predict`: what a workload or workflow would take, and what that is made of.

use crate::bench;
use crate::table::{Align, Table};
use anyhow::{Context, Result, bail};
use hyperslab_advisor::bars_plot::{self, Bar};
use hyperslab_advisor::{Input, Predicted, UNKNOWN_RANKS, check_ranks, guesses, results_file, seconds};
use hyperslab_core::parse_stacks;
use hyperslab_core::units::display_size;
use hyperslab_model::{Part, Profile};
use hyperslab_run::{PredictedTime, Progress, Results, Status};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Shown below the help.
pub const PREDICT_EXAMPLES: &str = "\
Examples:
  hyperslab predict workflow.json --stack 'hdf5,hdf5(plane=on),zarr(chunk=8x64)'
  hyperslab predict trace.jsonl --stack zarr --counts
  hyperslab predict workflow.json --stack hdf5 --measure     and run it

hyperslab train must have measured this machine before. Times are those of I/O
that the slowest rank sees.";

/// Options of `predict`.
#[derive(Debug, clap::Args)]
pub struct PredictOptions {
    /// What is predicted
    #[command(flatten)]
    pub input: Input,
    /// Stacks to predict, such as 'hdf5(chunk=64x64),zarr(codec=zstd)'
    #[arg(long, value_name = "LIST", default_value = "hdf5")]
    pub stack: String,
    /// Run it too, and show what was measured beside what was predicted
    #[arg(long)]
    pub measure: bool,
    /// Show what was counted
    #[arg(long)]
    pub counts: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Draw the times into this file, as SVG; with --measure, beside what was measured
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// Predicts every case, and runs them if asked.
pub fn run(options: &PredictOptions) -> Result<ExitCode> {
    for stack in parse_stacks(&options.stack)? {
        if let Some(option) = ["stripe_count", "stripe_size"].into_iter().find(|name| stack.format.get(name).is_some())
        {
            bail!(
                "{stack}: what {option} changes is nothing that the profile of one machine knows\n  \
                 try: hyperslab simulate, which knows of nodes, links and stripes"
            );
        }
    }
    let profile = options.input.profile()?;
    // Before the workload of so many ranks is made; what the input says is checked with it.
    check_ranks(options.input.ranks.unwrap_or(1) as usize, &profile)?;
    let found = options.input.predicted(&options.stack, &profile)?;
    if found.is_empty() {
        bail!("there is nothing to predict");
    }
    if !options.measure {
        draw(options, &found, None)?;
    }
    if options.json {
        let results = if options.measure { Some(measured(options)?.0) } else { None };
        draw(options, &found, results.as_ref())?;
        let list: Vec<serde_json::Value> = found.iter().map(|case| as_json(case, results.as_ref())).collect();
        let whole = serde_json::json!({"hyperslab_predict": 1, "cases": list});
        println!("{}", serde_json::to_string_pretty(&whole)?);
        return Ok(ExitCode::SUCCESS);
    }
    println!("{}", times(&found));
    for line in notes(&found).into_iter().chain(least(&found, &profile)) {
        println!("note: {line}");
    }
    if options.counts {
        found.iter().for_each(|case| println!("{}", counted(case)));
    }
    if !options.measure {
        return Ok(ExitCode::SUCCESS);
    }
    let (mut results, code) = measured(options)?;
    keep(&found, &mut results);
    results.save(&results_file(&options.input.dir))?;
    draw(options, &found, Some(&results))?;
    println!("{}", beside(&found, &results));
    Ok(code)
}

/// Runs every case in a fresh folder.
fn measured(options: &PredictOptions) -> Result<(Results, ExitCode)> {
    let files = options.input.fresh_folder()?;
    let mut asked = options.input.bench_options(&options.stack);
    asked.directory = Some(files.path().into());
    if !options.json {
        let code = bench::run(&asked)?;
        return Ok((Results::load(&results_file(&options.input.dir))?, code));
    }
    let progress = Arc::new(Progress::default());
    hyperslab_bench::stop_on_ctrl_c(&progress)?;
    Ok((hyperslab_bench::measure(&asked, &progress)?, ExitCode::SUCCESS))
}

/// What a case was measured to take, if it ran.
fn measured_seconds(case: &Predicted, results: Option<&Results>) -> Option<f64> {
    let found = results?.cases.iter().find(|result| result.number == case.number && result.status == Status::Ok)?;
    Some(found.observed.median)
}

fn draw(options: &PredictOptions, found: &[Predicted], results: Option<&Results>) -> Result<()> {
    let Some(path) = &options.plot else { return Ok(()) };
    let bar = |case: &Predicted| Bar {
        label: format!("{} on {}", case.benchmark, case.stack),
        parts: case.prediction.parts.clone(),
        seconds: case.prediction.seconds,
        interval: [case.prediction.low, case.prediction.high],
        measured: measured_seconds(case, results),
    };
    let bars: Vec<Bar> = found.iter().map(bar).collect();
    std::fs::write(path, bars_plot::svg(&bars)).with_context(|| format!("write {}", path.display()))
}

fn as_json(case: &Predicted, results: Option<&Results>) -> serde_json::Value {
    let Predicted { number, benchmark, stack, costs, prediction } = case;
    let parts: std::collections::BTreeMap<&str, f64> =
        prediction.parts.iter().map(|(part, seconds)| (part.name(), *seconds)).collect();
    let counts = costs.total().named();
    serde_json::json!({
        "case": number,
        "benchmark": benchmark,
        "stack": stack,
        "bytes_read": costs.bytes_read,
        "bytes_written": costs.bytes_written,
        "seconds": prediction.seconds,
        "low": prediction.low,
        "high": prediction.high.is_finite().then_some(prediction.high),
        "hidden": prediction.hidden,
        "parts": parts,
        "counts": counts,
        "measured": measured_seconds(case, results),
    })
}

fn times(found: &[Predicted]) -> String {
    let mut columns = vec![
        ("case", Align::Right),
        ("benchmark", Align::Left),
        ("stack", Align::Left),
        ("data", Align::Right),
        ("time", Align::Right),
        ("90 % from", Align::Right),
        ("to", Align::Right),
    ];
    let used: Vec<Part> = Part::ALL
        .into_iter()
        .filter(|part| found.iter().any(|case| case.prediction.parts.contains_key(part)))
        .collect();
    columns.extend(used.iter().map(|part| (part.name(), Align::Right)));
    let hides = found.iter().any(|case| case.prediction.hidden > 0.0);
    columns.extend(hides.then_some(("hidden", Align::Right)));
    let mut table = Table::new(&columns);
    for Predicted { number, benchmark, stack, costs, prediction } in found {
        let mut row = vec![
            number.to_string(),
            benchmark.clone(),
            stack.clone(),
            display_size(costs.bytes_read.saturating_add(costs.bytes_written)),
            seconds(prediction.seconds),
            seconds(prediction.low),
            seconds(prediction.high),
        ];
        let part = |part: &Part| prediction.parts.get(part).map_or("-".into(), |value| seconds(*value));
        row.extend(used.iter().map(part));
        row.extend(hides.then(|| seconds(prediction.hidden)));
        table.row(row);
    }
    table.render()
}

/// What the reader should know of the figures.
fn notes(found: &[Predicted]) -> Vec<String> {
    let mut notes = Vec::new();
    if found.iter().any(|case| case.prediction.hidden > 0.0) {
        notes.push("hidden I/O goes on while the program computes, so parts add up to more than the time".to_owned());
    }
    if found.iter().any(|case| case.prediction.high.is_infinite()) {
        notes.push("an interval that ends at ? is not known: too little was measured".to_owned());
    }
    if found.iter().any(|case| case.prediction.unknown_ranks) {
        notes.push(UNKNOWN_RANKS.to_owned());
    }
    notes.extend(guesses(found.iter().map(|case| &case.prediction)));
    let unknown: BTreeSet<&str> =
        found.iter().flat_map(|case| case.prediction.unknown.iter().map(String::as_str)).collect();
    for layer in unknown {
        notes.push(format!("the profile does not know what the layer {layer} costs; run hyperslab train again"));
    }
    notes
}

/// What no way of storing can do without.
fn least(found: &[Predicted], profile: &Profile) -> Option<String> {
    let most = found.iter().map(|case| case.costs.bytes_read.saturating_add(case.costs.bytes_written)).max()?;
    let time = most as f64 / profile.copy_rate?;
    Some(format!("copying {} once in memory takes {} here, by one thread", display_size(most), seconds(time)))
}

fn counted(case: &Predicted) -> String {
    let named = case.costs.total().named();
    let lines: String = named.iter().map(|(name, number)| format!("  {name:20} {number}\n")).collect();
    format!("{} on {}\n{lines}", case.benchmark, case.stack)
}

/// Puts the predictions into the results, for reports; those without an end are left out.
fn keep(found: &[Predicted], results: &mut Results) {
    for Predicted { number, prediction, .. } in found {
        let known = [prediction.seconds, prediction.low, prediction.high].iter().all(|value| value.is_finite());
        if let Some(case) = results.cases.iter_mut().find(|case| case.number == *number && known) {
            let (seconds, low, high) = (prediction.seconds, prediction.low, prediction.high);
            case.predicted = Some(PredictedTime { seconds, low, high });
        }
    }
}

/// Predicted and measured times.
fn beside(found: &[Predicted], results: &Results) -> String {
    let mut table = Table::new(&[
        ("case", Align::Right),
        ("benchmark", Align::Left),
        ("stack", Align::Left),
        ("predicted", Align::Right),
        ("measured", Align::Right),
        ("ratio", Align::Right),
        ("inside the interval", Align::Left),
    ]);
    for case in found {
        let result = results.cases.iter().find(|result| result.number == case.number && result.status == Status::Ok);
        let Some(result) = result else { continue };
        let (predicted, measured) = (&case.prediction, result.observed.median);
        table.row(vec![
            case.number.to_string(),
            case.benchmark.clone(),
            case.stack.clone(),
            seconds(predicted.seconds),
            seconds(measured),
            format!("{:.2}", predicted.seconds / measured.max(1e-9)),
            if (predicted.low..=predicted.high).contains(&measured) { "yes" } else { "no" }.into(),
        ]);
    }
    table.render()
}
