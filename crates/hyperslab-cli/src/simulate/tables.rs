//! `simulate --reproduce`: published tables beside simulated ones.

use crate::table::{Align, Table, wrapped};
use anyhow::{Context, Result, bail};
use hyperslab_sim::{Accuracy, PARAMETERS, RowGroup, TableReproduction, TimingParameters, builtin};
use serde_json::json;
use std::process::ExitCode;

/// Prints what was asked for.
pub fn reproduce(name: &str, as_json: bool) -> Result<ExitCode> {
    if name != "tables" {
        bail!("--reproduce {name}: only tables can be reproduced\n  try: hyperslab simulate --reproduce tables");
    }
    let system = builtin("lustre-2014")?;
    let found = TableReproduction::of(&system)?;
    if as_json {
        println!("{}", serde_json::to_string_pretty(&as_value(&found)).context("print the tables")?);
        return Ok(ExitCode::SUCCESS);
    }
    print!("{}", rows(&found));
    println!("\n{}", accuracies(&found));
    println!("{}", parameters(&found));
    Ok(ExitCode::SUCCESS)
}

fn percent(found: f64, known: f64) -> String {
    format!("{:+.0} %", (found / known - 1.0) * 100.0)
}

fn rows(found: &TableReproduction) -> String {
    let mut table = Table::new(&[
        ("row", Align::Left),
        ("MiB/s", Align::Right),
        ("known", Align::Right),
        ("unknown", Align::Right),
        ("elsewhere", Align::Left),
    ]);
    for one in &found.rows {
        let rate = one.row.rate[1];
        table.row(vec![
            format!("{} {}", one.row.table, one.row.words()),
            format!("{rate:.0}"),
            percent(one.known, rate),
            percent(one.unknown, rate),
            if one.elsewhere { "yes".into() } else { String::new() },
        ]);
    }
    let words = "MiB/s: published. known: error with parameters fitted to all tables; unknown: with parameters fitted to the \
                 other tables; elsewhere: the same run stands in another table, which that fit knew. Leaving out a table \
                 leaves out values of parameters only: the form of the model was chosen while looking at all rows \
                 (docs/simulator.md).";
    table.dropping(&["elsewhere"]).render() + &wrapped(words, 80, 0)
}

const GROUPS: [Option<RowGroup>; 4] =
    [None, Some(RowGroup::Contiguous), Some(RowGroup::ChunkedDisjoint), Some(RowGroup::ChunkedInterleaved)];

fn accuracies(found: &TableReproduction) -> String {
    let mut table = Table::new(&[
        ("rows", Align::Left),
        ("n", Align::Right),
        ("predicted by", Align::Left),
        ("correlation", Align::Right),
        ("median", Align::Right),
        ("90 %", Align::Right),
    ]);
    for group in GROUPS {
        let all = [
            ("model that knew them", found.accuracy(group, |row| row.known)),
            ("model that did not", found.accuracy(group, |row| row.unknown)),
            ("nearest known row", found.accuracy(group, |row| row.nearest)),
        ];
        for (by, Accuracy { rows, correlation, median, ninety, .. }) in all {
            table.row(vec![
                group.map_or("all", RowGroup::name).into(),
                rows.to_string(),
                by.into(),
                format!("{correlation:.3}"),
                format!("{:.1} %", median * 100.0),
                format!("{:.1} %", ninety * 100.0),
            ]);
        }
    }
    let words = "correlation: Spearman's, of ranks; median and 90 %: of absolute errors. The nearest known row is a simple \
                 look-up; better ones are possible (docs/simulator.md).";
    table.render() + &wrapped(words, 80, 0)
}

fn parameters(found: &TableReproduction) -> String {
    let mut table = Table::new(&[
        ("parameter", Align::Left),
        ("value", Align::Right),
        ("+-", Align::Right),
        ("rows", Align::Right),
    ]);
    let values = found.fitted.timing.values();
    for (at, name) in TimingParameters::NAMES.iter().enumerate() {
        let deviation = format!("{:.0} %", found.fitted.deviations[at] * 100.0);
        table.row(vec![(*name).into(), format!("{:.4e}", values[at]), deviation, found.rests_on[at].to_string()]);
    }
    let mut text = format!("{PARAMETERS} parameters are fitted:\n{}", table.render());
    text += "rows: different ones that change by more than 2 % if it is a fifth larger.\n";
    for (a, b, correlation) in &found.fitted.alike {
        text += &format!("{a} and {b} cannot be told apart (correlation {correlation:.2})\n");
    }
    text
}

fn as_value(found: &TableReproduction) -> serde_json::Value {
    let rows: Vec<_> = found
        .rows
        .iter()
        .map(|one| {
            json!({
                "table": one.row.table,
                "row": one.row.words(),
                "published": one.row.rate[1],
                "known": one.known,
                "unknown": one.unknown,
                "nearest": one.nearest,
                "elsewhere": one.elsewhere,
            })
        })
        .collect();
    let of = |accuracy: Accuracy| {
        json!({
            "rows": accuracy.rows,
            "correlation": accuracy.correlation,
            "median_error": accuracy.median,
            "error_90": accuracy.ninety,
        })
    };
    let groups: Vec<_> = GROUPS
        .iter()
        .map(|group| {
            json!({
                "rows": group.map_or("all", RowGroup::name),
                "known": of(found.accuracy(*group, |row| row.known)),
                "unknown": of(found.accuracy(*group, |row| row.unknown)),
                "nearest": of(found.accuracy(*group, |row| row.nearest)),
            })
        })
        .collect();
    let timing: serde_json::Map<String, serde_json::Value> = TimingParameters::NAMES
        .iter()
        .zip(found.fitted.timing.values())
        .map(|(name, value)| ((*name).into(), json!(value)))
        .collect();
    json!({ "rows": rows, "accuracy": groups, "timing": timing })
}
