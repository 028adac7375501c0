//! Results as a table and in words.

use crate::table::{Align, Table};
use hyperslab_core::units::display_size;
use hyperslab_run::{Cache, CaseResult, Results, Status, Verified};
use std::fmt::Write;

/// Width of the bars.
const BAR: usize = 12;

/// Cases that can be compared: the same benchmark in the same state of the cache.
fn peers<'a>(results: &'a Results, case: &'a CaseResult) -> impl Iterator<Item = &'a CaseResult> {
    results.cases.iter().filter(move |other| {
        other.benchmark == case.benchmark
            && other.workload == case.workload
            && other.cache == case.cache
            && other.status == Status::Ok
    })
}

/// One row per case, with a bar of its rate against the fastest comparable case.
pub fn table(results: &Results) -> String {
    let mut table = Table::new(&[
        ("case", Align::Right),
        ("benchmark", Align::Left),
        ("stack", Align::Left),
        ("cache", Align::Left),
        ("data", Align::Right),
        ("time", Align::Right),
        ("rate", Align::Right),
        ("", Align::Left),
        ("raw rate", Align::Right),
        ("open+metadata", Align::Right),
        ("flush+close", Align::Right),
        ("verified", Align::Left),
    ]);
    for case in &results.cases {
        let ok = !case.repetitions.is_empty();
        let shown = |text: String| if ok { text } else { "-".into() };
        let fastest = peers(results, case).map(|c| c.observed_rate.median).fold(0.0, f64::max);
        let middle = |time: fn(&hyperslab_run::RankMeasurement) -> f64| {
            seconds(hyperslab_run::Spread::of(case.repetitions.iter().map(|r| r.slowest(time))).median)
        };
        table.row(vec![
            case.number.to_string(),
            case.benchmark.clone(),
            case.stack.to_string(),
            case.cache.name().into(),
            display_size(case.bytes),
            shown(with_spread(&case.observed, seconds)),
            shown(with_spread(&case.observed_rate, rate)),
            if ok && fastest > 0.0 { bar(case.observed_rate.median / fastest) } else { String::new() },
            shown(rate(case.raw_rate.median)),
            shown(middle(|m| m.metadata + m.open_file)),
            shown(middle(|m| m.flush + m.close_file)),
            verdict(case).into(),
        ]);
    }
    let ranks = results.cases.first().map_or(0, |case| case.ranks);
    format!(
        "\n{ranks} ranks (threads), {} on {}\n\n{}",
        results.machine.file_system,
        results.machine.processor,
        table.render()
    )
}

fn verdict(case: &CaseResult) -> &'static str {
    match (case.status, case.verified) {
        (Status::Failed, _) => "FAILED",
        (Status::Skipped, _) => "skipped",
        (Status::Interrupted, _) => "stopped",
        (Status::Planned, _) => "not run",
        (Status::Ok, Verified::Yes) => "yes",
        (Status::Ok, Verified::NotAsked) => "not asked",
        (Status::Ok, Verified::Impossible) => "keeps no data",
        (Status::Ok, Verified::No) => "NO",
    }
}

fn seconds(value: f64) -> String {
    if value < 1e-3 {
        format!("{:.1} us", value * 1e6)
    } else if value < 1.0 {
        format!("{:.1} ms", value * 1e3)
    } else {
        format!("{value:.3} s")
    }
}

fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", display_size(bytes_per_second as u64))
}

/// The median, and how far the repetitions lie around it.
fn with_spread(spread: &hyperslab_run::Spread, show: fn(f64) -> String) -> String {
    let middle = show(spread.median);
    if spread.count < 2 || spread.median <= 0.0 {
        return middle;
    }
    let half = (spread.max - spread.min) / 2.0 / spread.median * 100.0;
    format!("{middle} ±{half:.0}%")
}

fn bar(part: f64) -> String {
    let filled = ((part * BAR as f64).round() as usize).clamp(1, BAR);
    "█".repeat(filled)
}

/// What MODE asked for and what ran.
pub fn modes(plan: &super::plan::Plan, results: &Results) -> String {
    let asked: Vec<(usize, &'static str)> =
        plan.cases.iter().filter_map(|case| Some((case.number, case.report.mode()?))).collect();
    let ran = |number: usize| results.cases.iter().any(|c| c.number == number && !c.repetitions.is_empty());
    let not: Vec<String> =
        asked.iter().filter(|(n, _)| !ran(*n)).map(|(n, mode)| format!("case {n} ({mode}) did not run")).collect();
    let good = asked.len() - not.len();
    format!("Modes: {good} of {} cases ran in the mode they ask for. {}", asked.len(), not.join("; "))
}

/// Who won, by how much, and what to keep in mind.
pub fn words(results: &Results) -> String {
    let mut out = String::new();
    let mut said: Vec<(&str, &str, Cache)> = Vec::new();
    for case in results.cases.iter().filter(|c| c.status == Status::Ok) {
        let key = (case.benchmark.as_str(), case.workload.as_str(), case.cache);
        if said.contains(&key) {
            continue;
        }
        said.push(key);
        let mut ranked: Vec<&CaseResult> = peers(results, case).collect();
        ranked.sort_by(|a, b| b.observed_rate.median.total_cmp(&a.observed_rate.median));
        let Some((best, others)) = ranked.split_first() else { continue };
        if others.is_empty() {
            continue;
        }
        let slower: Vec<String> = others
            .iter()
            .map(|o| format!("{} {:.2}x", o.stack, o.observed_rate.median / best.observed_rate.median))
            .collect();
        let close = best.observed_rate.count > 1 && best.observed_rate.min <= others[0].observed_rate.max;
        let _ = writeln!(
            out,
            "{} {}: {} was fastest at {}; against it {}.{}",
            case.cache.name(),
            case.benchmark,
            best.stack,
            rate(best.observed_rate.median),
            slower.join(", "),
            if close { " Its repetitions overlap with the next one's: too close to call." } else { "" }
        );
    }
    if results.cases.iter().any(|c| c.cache == Cache::Warm && c.status == Status::Ok) {
        out.push_str("Warm figures are those of the page cache, not of the storage device.\n");
    }
    let repeats = results.cases.iter().map(|c| c.repetitions.len()).max().unwrap_or(0);
    if repeats == 1 {
        out.push_str("One run each: differences below a few ten percent mean nothing; use --repeat 5 or more.\n");
    }
    let mut warnings: Vec<&String> = results.cases.iter().flat_map(|c| &c.warnings).collect();
    warnings.sort();
    warnings.dedup();
    for warning in warnings {
        let _ = writeln!(out, "note: {warning}.");
    }
    for case in results.cases.iter().filter(|c| c.status != Status::Ok) {
        let why = case.error.as_deref().unwrap_or("not reached");
        let _ = writeln!(out, "case {} {}: {}", case.number, verdict(case), why);
    }
    out
}
