//! `simulate --reproduce`: published tables beside simulated ones.

use crate::table::{Align, Table};
use anyhow::{Context, Result, bail};
use hyperslab_sim::{Accuracy, PARAMETERS, RowGroup, TableReproduction, TimingParameters, builtin};
use serde_json::json;
use std::process::ExitCode;

/// Prints what was asked for.
pub fn reproduce(name: &str, as_json: bool) -> Result<ExitCode> {
    if !["all", "tables"].contains(&name) {
        bail!("--reproduce {name}: tables can be reproduced");
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
        ("table", Align::Left),
        ("row", Align::Left),
        ("MiB/s", Align::Right),
        ("known", Align::Right),
        ("error", Align::Right),
        ("unknown", Align::Right),
        ("error", Align::Right),
        ("elsewhere", Align::Left),
    ]);
    for one in &found.rows {
        let rate = one.row.rate[1];
        table.row(vec![
            one.row.table.clone(),
            one.row.words(),
            format!("{rate:.0}"),
            format!("{:.0}", one.known),
            percent(one.known, rate),
            format!("{:.0}", one.unknown),
            percent(one.unknown, rate),
            if one.elsewhere { "yes".into() } else { String::new() },
        ]);
    }
    let words = "known: simulated with timings fitted to all tables; unknown: with timings fitted to the other tables;\n\
                 elsewhere: the same run stands in another table, which that fit knew.\n";
    table.dropping(&["elsewhere", "table"]).render() + words
}

const GROUPS: [Option<RowGroup>; 4] =
    [None, Some(RowGroup::Contiguous), Some(RowGroup::ChunkedDisjoint), Some(RowGroup::ChunkedInterleaved)];

fn accuracies(found: &TableReproduction) -> String {
    let mut table = Table::new(&[
        ("rows", Align::Left),
        ("", Align::Right),
        ("predicted by", Align::Left),
        ("rank correlation", Align::Right),
        ("median error", Align::Right),
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
    table.render()
}

fn parameters(found: &TableReproduction) -> String {
    let mut table = Table::new(&[("parameter", Align::Left), ("value", Align::Right), ("+-", Align::Right)]);
    let values = found.fitted.timing.values();
    for (at, name) in TimingParameters::NAMES.iter().enumerate() {
        let deviation = format!("{:.0} %", found.fitted.deviations[at] * 100.0);
        table.row(vec![(*name).into(), format!("{:.4e}", values[at]), deviation]);
    }
    let mut text = format!("{PARAMETERS} parameters are fitted:\n{}", table.render());
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
