//! `hyperslab advise`: which stack would be fastest for a workload, how sure that is, and why.

use super::verify::verify;
use crate::table::{Align, Table};
use anyhow::{Context, Result, bail};
use hyperslab_advisor::bars_plot::{self, Bar};
use hyperslab_advisor::settings::{own, settings};
use hyperslab_advisor::thinned::{NAME, thinned};
use hyperslab_advisor::{Input, ScoredStack, Search, UNKNOWN_RANKS, guesses, reasons, seconds};
use hyperslab_core::units::display_size;
use hyperslab_core::{Stack, parse_stacks};
use hyperslab_formats::formats;
use hyperslab_model::{Part, Profile, PythonLibrary};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Shown below the help.
pub const ADVISE_EXAMPLES: &str = "\
Examples:
  hyperslab advise workflow.json
  hyperslab advise trace.jsonl --stack 'hdf5(chunk=1x1024)'
      what is used now, to compare with
  hyperslab advise trace.jsonl --ratio 3
      data that codecs make three times smaller
  hyperslab advise workflow.json --verify 3
      run the best three and the present one
  hyperslab advise vpic --system cori --ranks 1024
      on a parallel file system that is described, with settings to paste

Formats, shapes of chunks and shards, codecs, cache sizes, alignment, layers
(async, log, cache), collective transfers and the number of aggregators
(twophase) are compared. hyperslab train must have measured this machine before.
Times are those of all cases of the input together. docs/advise.md says more.";

/// A change that is predicted to gain less than this factor is not worth it.
const WORTH_A_CHANGE: f64 = 1.05;

/// Options of `advise`.
#[derive(Debug, clap::Args)]
pub struct AdviseOptions {
    /// What is to become fast
    #[command(flatten)]
    pub input: Input,
    /// What is used now
    #[arg(long, value_name = "STACK", default_value = "hdf5")]
    pub stack: String,
    /// Search on this simulated system instead, stripes, aggregators and transfers too (hyperslab simulate --list)
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["verify", "plot"])]
    pub system: Option<String>,
    /// Formats to choose from; hyperslab formats lists them
    #[arg(long, value_name = "LIST", default_values_t = usual_formats(), value_delimiter = ',')]
    pub formats: Vec<String>,
    /// A directory on fast storage that logs may use [default: that of the file]
    #[arg(long, value_name = "DIR")]
    pub log_dir: Option<PathBuf>,
    /// How many to show
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub top: u32,
    /// Run the best N and the present one, and say what following the advice gains or costs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub verify: Option<u32>,
    /// Print JSON
    #[arg(long, conflicts_with = "verify")]
    pub json: bool,
    /// Draw the list into this file, as SVG
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// The formats that are compared unless the user names others.
fn usual_formats() -> Vec<String> {
    formats().iter().filter(|entry| entry.advice.usual).map(|entry| entry.name.to_owned()).collect()
}

