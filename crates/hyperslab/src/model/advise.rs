//! `hyperslab advise`: which stack would be fastest for a workload, how sure that is, and why.

use super::candidates;
use super::inputs::{Input, results_file};
use super::predict::{Predicted, seconds};
use super::settings::settings;
use crate::bench;
use crate::table::{Align, Table};
use anyhow::{Result, bail};
use hyperslab_core::Stack;
use hyperslab_model::{Part, Warmth};
use hyperslab_run::{Results, Status};
use std::collections::BTreeMap;
use std::process::ExitCode;

/// Shown below the help.
pub const ADVISE_EXAMPLES: &str = "\
Examples:
  hyperslab advise workflow.json
  hyperslab advise trace.jsonl --stack 'hdf5(chunk=1x1024)'     what is used now, to compare with
  hyperslab advise workflow.json --verify 3                     run the best three and the present one

hyperslab train must have measured this machine before. Times are those of all cases of the input together.";

/// Options of `advise`.
#[derive(Debug, clap::Args)]
pub struct AdviseOptions {
    /// What is to become fast
    #[command(flatten)]
    pub input: Input,
    /// What is used now
    #[arg(long, value_name = "STACK", default_value = "hdf5")]
    pub stack: String,
    /// How many to show
    #[arg(long, value_name = "N", default_value = "10")]
    pub top: usize,
    /// Run the best N and the present one, and say what following the advice gains or costs
    #[arg(long, value_name = "N")]
    pub verify: Option<usize>,
}

/// A stack with what all cases of the input would take on it.
struct Ranked {
    stack: Stack,
    seconds: f64,
    low: f64,
    high: f64,
    parts: BTreeMap<Part, f64>,
}

impl Ranked {
    fn of(stack: Stack, cases: &[Predicted]) -> Self {
        let total = |of: &dyn Fn(&Predicted) -> f64| cases.iter().map(of).sum();
        Self {
            stack,
            seconds: total(&|case| case.prediction.seconds),
            low: total(&|case| case.prediction.low),
            high: total(&|case| case.prediction.high),
            parts: Part::ALL.into_iter().map(|part| (part, total(&|case| part_of(case, part)))).collect(),
        }
    }
}

fn part_of(case: &Predicted, part: Part) -> f64 {
    case.prediction.parts.get(&part).copied().unwrap_or(0.0)
}

