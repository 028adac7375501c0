//! A comparison for people.

use super::{Compared, Comparison, Verdict};
use crate::cli::{CompareOptions, Metric};
use crate::table::{Align, Table};
use crate::terminal::{paint, plain};
use hyperslab_core::units::display_size;
use hyperslab_run::CaseResult;
use std::fmt::Write;

/// Table, verdicts in words, and everything that was not compared.
pub fn text(comparison: &Comparison<'_>, options: &CompareOptions) -> String {
    let mut out = format!("A: {}\nB: {}\n\n", plain(&comparison.a), plain(&comparison.b));
    if !comparison.compared.is_empty() {
        out.insert_str(0, &verdicts(comparison, options));
    }
    if !comparison.compared.is_empty() {
        out.push_str(&table(comparison, options));
        out.push('\n');
    }
    for (case, why) in &comparison.left_out {
        let _ = writeln!(
            out,
            "not compared: case {} ({} on {}): {}",
            case.number,
            plain(&case.benchmark),
            plain(&case.stack.to_string()),
            plain(why)
        );
    }
    if comparison.broke {
        out.push_str("A case that succeeded in the first file failed in the second: that counts as a regression.\n");
    }
    for warning in &comparison.warnings {
        let _ = writeln!(out, "note: {}.", plain(warning));
    }
    out
}

fn table(comparison: &Comparison<'_>, options: &CompareOptions) -> String {
    let mut table = Table::new(&[
        ("case", Align::Right),
        ("benchmark", Align::Left),
        ("stack", Align::Left),
        ("cache", Align::Left),
        ("ranks", Align::Right),
        ("A", Align::Right),
        ("B", Align::Right),
        ("B/A", Align::Right),
        ("95 % interval", Align::Left),
        ("verdict", Align::Left),
    ]);
    for c in &comparison.compared {
        let case = c.pair.a;
        table.row(vec![
            c.pair.numbers(),
            plain(&case.benchmark),
            stacks(c),
            case.cache.name().into(),
            case.ranks.to_string(),
            figure(c.medians[0], case, options.metric),
            figure(c.medians[1], c.pair.b, options.metric),
            format!("{:.3}", c.ratio.value),
            c.ratio.interval.map_or("none".into(), |[low, high]| format!("{low:.3} to {high:.3}")),
            c.verdict.word().into(),
        ]);
    }
    paint(&table.dropping(&["cache", "ranks", "95 % interval", "case"]).render())
}

/// The stack, or both if they differ.
fn stacks(compared: &Compared<'_>) -> String {
    let (a, b) = (compared.pair.a.stack.to_string(), compared.pair.b.stack.to_string());
    plain(&if a == b { a } else { format!("{a} -> {b}") })
}

/// A rate, or the time of a run that moves no bytes.
fn figure(value: f64, case: &CaseResult, metric: Metric) -> String {
    if metric == Metric::Observed && case.bytes == 0 {
        return format!("{:.3} ms", 1e3 / value);
    }
    format!("{}/s", display_size(value as u64))
}

fn verdicts(comparison: &Comparison<'_>, options: &CompareOptions) -> String {
    let mut out = format!(
        "{} rates, B against A, threshold {} %:",
        if options.metric == Metric::Raw { "Raw" } else { "Observed" },
        options.threshold
    );
    for verdict in [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::CannotTell] {
        let count = comparison.compared.iter().filter(|c| c.verdict == verdict).count();
        if count > 0 {
            let _ = write!(out, " {count} {};", verdict.word());
        }
    }
    out.pop();
    out.push_str(".\n");
    if comparison.compared.iter().any(|c| c.verdict == Verdict::CannotTell) {
        out.push_str(
            "Cannot tell: the repetitions spread too widely for this threshold; use more of them, or larger data.\n",
        );
    }
    out
}