/// Compares, explains, and runs if asked.
pub fn run(options: &AdviseOptions) -> Result<ExitCode> {
    let begin = Instant::now();
    let stack = check(options)?;
    let profile = options.input.profile()?;
    let mut input = options.input.clone();
    let lines = input.input.extension().is_some_and(|extension| extension == "jsonl");
    // Real runs are of all of it.
    let part = if lines && input.keys.is_empty() && options.verify.is_none() { thinned(&input.input)? } else { None };
    if let Some(part) = &part {
        input.input = part.folder.path().join(NAME);
    }
    let (mut search, present) = Search::new(&input, &profile, &stack)?;
    let now = present.stack.clone();
    let cases = present.works.len();
    let ranked = search.all(present, &options.formats, options.log_dir.as_ref())?;
    let ranked = in_order(ranked, &now);
    if let Some(path) = &options.plot {
        let shown = ranked.iter().enumerate().filter(|(place, one)| *place < options.top as usize || one.stack == now);
        let bars: Vec<Bar> = shown.map(|(_, one)| bar(one)).collect();
        std::fs::write(path, bars_plot::svg(&bars)).with_context(|| format!("write {}", path.display()))?;
    }
    if options.json {
        let list: Vec<serde_json::Value> = ranked.iter().map(|one| as_json(one, &now, &profile)).collect();
        let whole = serde_json::json!({"hyperslab_advise": 1, "partial": search.left > 0 || part.is_some(),
            "one_request_in": part.as_ref().map_or(1, |part| part.factor), "stacks": list});
        println!("{}", serde_json::to_string_pretty(&whole)?);
        return Ok(ExitCode::SUCCESS);
    }
    let plural = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    println!(
        "Compared {} for {} in {}.\n",
        plural(search.compared, "stack"),
        plural(cases, "case"),
        seconds(begin.elapsed().as_secs_f64())
    );
    if let Some(part) = &part {
        println!(
            "This answer is partial: one in {} of the {} requests stands for all, and times are of those.\n",
            part.factor, part.requests
        );
    }
    println!("{}", list(&ranked, &now, options.top as usize, &profile));
    println!("{}", words(&ranked, &now, &profile));
    println!("{}", assumed(&ranked, &search, &profile, options));
    match options.verify {
        Some(best) => verify(&options.input, &ranked, &now, best as usize, search.freedom),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn bar(one: &ScoredStack) -> Bar {
    let parts = Part::ALL.into_iter().map(|part| (part, one.part(part))).filter(|(_, seconds)| *seconds > 0.0);
    Bar {
        label: one.stack.to_string(),
        parts: parts.collect(),
        seconds: one.seconds,
        interval: [one.low, one.high],
        measured: None,
    }
}

fn as_json(one: &ScoredStack, now: &Stack, profile: &Profile) -> serde_json::Value {
    let sizes = one.sizes().ok();
    let parts: std::collections::BTreeMap<&str, f64> =
        Part::ALL.into_iter().map(|part| (part.name(), one.part(part))).filter(|(_, seconds)| *seconds > 0.0).collect();
    serde_json::json!({
        "stack": one.stack.to_string(),
        "now": one.stack == *now,
        "seconds": one.seconds,
        "low": one.low,
        "high": one.high.is_finite().then_some(one.high),
        "hidden": one.hidden,
        "parts": parts,
        "in_python": one.in_python(profile).map(|(library, seconds)| serde_json::json!({"library": library, "seconds": seconds})),
        "bytes_on_storage": sizes.map(|sizes| sizes.bytes()),
        "bytes_in_memory": sizes.map(|sizes| sizes.memory),
    })
}

/// The fastest first, and of those that take exactly as long the one with the fewest options only.
fn in_order(mut ranked: Vec<ScoredStack>, now: &Stack) -> Vec<ScoredStack> {
    let options = |stack: &Stack| stack.layers.len() + stack.format.options.len();
    ranked.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then(options(&a.stack).cmp(&options(&b.stack))));
    let mut kept: Vec<ScoredStack> = Vec::new();
    for one in ranked {
        let same = kept.iter().any(|known| one.same_as(known));
        if !same || one.stack == *now {
            kept.push(one);
        }
    }
    kept
}

/// Refuses what makes no sense before anything is read.
fn check(options: &AdviseOptions) -> Result<Stack> {
    let stacks = parse_stacks(&options.stack)?;
    let [stack] = stacks.as_slice() else { bail!("--stack: one stack is used now, not {}", stacks.len()) };
    hyperslab_run::open_stack(stack)?;
    for format in &options.formats {
        let modelled = || formats().iter().filter(|entry| entry.cost.is_some()).map(|entry| entry.name);
        if !modelled().any(|known| known == format) {
            let known: Vec<&str> = modelled().collect();
            bail!("--formats: there is no model of {format:?}\n  try: {}", known.join(", "));
        }
    }
    if let Some(log) = options.log_dir.as_ref().filter(|log| !log.is_dir()) {
        bail!("--log-dir: {} is no directory", log.display());
    }
    Ok(stack.clone())
}

fn list(ranked: &[ScoredStack], now: &Stack, top: usize, profile: &Profile) -> String {
    let mut table = Table::new(&[
        ("", Align::Right),
        ("stack", Align::Left),
        ("time", Align::Right),
        ("90 % from", Align::Right),
        ("to", Align::Right),
        ("in Python", Align::Right),
        ("on storage", Align::Right),
        ("memory", Align::Right),
        ("most of it", Align::Left),
        ("", Align::Left),
    ]);
    let best_high = ranked.first().map_or(0.0, |best| best.high);
    for (number, one) in ranked.iter().enumerate() {
        let present = one.stack == *now;
        if number >= top && !present {
            continue;
        }
        let close = if number > 0 && one.low <= best_high { "too close to call" } else { "" };
        let note = match (present, close) {
            (true, "") => "used now".into(),
            (true, close) => format!("used now; {close}"),
            (false, close) => close.to_owned(),
        };
        let sizes = one.sizes().ok();
        let size = |bytes: Option<u64>| bytes.map_or("?".into(), display_size);
        table.row(vec![
            (number + 1).to_string(),
            one.stack.to_string(),
            seconds(one.seconds),
            seconds(one.low),
            seconds(one.high),
            one.in_python(profile).map_or("-".into(), |(_, time)| seconds(time)),
            size(sizes.map(|sizes| sizes.bytes())),
            size(sizes.map(|sizes| sizes.memory)),
            one.most().into(),
            note,
        ]);
    }
    table.render()
}

/// Why the first is first, what it costs elsewhere, and how to have it.
fn words(ranked: &[ScoredStack], now: &Stack, profile: &Profile) -> String {
    let (Some(best), Some(present)) = (ranked.first(), ranked.iter().find(|one| one.stack == *now)) else {
        return String::new();
    };
    let mut out = String::new();
    let mut line = |text: String| out.push_str(&format!("- {text}\n"));
    if best.seconds <= 0.0 {
        return "Nothing is transferred, so there is nothing to choose.\n".into();
    }
    if best.stack == *now {
        line("what is used now is predicted to be the fastest".into());
        if let Some(second) = ranked.get(1).filter(|second| second.low <= best.high) {
            line(format!("{} is too close to call", second.stack));
        }
    } else {
        let factor = present.seconds / best.seconds;
        let sure = match best.high < present.low {
            true => "",
            false => ", but that is too close to call: it may as well be slower",
        };
        line(match factor {
            ..1.05 => format!("{} is predicted to be about as fast as {now}: there is no need to change", best.stack),
            _ => format!("{} is predicted to be {factor:.1} times faster than {now}{sure}", best.stack),
        });
        reasons::why(best, present).into_iter().for_each(&mut line);
    }
    reasons::costs(best, present).into_iter().for_each(&mut line);
    reasons::smaller(ranked, best).into_iter().for_each(&mut line);
    out.push_str(&ways(ranked, best, present, profile));
    out
}

/// What of the gain is had with libraries as they are, below the connector, and by Hyperslab itself.
fn ways(ranked: &[ScoredStack], best: &ScoredStack, present: &ScoredStack, profile: &Profile) -> String {
    let mut headers = best.works.iter().flat_map(|work| &work.workload.header.arrays).map(|array| &array.spec.filters);
    let first = headers.next().cloned().unwrap_or_default();
    let kept = headers.all(|filters| *filters == first).then_some(first.as_slice());
    let in_python = |one: &ScoredStack| one.in_python(profile).map(|(_, time)| time);
    // What a library of Python gains is less than what the storage below it does.
    let gain = |one: &ScoredStack, python: bool| {
        let both = in_python(one).zip(in_python(present)).filter(|_| python);
        let (after, before) = both.unwrap_or((one.seconds, present.seconds));
        let (factor, sure) = (before / after.max(1e-12), one.high < present.low);
        (one.stack != present.stack && factor >= WORTH_A_CHANGE)
            .then(|| format!("{factor:.1} times faster{}", if sure { "" } else { ", too close to call" }))
    };
    let mut out = "\nSettings\n".to_owned();
    let mut section =
        |(title, python): (&str, bool), found: Option<&ScoredStack>, lines: &dyn Fn(&ScoredStack) -> Vec<String>| {
            match found.and_then(|one| Some((one, gain(one, python)?))) {
                Some((one, gain)) => {
                    out.push_str(&format!("  {title}: {}, {gain}\n", one.stack));
                    lines(one).iter().for_each(|line| out.push_str(&format!("    {line}\n")));
                }
                None => out.push_str(&format!("  {title}: leave it as it is\n")),
            }
        };
    for (library, title) in
        [(PythonLibrary::H5py, "With h5py or netCDF4 as they are"), (PythonLibrary::ZarrPython, "With zarr-python")]
    {
        let by = |one: &&ScoredStack| one.in_python(profile).filter(|(by, _)| *by == library).map(|(_, time)| time);
        let least = ranked.iter().filter(|one| by(one).is_some());
        let least = least.min_by(|a, b| by(a).unwrap_or(f64::MAX).total_cmp(&by(b).unwrap_or(f64::MAX)));
        if least.is_some() {
            section((title, true), least, &|one| settings(&one.stack, kept).libraries);
        }
    }
    let below = ranked.iter().find(|one| settings(&one.stack, kept).connector.is_some());
    section(("With hyperslab run", false), below, &|one| {
        let words = settings(&one.stack, kept);
        let changes = one.stack.format.options.iter().any(|(key, _)| key != "plane");
        words.libraries.into_iter().filter(|_| changes).chain(words.connector).collect()
    });
    section(("With Hyperslab itself", false), Some(best), &|one| {
        let words = settings(&one.stack, kept);
        words.benchmarks.into_iter().chain([own(&one.stack)]).collect()
    });
    out
}

/// What was taken for granted, and what was not compared.
fn assumed(ranked: &[ScoredStack], search: &Search<'_>, profile: &Profile, options: &AdviseOptions) -> String {
    let mut lines: Vec<String> = Vec::new();
    if !options.input.cold {
        lines.push("files are in memory; --cold predicts for files that are not".into());
    }
    let headers = || ranked.iter().flat_map(|one| one.works.iter().map(|work| &work.workload.header));
    if ranked.iter().any(ScoredStack::codes) {
        lines.push(search.data.words(headers().any(|header| header.recorded.is_some())));
    }
    lines.push("all elements of arrays are written, which decides what is on storage".into());
    if search.left > 0 {
        lines.push(format!(
            "this answer is partial: {} more stacks were not compared, so that it comes soon",
            search.left
        ));
    }
    if !search.freedom.own_layers {
        lines.push("layers were not compared: benchmarks of the workflow ask for different MODEs".into());
    }
    match profile.alignment.iter().all(|known| known.read == 1.0 && known.write == 1.0) {
        _ if profile.alignment.is_empty() => {
            lines.push("alignment was not compared: hyperslab train has not measured it".into());
        }
        true => lines.push("alignment made no difference when this machine was measured".into()),
        false => {}
    }
    if ranked.iter().flat_map(|one| &one.works).any(|work| work.prediction.unknown_ranks) {
        lines.push(UNKNOWN_RANKS.into());
    }
    lines.extend(guesses(ranked.iter().flat_map(|one| one.works.iter().map(|work| &work.prediction))));
    let unmeasured =
        [PythonLibrary::H5py, PythonLibrary::ZarrPython].iter().any(|one| !profile.python.contains_key(one));
    lines.push(match unmeasured {
        true => {
            "times in Python are with ordinary costs of its calls; hyperslab train --python measures those here".into()
        }
        false => "times in Python are with the costs of its calls that were measured here".into(),
    });
    let unknown: std::collections::BTreeSet<&str> = ranked.iter().flat_map(ScoredStack::unknown).collect();
    if !unknown.is_empty() {
        let names: Vec<&str> = unknown.into_iter().collect();
        lines.push(format!(
            "the profile does not know what the layers {} cost, so they are taken to cost nothing; run hyperslab train again",
            names.join(", ")
        ));
    }
    if headers().any(|header| header.ranks > 1) && !ranked.iter().any(|one| one.stack.has_layer("twophase")) {
        lines.push(match search.collective {
            true => "collective transfers by aggregators (twophase) would gain nothing".into(),
            false => {
                "collective transfers were not compared: ranks make different ones, or --transfers says how".into()
            }
        });
    }
    let lines: String = lines.iter().map(|line| format!("- {line}\n")).collect();
    format!("Assumed\n{}", lines.trim_end())
}
