//! Published tables beside simulated ones.

use crate::table::{Align, Table, wrapped};
use hyperslab_sim::{Accuracy, PARAMETERS, RowGroup, TableReproduction, TimingParameters};
use serde_json::json;

fn percent(found: f64, known: f64) -> String {
    format!("{:+.0} %", (found / known - 1.0) * 100.0)
}

/// Every row of `wanted`, or of all tables.
pub fn rows(found: &TableReproduction, wanted: Option<&str>) -> Table {
    let mut table = Table::new(&[
        ("row", Align::Left),
        ("MiB/s", Align::Right),
        ("range", Align::Right),
        ("simulated", Align::Right),
        ("known", Align::Right),
        ("unknown", Align::Right),
        ("elsewhere", Align::Left),
    ]);
    for one in found.rows.iter().filter(|one| wanted.is_none_or(|name| one.row.table == name)) {
        let rate = one.row.rate[1];
        table.row(vec![
            format!("{} {}", one.row.table, one.row.words()),
            format!("{rate:.0}"),
            format!("{:.0}-{:.0}", one.row.rate[0], one.row.rate[2]),
            format!("{:.0}", one.unknown),
            percent(one.known, rate),
            percent(one.unknown, rate),
            if one.elsewhere { "yes".into() } else { String::new() },
        ]);
    }
    table.dropping(&["elsewhere", "range", "simulated"])
}

/// What the columns of [`rows`] mean.
pub const ROW_WORDS: &str = "MiB/s: published mean; range: smallest and largest of three runs; simulated: by a fit to the other \
    tables. known: error with parameters fitted to all tables; unknown: with parameters fitted to the other tables; \
    elsewhere: the same run stands in another table, which that fit knew. Leaving out a table leaves out values of \
    parameters only: the form of the model was chosen while looking at all rows (docs/simulator.md).";

const GROUPS: [Option<RowGroup>; 4] =
    [None, Some(RowGroup::Contiguous), Some(RowGroup::ChunkedDisjoint), Some(RowGroup::ChunkedInterleaved)];

/// How good that is, for each group of rows.
pub fn accuracies(found: &TableReproduction) -> Table {
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
    table
}

/// What the columns of [`accuracies`] mean.
pub const ACCURACY_WORDS: &str = "correlation: Spearman's, of ranks; median and 90 %: of absolute errors. The nearest known row is \
    a simple look-up; better ones are possible (docs/simulator.md).";

/// The parameters of the fit to all tables.
pub fn parameters(found: &TableReproduction) -> Table {
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
    table
}

/// What is to be said of them.
pub fn parameter_words(found: &TableReproduction) -> String {
    let mut text = format!(
        "{PARAMETERS} parameters are fitted. rows: different ones that change by more than 2 % if it is a fifth larger."
    );
    for (a, b, correlation) in &found.fitted.alike {
        text += &format!(" {a} and {b} cannot be told apart (correlation {correlation:.2}).");
    }
    text
}

/// The rows for a terminal, and what they mean.
pub fn text(found: &TableReproduction, wanted: Option<&str>) -> String {
    let rows = rows(found, wanted).render() + &wrapped(ROW_WORDS, 80, 0) + "\n";
    if wanted.is_some() {
        return rows;
    }
    rows + &accuracies(found).render()
        + &wrapped(ACCURACY_WORDS, 80, 0)
        + "\n"
        + &parameters(found).render()
        + &wrapped(&parameter_words(found), 80, 0)
}

/// All of it for programs.
pub fn as_value(found: &TableReproduction) -> serde_json::Value {
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
