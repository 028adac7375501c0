//! How rates depend on what was varied: ranks, amounts of data, options of a stack, axes of a sweep.

use crate::record::{CaseRecord, RunRecord, SpreadRecord};
use crate::words::{count, size};
use hyperslab_core::Stack;
use hyperslab_core::units::parse_size;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Pictures that are drawn.
const MOST: usize = 24;
/// Lines of one picture.
const MOST_LINES: usize = 8;

/// One picture: rates over an axis.
#[derive(Debug, Clone, Serialize)]
pub struct CurveChart {
    /// What was done.
    pub title: String,
    /// What was varied.
    pub axis: String,
    /// Whether more of it should give proportionally more, as ranks do.
    pub ideal: bool,
    /// A line for each stack.
    pub lines: Vec<CurveLine>,
}

/// One line of a picture.
#[derive(Debug, Clone, Serialize)]
pub struct CurveLine {
    /// What is the same for all its points.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<CurvePoint>,
}

/// One point of a line.
#[derive(Debug, Clone, Serialize)]
pub struct CurvePoint {
    /// Where on the axis.
    pub at: f64,
    /// As it was written.
    pub label: String,
    /// Bytes per second.
    pub rate: SpreadRecord,
}

/// A place on an axis.
struct Coordinate {
    axis: String,
    at: f64,
    label: String,
    /// What must be equal for cases to be on one line, and what names the line.
    title: String,
    line: String,
}

/// Everything that varies with something.
pub fn of(runs: &[&RunRecord]) -> Vec<CurveChart> {
    // Chart, line, place: the latest run has the last word.
    let mut found: BTreeMap<(String, String), BTreeMap<String, BTreeMap<u64, CurvePoint>>> = BTreeMap::new();
    for run in runs {
        for case in run.cases.iter().filter(|case| case.status == "ok" && case.observed_rate.median > 0.0) {
            for coordinate in coordinates(case) {
                let point = CurvePoint { at: coordinate.at, label: coordinate.label, rate: case.observed_rate };
                let chart = found.entry((coordinate.title, coordinate.axis)).or_default();
                chart.entry(coordinate.line).or_default().insert(coordinate.at.to_bits(), point);
            }
        }
    }
    let mut charts: Vec<CurveChart> = found
        .into_iter()
        .filter_map(|((title, axis), lines)| {
            let line = |(name, points): (String, BTreeMap<u64, CurvePoint>)| {
                let points: Vec<CurvePoint> = points.into_values().collect();
                (points.len() > 1).then_some(CurveLine { name, points })
            };
            let lines: Vec<CurveLine> = lines.into_iter().filter_map(line).take(MOST_LINES).collect();
            (!lines.is_empty()).then(|| CurveChart { title, ideal: axis == "ranks", axis, lines })
        })
        .collect();
    charts.sort_by_key(|chart| std::cmp::Reverse(chart.lines.iter().map(|line| line.points.len()).max()));
    charts.truncate(MOST);
    charts
}

/// The axes that a case has a place on.
fn coordinates(case: &CaseRecord) -> Vec<Coordinate> {
    let like = without_numbers(&case.workload);
    let title = format!("{}, {}: {like}", case.benchmark, case.cache);
    let stack: Option<Stack> = case.stack.parse().ok();
    let mut found = Vec::new();
    let mut add = |axis: &str, at: f64, label: String, title: String, line: String| {
        if at > 0.0 && at.is_finite() {
            found.push(Coordinate { axis: axis.to_owned(), at, label, title, line });
        }
    };
    let line = format!("{}{}", case.stack, others(case, "ranks"));
    add("ranks", case.ranks as f64, case.ranks.to_string(), title.clone(), line);
    let ranks = count(case.ranks as usize, "rank", "ranks");
    let with_ranks = format!("{}, {ranks}", case.stack);
    add("bytes", case.bytes as f64, size(case.bytes as f64), title.clone(), with_ranks);
    for (axis, value) in &case.axes {
        let (at, label) = match value {
            Value::Number(number) => (number.as_f64().unwrap_or(0.0), number.to_string()),
            Value::String(text) => (amount(text).unwrap_or(0.0), text.clone()),
            _ => continue,
        };
        if !["ranks", "bytes"].contains(&axis.as_str()) {
            add(axis, at, label, title.clone(), format!("{}{}", case.stack, others(case, axis)));
        }
    }
    let Some(stack) = stack else { return found };
    let all = || stack.layers.iter().chain([&stack.format]);
    for (place, element) in all().enumerate() {
        for (name, value) in &element.options {
            let Some(at) = amount(value) else { continue };
            let rest: Vec<String> = all()
                .enumerate()
                .map(|(other, e)| {
                    let options = e.options.iter().filter(|(n, _)| other != place || n != name);
                    let options: Vec<String> = options.map(|(n, v)| format!("{n}={v}")).collect();
                    if options.is_empty() { e.name.clone() } else { format!("{}({})", e.name, options.join(",")) }
                })
                .collect();
            let title = format!("{}, {}: {}", case.benchmark, case.cache, case.workload);
            let line = format!("{}, {ranks}", rest.join("/"));
            add(&format!("{}.{name}", element.name), at, value.clone(), title, line);
        }
    }
    found
}

/// What a sweep varies but for one axis, and the stack does not say.
fn others(case: &CaseRecord, axis: &str) -> String {
    let shown = |(name, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let option = format!("{}={value}", name.rsplit('.').next().unwrap_or(name));
        (name != axis && !case.stack.contains(&option)).then(|| format!(" {name}={value}"))
    };
    case.axes.iter().filter_map(shown).collect()
}

/// A size, or the number of elements of extents such as `64x64`.
fn amount(text: &str) -> Option<f64> {
    if let Ok(size) = parse_size(text) {
        return Some(size as f64);
    }
    let extents: Option<Vec<f64>> =
        text.split('x').map(|part| part.trim().parse::<u64>().ok().map(|n| n as f64)).collect();
    extents.filter(|extents| extents.len() > 1).map(|extents| extents.into_iter().product())
}

/// The words of a workload: what is left of it when amounts change.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut number = false;
    for c in text.chars() {
        let part = c.is_ascii_digit() || (number && (c == 'x' || c == '.'));
        if part && !number {
            out.push('N');
        } else if !part {
            out.push(c);
        }
        number = part;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_sizes_or_products() {
        assert_eq!(amount("1MiB"), Some(1048576.0));
        assert_eq!(amount("64x32"), Some(2048.0));
        assert_eq!(amount("yes"), None);
        assert_eq!(without_numbers("write 16x16 doubles of 0.5"), "write N doubles of N");
    }
}
