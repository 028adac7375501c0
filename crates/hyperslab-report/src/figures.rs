//! The pictures of a report.

use crate::activity::{Activity, COLUMNS, KINDS};
use crate::cases::{CaseRow, PARTS};
use crate::changes::Change;
use crate::curves::CurveChart;
use crate::groups::Group;
use crate::svg::{Drawing, Scale, Unit, n};
use crate::words::{percent, plain, rate, ratio, seconds, size};

/// Width of every picture: what a telephone shows without making it smaller.
pub const WIDTH: f64 = 420.0;
const ROW: f64 = 32.0;
const RIGHT: f64 = 8.0;

/// A picture, what it is called, and what is below the name.
pub struct Figure {
    /// The section it belongs to.
    pub section: &'static str,
    /// Its name.
    pub title: String,
    /// More.
    pub about: String,
    /// The picture.
    pub drawing: Drawing,
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { text.chars().take(most - 1).chain(['…']).collect() }
}

/// What names a case in a group: the stack, or its number and kind where the work differs.
fn name(case: &CaseRow, comparable: bool) -> String {
    if comparable { case.stack.clone() } else { format!("{}: {} on {}", case.number, case.benchmark, case.stack) }
}

/// Rates of a group with their intervals.
pub fn rates(group: &Group, cases: &[CaseRow]) -> Figure {
    let rows: Vec<&CaseRow> = group.cases.iter().map(|case| &cases[*case]).collect();
    let top = 8.0;
    let mut d = Drawing::new(WIDTH, top + rows.len() as f64 * ROW + 22.0, &format!("Rates: {}", group.title));
    let scale = Scale::linear(
        rows.iter().map(|c| c.rate.reach()[1].max(c.rate.median)).fold(0.0, f64::max),
        2.0,
        WIDTH - RIGHT,
    );
    let bottom = top + rows.len() as f64 * ROW;
    d.axis_below(&scale, Unit::Bytes, top, bottom);
    for (place, case) in rows.iter().enumerate() {
        let y = top + place as f64 * ROW;
        let [low, high] = case.rate.reach();
        let name = name(case, group.comparable);
        let words = if case.rate.count > 1 {
            format!(
                "{name}: {}, {} to {}, {} repetitions",
                rate(case.rate.median),
                rate(low),
                rate(high),
                case.rate.count
            )
        } else {
            format!("{name}: {}, one run", rate(case.rate.median))
        };
        d.said(&words, |d| {
            d.rect("hit", 0.0, y, WIDTH, ROW);
            d.text("n", 2.0, y + 11.0, &shortened(&name, 46));
            d.text("v e", WIDTH - RIGHT, y + 11.0, &rate(case.rate.median));
            d.rect("s0", 2.0, y + 15.0, scale.at(case.rate.median) - 2.0, 11.0);
            if case.rate.count > 1 {
                let (a, b) = (scale.at(low), scale.at(high));
                d.path(
                    "w",
                    &format!(
                        "M{} {y2}H{}M{} {y1}v8M{} {y1}v8",
                        n(a),
                        n(b),
                        n(a),
                        n(b),
                        y1 = n(y + 16.5),
                        y2 = n(y + 20.5)
                    ),
                );
            }
        });
    }
    Figure { section: "rates", title: group.title.clone(), about: group.about.clone(), drawing: d }
}

/// What the time of each case of a group is made of.
pub fn parts(group: &Group, cases: &[CaseRow]) -> Option<Figure> {
    let rows: Vec<&CaseRow> = group.cases.iter().map(|case| &cases[*case]).filter(|c| !c.parts.is_empty()).collect();
    let longest = rows.iter().map(|case| case.parts.iter().sum::<f64>()).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let mut d = Drawing::new(WIDTH, 8.0 + rows.len() as f64 * ROW + 22.0, &format!("Time: {}", group.title));
    let scale = Scale::linear(longest, 2.0, WIDTH - RIGHT);
    let bottom = 8.0 + rows.len() as f64 * ROW;
    d.axis_below(&scale, Unit::Seconds, 8.0, bottom);
    for (place, case) in rows.iter().enumerate() {
        let y = 8.0 + place as f64 * ROW;
        let name = name(case, group.comparable);
        let listed: Vec<String> = spent(case).map(|(_, part, time)| format!("{part} {}", seconds(time))).collect();
        d.said(&format!("{name}: {}", listed.join(", ")), |d| {
            d.rect("hit", 0.0, y, WIDTH, ROW);
            d.text("n", 2.0, y + 11.0, &shortened(&name, 46));
            let mut from = 0.0;
            for (place, _, time) in spent(case) {
                let (a, b) = (scale.at(from), scale.at(from + time));
                d.rect(&format!("p{place}"), a, y + 15.0, b - a, 11.0);
                from += time;
            }
        });
    }
    Some(Figure { section: "time", title: group.title.clone(), about: group.about.clone(), drawing: d })
}