/// Compares, explains, and runs if asked.
pub fn run(options: &AdviseOptions) -> Result<ExitCode> {
    let profile = options.input.profile()?;
    let warmth = options.input.warmth();
    let present: Stack = options.stack.parse()?;
    let plan = bench::Plan::new(&*options.input.bench_options(&options.stack)?, None)?;
    let workloads: Vec<_> = plan.cases.iter().filter_map(|case| case.work.as_ref().ok().map(|w| &w.workload)).collect();
    if workloads.is_empty() {
        bail!("there is nothing in it that this build can run");
    }
    let mut stacks = vec![present.to_string()];
    stacks.extend(candidates::stacks(&workloads));
    let mut ranked: Vec<Ranked> = Vec::new();
    for text in stacks {
        let stack: Stack = text.parse()?;
        if ranked.iter().any(|known| known.stack == stack) {
            continue;
        }
        // What cannot hold the workload, or was never measured, is no candidate; the present one must be both.
        match options.input.predicted(&text, &profile, warmth) {
            Ok(cases) if cases.len() == workloads.len() => ranked.push(Ranked::of(stack, &cases)),
            Err(error) if stack == present => return Err(error),
            _ => {}
        }
    }
    let Some(now) = ranked.first().map(|first| first.stack.clone()) else { bail!("no stack can be compared") };
    ranked.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    println!("{}", list(&ranked, &now, options.top));
    println!("{}", words(&ranked, &now, warmth));
    match options.verify {
        Some(best) => verify(options, &ranked, &now, best),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn list(ranked: &[Ranked], now: &Stack, top: usize) -> String {
    let mut table = Table::new(&[
        ("", Align::Right),
        ("stack", Align::Left),
        ("time", Align::Right),
        ("90 % from", Align::Right),
        ("to", Align::Right),
        ("most of it", Align::Left),
        ("", Align::Left),
    ]);
    let best_high = ranked.first().map_or(0.0, |best| best.high);
    for (number, one) in ranked.iter().enumerate() {
        let present = one.stack == *now;
        if number >= top && !present {
            continue;
        }
        let most = one.parts.iter().max_by(|a, b| a.1.total_cmp(b.1)).map_or("", |(part, _)| part.name());
        let note = match (present, number > 0 && one.low <= best_high) {
            (true, _) => "used now",
            (false, true) => "too close to call",
            _ => "",
        };
        table.row(vec![
            (number + 1).to_string(),
            one.stack.to_string(),
            seconds(one.seconds),
            seconds(one.low),
            seconds(one.high),
            most.into(),
            note.into(),
        ]);
    }
    table.render()
}

/// Why the first is first, what it costs elsewhere, and how to have it.
fn words(ranked: &[Ranked], now: &Stack, warmth: Warmth) -> String {
    let (Some(best), Some(present)) = (ranked.first(), ranked.iter().find(|one| one.stack == *now)) else {
        return String::new();
    };
    let mut out = String::new();
    if best.stack == *now {
        out.push_str("What is used now is predicted to be the fastest.\n");
    } else {
        let factor = present.seconds / best.seconds.max(1e-12);
        let sure = if best.high < present.low { "" } else { ", though that is too close to call" };
        out.push_str(&format!("{} is predicted to be {factor:.1} times faster than {now}{sure}.\n", best.stack));
        let of = |one: &Ranked, part: Part| one.parts.get(&part).copied().unwrap_or(0.0);
        let mut saved: Vec<(f64, Part)> =
            Part::ALL.into_iter().map(|part| (of(present, part) - of(best, part), part)).collect();
        saved.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (gain, part) in saved.iter().filter(|(gain, _)| *gain > 0.05 * present.seconds).take(3) {
            let (before, after) = (seconds(of(present, *part)), seconds(of(best, *part)));
            out.push_str(&format!("- {}: {after} instead of {before} ({} saved)\n", part.name(), seconds(*gain)));
        }
        for (gain, part) in saved.iter().rev().filter(|(gain, _)| *gain < -0.05 * present.seconds).take(2) {
            out.push_str(&format!("- {} costs {} more\n", part.name(), seconds(-gain)));
        }
    }
    for consequence in consequences(&best.stack) {
        out.push_str(&format!("- {consequence}\n"));
    }
    if warmth == Warmth::Warm {
        out.push_str("- files are taken to be in memory; --cold predicts for files that are not\n");
    }
    out.push_str("\nSettings\n");
    settings(&best.stack).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    out
}

/// What a stack costs elsewhere.
fn consequences(stack: &Stack) -> Vec<&'static str> {
    let mut out = Vec::new();
    if stack.format.get("plane") == Some("on") {
        out.push("the data plane is this program's and its connector's; the file is ordinary HDF5 for all others");
    }
    match stack.format.name.as_str() {
        "zarr" if stack.format.get("shard").is_none() => {
            out.push("every chunk is a file: many small ones burden file systems")
        }
        "zarr" => out.push("shards need readers of Zarr version 3; a part of one is changed by writing it anew"),
        "posix" => out.push("raw files are read by this program only"),
        _ => {}
    }
    if stack.format.get("cache").is_some() {
        out.push("the chunk cache takes that much memory for every open array");
    }
    if stack.layers.iter().any(|layer| layer.name == "async") {
        out.push("writes are held in memory until they are stored: a crash of the program loses them");
    }
    out
}

/// Runs the best ones and the present one.
fn verify(options: &AdviseOptions, ranked: &[Ranked], now: &Stack, best: usize) -> Result<ExitCode> {
    let mut chosen: Vec<&Ranked> = ranked.iter().take(best.max(1)).collect();
    if !chosen.iter().any(|one| one.stack == *now) {
        chosen.extend(ranked.iter().find(|one| one.stack == *now));
    }
    let list: Vec<String> = chosen.iter().map(|one| one.stack.to_string()).collect();
    let code = bench::run(&*options.input.bench_options(&list.join(","))?)?;
    let results = Results::load(&results_file(&options.input.dir))?;
    let measured = |stack: &Stack| {
        let of = results.cases.iter().filter(|case| case.stack == *stack);
        of.map(|case| if case.status == Status::Ok { case.observed.median } else { f64::INFINITY }).sum::<f64>()
    };
    let mut table = Table::new(&[("stack", Align::Left), ("predicted", Align::Right), ("measured", Align::Right)]);
    for one in &chosen {
        table.row(vec![one.stack.to_string(), seconds(one.seconds), seconds(measured(&one.stack))]);
    }
    println!("{}", table.render());
    let fastest = chosen.iter().map(|one| measured(&one.stack)).fold(f64::INFINITY, f64::min);
    if let Some(first) = chosen.first()
        && fastest.is_finite()
    {
        let (regret, gain) = (measured(&first.stack) / fastest - 1.0, measured(now) / measured(&first.stack));
        println!("Following the advice takes {:.1} % longer than the fastest of these,", 100.0 * regret);
        println!("and {gain:.2} times as fast as what is used now.");
    }
    Ok(code)
}
