//! Simulated cases as text and JSON.

use super::SimulatedOutcome;
use crate::table::{Align, Table, wrapped};
use crate::terminal;
use anyhow::{Context, Result};
use hyperslab_core::units::display_size;
use hyperslab_sim::System;
use serde_json::json;

/// A time for people.
pub fn seconds(value: f64) -> String {
    match value {
        v if !v.is_finite() => "?".into(),
        v if v >= 100.0 => format!("{v:.0} s"),
        v if v >= 10.0 => format!("{v:.1} s"),
        v if v >= 1.0 => format!("{v:.2} s"),
        v if v >= 0.1 => format!("{:.0} ms", v * 1e3),
        v if v >= 1e-3 => format!("{:.2} ms", v * 1e3),
        v => format!("{:.1} us", v * 1e6),
    }
}

/// An interval for people.
pub fn between([low, high]: [f64; 2]) -> String {
    format!("{} to {}", seconds(low), seconds(high))
}

/// A rate for people.
pub fn rate(bytes: f64) -> String {
    format!("{}/s", display_size(bytes.clamp(0.0, 1e18) as u64))
}

/// The table, and words about each case.
pub fn words(outcomes: &[SimulatedOutcome], system: &System) -> String {
    let mut table = Table::new(&[
        ("case", Align::Left),
        ("stack", Align::Left),
        ("ranks", Align::Right),
        ("data", Align::Right),
        ("time", Align::Right),
        ("half within", Align::Right),
        ("90 % within", Align::Right),
        ("rate", Align::Right),
    ]);
    for one in outcomes {
        let simulated = &one.simulated;
        let bytes = (simulated.written + simulated.read).clamp(0.0, 1e18);
        let [half, ninety] = [one.intervals.half, one.intervals.ninety];
        table.row(vec![
            one.label.clone(),
            one.stack.to_string(),
            one.walked.ranks.to_string(),
            display_size(bytes as u64),
            seconds(simulated.seconds),
            between(half),
            between(ninety),
            rate(simulated.rate()),
        ]);
    }
    let width = terminal::width().unwrap_or(80).clamp(40, 100);
    let mut text = format!("Simulated on {}: {}\n\n", system.name, system.about);
    text = wrapped(text.trim_end(), width, 2)
        + "\n"
        + &table.dropping(&["half within", "ranks", "data", "rate"]).render()
        + "\n";
    for one in outcomes {
        text += &wrapped(&explained(one, system, outcomes.len() > MOST_EXPLAINED), width, 2);
        text.push('\n');
    }
    for line in notes(outcomes, system) {
        text += &wrapped(&format!("note: {line}"), width, 6);
    }
    text
}

/// Cases of which more is said than what limits them.
const MOST_EXPLAINED: usize = 4;

/// What limits a case, in words.
fn explained(one: &SimulatedOutcome, system: &System, short: bool) -> String {
    let limits = &one.limits;
    let mut text = format!("{} on {}: ", one.label, one.stack);
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    match limits.resources.as_slice() {
        [] => text += "it moves nothing.",
        [only] => text += &format!("all the time goes to {}.", only.name),
        [first, next, rest @ ..] => {
            text += &format!(
                "the bottleneck is {} ({} of the time, {}); next come {} ({})",
                first.name,
                percent(first.share),
                seconds(first.seconds),
                next.name,
                percent(next.share),
            );
            let rest: Vec<String> = rest
                .iter()
                .filter(|one| one.share >= 0.01)
                .take(4)
                .map(|one| format!("{} {}", one.name, percent(one.share)))
                .collect();
            text += &if rest.is_empty() { ".".to_owned() } else { format!("; {}.", rest.join(", ")) };
        }
    }
    if one.simulated.compute > 0.0 {
        text += &format!(
            " The program computes for {}; {} of I/O are hidden.",
            seconds(one.simulated.compute),
            seconds(one.simulated.hidden)
        );
    }
    if short {
        return text;
    }
    if let Some(ranks) = limits.saturation_ranks {
        text += &match ranks < one.walked.ranks as f64 {
            true => format!(" Storage is saturated from about {ranks:.0} ranks of this kind on."),
            false => format!(" Storage would be saturated by about {ranks:.0} ranks of this kind."),
        };
    }
    let now = one.simulated.seconds;
    let mut gains: Vec<String> = Vec::new();
    for gain in &limits.gains {
        let saved = now - gain.seconds;
        if saved > 0.005 * now {
            gains.push(format!("one more {} saves {} ({})", gain.more, seconds(saved), percent(saved / now)));
        }
    }
    if gains.is_empty() {
        text += " One more server, node or disk changes next to nothing.";
    } else {
        text += &format!(" Of what could be bought, {}.", gains.join("; "));
    }
    let stripes = format!(" {} targets, stripes of {}", one.run.stripe_count, display_size(one.run.stripe_size));
    text + &format!(" (On {} of {}:{stripes}.)", nodes(one.walked.nodes), system.name)
}

fn nodes(number: usize) -> String {
    if number == 1 { "1 node".into() } else { format!("{number} nodes") }
}

/// What the reader should know.
fn notes(outcomes: &[SimulatedOutcome], system: &System) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut add = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    for one in outcomes {
        one.intervals.reasons.iter().for_each(|reason| add(format!("the intervals are wide: {reason}")));
        if one.walked.looked_at < one.walked.ranks {
            add(format!(
                "{} of {} ranks were walked through; the others are taken to be like them",
                one.walked.looked_at, one.walked.ranks
            ));
        }
    }
    let assumed: Vec<&str> =
        system.figures().iter().filter(|(_, value, _)| value.is_assumed()).map(|(name, ..)| *name).collect();
    if !assumed.is_empty() {
        add(format!("of {}, these are assumed: {}", system.name, assumed.join(", ")));
    }
    notes
}

/// The same for programs.
pub fn json(outcomes: &[SimulatedOutcome], system: &System) -> Result<String> {
    let one = |one: &SimulatedOutcome| {
        json!({
            "case": one.label,
            "stack": one.stack.to_string(),
            "ranks": one.walked.ranks,
            "nodes": one.walked.nodes,
            "ranks_walked": one.walked.looked_at,
            "stripe_count": one.run.stripe_count,
            "stripe_size": one.run.stripe_size,
            "simulated": one.simulated,
            "bytes_per_second": one.simulated.rate(),
            "intervals": one.intervals,
            "limits": one.limits,
        })
    };
    let all = json!({
        "hyperslab_simulation": 1,
        "system": system.name,
        "calibrated_on_runs": system.calibration.runs,
        "cases": outcomes.iter().map(one).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&all).context("print the simulation")
}