/// The parts of a case that took time.
pub fn spent(case: &CaseRow) -> impl Iterator<Item = (usize, &'static str, f64)> {
    let parts = case.parts.iter().zip(PARTS).enumerate();
    parts.filter(|(_, (time, _))| **time > 0.0).map(|(place, (time, part))| (place, part, *time))
}

/// How long single transfer calls took.
pub fn latencies(group: &Group, cases: &[CaseRow]) -> Option<Figure> {
    let rows: Vec<_> = group.cases.iter().filter_map(|case| Some((&cases[*case], cases[*case].transfers()?))).collect();
    if rows.is_empty() {
        return None;
    }
    let scale = Scale::log(rows.iter().flat_map(|(_, (_, l))| [l.min, l.p50, l.max]), 10.0, WIDTH - 14.0);
    let bottom = 8.0 + rows.len() as f64 * ROW;
    let mut d = Drawing::new(WIDTH, bottom + 22.0, &format!("Times of single calls: {}", group.title));
    d.axis_below(&scale, Unit::Seconds, 8.0, bottom);
    for (place, (case, (operation, l))) in rows.iter().enumerate() {
        let y = 8.0 + place as f64 * ROW;
        let name = name(case, group.comparable);
        let words = format!(
            "{name}: {} {operation} calls; fastest {}, half within {}, 90 % {}, 99 % {}, slowest {}",
            l.count,
            seconds(l.min),
            seconds(l.p50),
            seconds(l.p90),
            seconds(l.p99),
            seconds(l.max)
        );
        d.said(&words, |d| {
            d.rect("hit", 0.0, y, WIDTH, ROW);
            d.text("n", 2.0, y + 11.0, &shortened(&name, 46));
            d.text("v e", WIDTH - RIGHT, y + 11.0, &seconds(l.p50));
            let middle = n(y + 20.5);
            d.path("w", &format!("M{} {middle}H{}", n(scale.at(l.min)), n(scale.at(l.max))));
            d.rect("s0", scale.at(l.p50), y + 16.0, (scale.at(l.p90) - scale.at(l.p50)).max(1.5), 9.0);
            for value in [l.min, l.p50, l.p99, l.max] {
                d.path("w", &format!("M{} {}v9", n(scale.at(value)), n(y + 16.0)));
            }
        });
    }
    Some(Figure { section: "calls", title: group.title.clone(), about: group.about.clone(), drawing: d })
}

