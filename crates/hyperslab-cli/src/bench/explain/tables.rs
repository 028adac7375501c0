//! The tables of a run.

use super::{peers, rate, seconds, stem, verdict, with_spread};
use crate::table::{Align, Table};
use crate::terminal::paint;
use hyperslab_core::units::display_size;
use hyperslab_run::{CaseResult, RankMeasurement, Results, Spread, Status};
use std::collections::BTreeSet;

/// Width of the bars.
const BAR: usize = 12;

/// One row per case, with a bar of its rate against the fastest comparable case.
pub fn table(results: &Results) -> String {
    let axes: BTreeSet<&String> = results.cases.iter().flat_map(|case| case.axes.keys()).collect();
    let mut columns = vec![("case".to_owned(), Align::Right), ("benchmark".into(), Align::Left)];
    columns.extend(axes.iter().map(|axis| ((*axis).clone(), Align::Right)));
    let others = [
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
    ];
    columns.extend(others.map(|(name, align)| (name.to_owned(), align)));
    let mut table = Table::new(&columns);
    for case in &results.cases {
        let ok = !case.repetitions.is_empty();
        let shown = |text: String| if ok { text } else { "-".into() };
        let fastest = peers(results, case).map(|c| c.observed_rate.median).fold(0.0, f64::max);
        let middle = |time: fn(&RankMeasurement) -> f64| {
            seconds(Spread::of(case.repetitions.iter().map(|r| r.slowest(time))).median)
        };
        let mut row = vec![case.number.to_string(), case.benchmark.clone()];
        let value = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        row.extend(axes.iter().map(|axis| case.axes.get(*axis).map_or("-".into(), value)));
        row.extend([
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
        table.row(row);
    }
    let (fewest, launcher) = results.cases.first().map_or((0, ""), |case| (case.ranks, case.launcher.as_str()));
    let ranks = match results.cases.iter().map(|case| case.ranks).max() {
        Some(most) if most != fewest => format!("{fewest} to {most}"),
        _ => fewest.to_string(),
    };
    format!(
        "\n{ranks} ranks ({launcher}), {} on {}\n\n{}",
        results.machine.file_system,
        results.machine.processor,
        paint(&table.dropping(&["", "flush+close", "open+metadata", "raw rate", "cache", "data", "time"]).render())
    )
}

/// The rate of every stack beside each other, when there are several.
pub fn side_by_side(results: &Results) -> Option<String> {
    let mut stacks: Vec<String> = Vec::new();
    let mut rows: Vec<&CaseResult> = Vec::new();
    for case in &results.cases {
        let stack = case.stack.to_string();
        if !stacks.contains(&stack) {
            stacks.push(stack);
        }
        if !rows.iter().any(|row| same(row, case)) {
            rows.push(case);
        }
    }
    // Keys of a workflow may give its benchmarks different stacks; then there is nothing to compare.
    let compared = |row: &&CaseResult| results.cases.iter().any(|case| same(row, case) && case.stack != row.stack);
    if !rows.iter().any(compared) {
        return None;
    }
    let mut columns = vec![
        ("benchmark".to_owned(), Align::Left),
        ("file".into(), Align::Left),
        ("cache".into(), Align::Left),
        ("data".into(), Align::Right),
    ];
    columns.extend(stacks.iter().map(|stack| (stack.clone(), Align::Right)));
    let mut table = Table::new(&columns);
    for row in rows {
        let mut cells = vec![row.benchmark.clone(), stem(row).into(), row.cache.name().into(), display_size(row.bytes)];
        let fastest = peers(results, row).map(|c| c.observed_rate.median).fold(0.0, f64::max);
        cells.extend(stacks.iter().map(|stack| {
            let case = results.cases.iter().find(|case| case.stack.to_string() == *stack && same(row, case));
            match case {
                Some(case) if case.status == Status::Ok && fastest > 0.0 => {
                    format!("{} {:.2}x", rate(case.observed_rate.median), case.observed_rate.median / fastest)
                }
                Some(case) => verdict(case).into(),
                None => String::new(),
            }
        }));
        table.row(cells);
    }
    Some(format!(
        "Side by side (observed rate; x: part of the fastest)\n\n{}",
        table.dropping(&["file", "cache", "data"]).render()
    ))
}

/// Whether two cases are one row: the same work on other stacks.
fn same(a: &CaseResult, b: &CaseResult) -> bool {
    super::is_same_work(a, b)
}

/// How long single transfer calls took, and which ranks were fastest and slowest.
pub fn calls(results: &Results) -> Option<String> {
    let mut table = Table::new(&[
        ("case", Align::Right),
        ("call", Align::Left),
        ("number", Align::Right),
        ("p50", Align::Right),
        ("p90", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
        ("fastest rank", Align::Right),
        ("slowest rank", Align::Right),
    ]);
    let mut any = false;
    for case in results.cases.iter().filter(|case| !case.repetitions.is_empty()) {
        let rank = |figures: &Option<hyperslab_run::RankBalance>| {
            figures.as_ref().map_or("-".into(), |f| format!("{}: {}", f.rank, seconds(f.own)))
        };
        for (name, latency) in case.operations.iter().filter(|(name, _)| ["write", "read"].contains(&name.as_str())) {
            any = true;
            table.row(vec![
                case.number.to_string(),
                name.clone(),
                latency.count.to_string(),
                seconds(latency.p50),
                seconds(latency.p90),
                seconds(latency.p99),
                seconds(latency.max),
                rank(&case.fastest_rank),
                rank(&case.slowest_rank),
            ]);
        }
    }
    any.then(|| {
        format!(
            "Transfer calls of all ranks and repetitions; time of a rank in all its calls\n\n{}",
            table.dropping(&["fastest rank", "p90", "slowest rank", "number"]).render()
        )
    })
}

fn bar(part: f64) -> String {
    let filled = ((part * BAR as f64).round() as usize).clamp(1, BAR);
    "█".repeat(filled)
}