/// Rates over what was varied.
pub fn curve(chart: &CurveChart) -> Figure {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let (left, top, bottom) = (74.0, 10.0, 200.0);
    let x = Scale::log(points().map(|point| point.at), left + 14.0, WIDTH - 20.0);
    let y = Scale::log(
        points().flat_map(|p| [p.rate.median, p.rate.reach()[0], p.rate.reach()[1]]),
        bottom - 8.0,
        top + 8.0,
    );
    let height = bottom + 44.0 + 17.0 * (chart.lines.len() + usize::from(chart.ideal)) as f64;
    let mut d = Drawing::new(WIDTH, height, &format!("{}: rate over {}", chart.title, chart.axis));
    d.axis_beside(&y, Unit::Bytes, left, WIDTH - RIGHT);
    let mut marked: Vec<(f64, &str)> = points().map(|point| (point.at, point.label.as_str())).collect();
    marked.sort_by(|a, b| a.0.total_cmp(&b.0));
    marked.dedup_by(|a, b| a.0 == b.0);
    let mut last = f64::NEG_INFINITY;
    for (at, label) in marked {
        d.path("g", &format!("M{} {}v4", n(x.at(at)), n(bottom)));
        if x.at(at) - last > 10.0 + 6.5 * label.chars().count() as f64 {
            d.below(x.at(at), bottom + 16.0, label);
            last = x.at(at);
        }
    }
    d.text("n m", (left + WIDTH) / 2.0, bottom + 32.0, &format!("{} (log)", chart.axis));
    d.path("w", &format!("M{l} {}V{b}H{}", n(top), n(WIDTH - RIGHT), l = n(left), b = n(bottom)));
    let best = chart
        .lines
        .iter()
        .filter_map(|line| line.points.first())
        .max_by(|a, b| a.rate.median.total_cmp(&b.rate.median));
    if let Some(first) = best.filter(|_| chart.ideal) {
        // Drawn as far as the picture reaches.
        let end = points()
            .map(|point| point.at)
            .fold(first.at, f64::max)
            .min(first.at * y.value_at_top() / first.rate.median);
        let ideal = first.rate.median * end / first.at;
        let path = format!("M{} {}L{} {}", n(x.at(first.at)), n(y.at(first.rate.median)), n(x.at(end)), n(y.at(ideal)));
        d.path("ideal", &path);
    }
    for (number, line) in chart.lines.iter().enumerate() {
        let at = |place: &crate::curves::CurvePoint| format!("{} {}", n(x.at(place.at)), n(y.at(place.rate.median)));
        let path: Vec<String> = line.points.iter().map(at).collect();
        d.path(&format!("l{number}"), &format!("M{}", path.join("L")));
        for point in &line.points {
            let [low, high] = point.rate.reach();
            let words = format!(
                "{}, {} {}: {}, {} to {}",
                line.name,
                chart.axis,
                point.label,
                rate(point.rate.median),
                rate(low),
                rate(high)
            );
            d.said(&words, |d| {
                let (px, py) = (x.at(point.at), y.at(point.rate.median));
                d.path("w", &format!("M{} {}V{}", n(px), n(y.at(low)), n(y.at(high))));
                d.path(&format!("s{number}"), &mark(number, px, py));
                d.rect("hit", px - 8.0, py - 8.0, 16.0, 16.0);
            });
        }
        let row = bottom + 50.0 + 17.0 * number as f64;
        d.path(&format!("s{number}"), &mark(number, 9.0, row - 4.0));
        d.text("n", 20.0, row, &shortened(&line.name, 62));
    }
    if chart.ideal {
        let row = bottom + 50.0 + 17.0 * chart.lines.len() as f64;
        d.path("ideal", &format!("M2 {r}H16", r = n(row - 4.0)));
        d.text("n", 20.0, row, "ideal: as many times faster as there are ranks");
    }
    Figure { section: "curves", title: format!("Rate over {}", chart.axis), about: chart.title.clone(), drawing: d }
}

/// A shape for each line, so that colours are not needed to tell them apart.
fn mark(number: usize, x: f64, y: f64) -> String {
    match number % 4 {
        0 => format!("M{} {}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", n(x - 4.0), n(y)),
        1 => format!("M{} {}h7v7h-7z", n(x - 3.5), n(y - 3.5)),
        2 => format!("M{} {}l5 8.5h-10z", n(x), n(y - 5.0)),
        _ => format!("M{} {}l5 5l-5 5l-5 -5z", n(x), n(y - 5.0)),
    }
}

/// How a case went from file to file.
pub fn trend(change: &Change) -> String {
    let mut d = Drawing::new(120.0, 24.0, &format!("{} points", change.points.len()));
    let last = change.points.last().map_or(1, |point| point.0).max(2);
    let first = change.points.first().map_or(1, |point| point.0);
    let x = |run: usize| 4.0 + 112.0 * (run - first) as f64 / (last - first).max(1) as f64;
    let scale = Scale::log(change.points.iter().map(|point| point.1), 20.0, 4.0);
    let path: Vec<String> =
        change.points.iter().map(|(run, value)| format!("{} {}", n(x(*run)), n(scale.at(*value)))).collect();
    d.path("l0", &format!("M{}", path.join("L")));
    if let Some((run, value)) = change.points.last() {
        d.path("s0", &mark(0, x(*run), scale.at(*value)));
    }
    d.html()
}

/// Predicted against measured times.
pub fn predictions(cases: &[CaseRow]) -> Option<Figure> {
    let both: Vec<_> = cases.iter().filter(|c| c.is_good()).filter_map(|c| Some((c, c.predicted?))).collect();
    if both.is_empty() {
        return None;
    }
    let values = || both.iter().flat_map(|(case, predicted)| [case.time.median, predicted.seconds]);
    let (left, top, bottom) = (70.0, 10.0, 300.0);
    let (x, y) = (Scale::log(values(), left + 10.0, WIDTH - 20.0), Scale::log(values(), bottom - 10.0, top + 10.0));
    let mut d = Drawing::new(WIDTH, bottom + 40.0, "Predicted against measured times");
    d.axis_below(&x, Unit::Seconds, top, bottom);
    d.axis_beside(&y, Unit::Seconds, left, WIDTH - RIGHT);
    d.text("n m", (left + WIDTH) / 2.0, bottom + 33.0, "predicted");
    d.text("n", 2.0, 12.0, "measured");
    let (low, high) = values().fold((f64::INFINITY, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
    d.path("ideal", &format!("M{} {}L{} {}", n(x.at(low)), n(y.at(low)), n(x.at(high)), n(y.at(high))));
    for (case, predicted) in &both {
        let words = format!(
            "case {}, {} on {}: predicted {}, {} to {}; measured {}",
            case.number,
            case.benchmark,
            case.stack,
            seconds(predicted.seconds),
            seconds(predicted.low),
            seconds(predicted.high),
            seconds(case.time.median)
        );
        d.said(&words, |d| {
            let (px, py) = (x.at(predicted.seconds), y.at(case.time.median));
            d.path("w", &format!("M{} {}H{}", n(x.at(predicted.low)), n(py), n(x.at(predicted.high))));
            d.path("s0", &mark(0, px, py));
            d.rect("hit", px - 8.0, py - 8.0, 16.0, 16.0);
        });
    }
    Some(Figure {
        section: "predictions",
        title: "Predicted and measured".into(),
        about: "On the line both are the same; above it, it took longer than predicted.".into(),
        drawing: d,
    })
}

/// Time lines of ranks.
pub fn lanes(activity: &Activity) -> Figure {
    let height = 16.0;
    let bottom = 8.0 + activity.lanes.len() as f64 * height;
    let scale = Scale::linear(activity.seconds, 46.0, WIDTH - RIGHT);
    let mut d = Drawing::new(WIDTH, bottom + 22.0, &format!("Time lines: {}", activity.title));
    d.axis_below(&scale, Unit::Seconds, 8.0, bottom);
    for (rank, pieces) in activity.lanes.iter().enumerate() {
        let y = 8.0 + rank as f64 * height;
        let mut spent = [0.0; KINDS.len()];
        pieces.iter().for_each(|(kind, from, to)| spent[*kind] += to - from);
        let listed = spent.iter().zip(KINDS).filter(|(time, _)| **time > 0.0);
        let listed: Vec<String> =
            listed.map(|(time, kind)| format!("{kind} {}", percent(time / activity.seconds))).collect();
        d.said(&format!("rank {rank}: {}", listed.join(", ")), |d| {
            d.rect("hit", 0.0, y, WIDTH, height);
            d.text("n", 2.0, y + 12.0, &format!("rank {rank}"));
            for kind in 0..KINDS.len() {
                let mut path = String::new();
                for (_, from, to) in pieces.iter().filter(|piece| piece.0 == kind) {
                    let (a, b) = (scale.at(*from), scale.at(*to));
                    let width = n((b - a).max(0.3));
                    path += &format!("M{} {}h{width}v11h-{width}z", n(a), n(y + 2.0));
                }
                if !path.is_empty() {
                    d.path(&format!("q{kind}"), &path);
                }
            }
        });
    }
    let more = activity.ranks - activity.lanes.len();
    let about = if more > 0 {
        format!("The first {} of {} ranks.", activity.lanes.len(), activity.ranks)
    } else {
        String::new()
    };
    Figure { section: "activity", title: activity.title.clone(), about, drawing: d }
}

/// The map of time and ranks.
pub fn map(activity: &Activity) -> Figure {
    let height = if activity.map.len() > 16 { 6.0 } else { 14.0 };
    let bottom = 8.0 + activity.map.len() as f64 * height;
    let scale = Scale::linear(activity.seconds, 46.0, WIDTH - RIGHT);
    let width = (WIDTH - RIGHT - 46.0) / COLUMNS as f64;
    let mut d = Drawing::new(WIDTH, bottom + 22.0, &format!("Map of time and ranks: {}", activity.title));
    d.axis_below(&scale, Unit::Seconds, 8.0, bottom);
    for (row, parts) in activity.map.iter().enumerate() {
        let y = 8.0 + row as f64 * height;
        if row == 0 || row + 1 == activity.map.len() {
            d.text("n", 2.0, y + height.min(12.0), &format!("rank {}", row * activity.ranks_per_row));
        }
        for level in 1..=8_usize {
            let cells = parts.iter().enumerate().filter(|(_, part)| (**part * 8.0).ceil() as usize == level);
            let path: String = cells
                .map(|(column, _)| {
                    format!(
                        "M{} {}h{w}v{h}h-{w}z",
                        n(46.0 + column as f64 * width),
                        n(y),
                        w = n(width + 0.1),
                        h = n(height)
                    )
                })
                .collect();
            if !path.is_empty() {
                d.path(&format!("h{level}"), &path);
            }
        }
    }
    Figure {
        section: "activity",
        title: format!("{}: in calls, by time and rank", activity.title),
        about: "The darker, the larger the part of the time that a rank spent in calls.".into(),
        drawing: d,
    }
}

/// Computing, waiting for I/O, and I/O behind the program's back.
pub fn background(cases: &[CaseRow]) -> Option<Figure> {
    let rows: Vec<_> = cases.iter().filter_map(|case| Some((case, case.background?))).take(16).collect();
    let longest = rows.iter().map(|(_, [compute, blocked, busy])| (compute + blocked).max(*busy)).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let bottom = 8.0 + rows.len() as f64 * 40.0;
    let scale = Scale::linear(longest, 2.0, WIDTH - RIGHT);
    let mut d = Drawing::new(WIDTH, bottom + 22.0, "Computing, blocked and background");
    d.axis_below(&scale, Unit::Seconds, 8.0, bottom);
    for (place, (case, [compute, blocked, busy])) in rows.iter().enumerate() {
        let y = 8.0 + place as f64 * 40.0;
        let name = format!("{}: {} on {}", case.number, case.benchmark, case.stack);
        let words = format!(
            "{name}: computing {}, blocked {}, in the background {}",
            seconds(*compute),
            seconds(*blocked),
            seconds(*busy)
        );
        d.said(&words, |d| {
            d.rect("hit", 0.0, y, WIDTH, 40.0);
            d.text("n", 2.0, y + 11.0, &shortened(&name, 60));
            d.rect("q3", scale.at(0.0), y + 15.0, scale.at(*compute) - scale.at(0.0), 9.0);
            d.rect("q2", scale.at(*compute), y + 15.0, scale.at(compute + blocked) - scale.at(*compute), 9.0);
            d.rect("q0", scale.at(0.0), y + 26.0, scale.at(*busy) - scale.at(0.0), 9.0);
        });
    }
    Some(Figure {
        section: "activity",
        title: "Behind computation".into(),
        about: "Above: computing, then blocked by I/O. Below: I/O in the background. Of the slowest rank.".into(),
        drawing: d,
    })
}

/// Text of a ratio with its interval.
pub fn ratio_words(change: &Change) -> String {
    match change.ratio_95 {
        Some([low, high]) => format!("{} ({} to {})", ratio(change.ratio), ratio(low), ratio(high)),
        None => format!("{} (not enough repetitions)", ratio(change.ratio)),
    }
}

/// A median of a change: a rate where bytes are moved.
pub fn point_words(value: f64) -> String {
    if value > 1000.0 { rate(value) } else { format!("{} runs/s", plain(value)) }
}

/// Bytes for a cell.
pub fn bytes_words(bytes: u64) -> String {
    size(bytes as f64)
}
