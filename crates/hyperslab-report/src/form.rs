//! The forms of a report.

use crate::cases::{CaseRow, PARTS};
use crate::escape::{csv, escape, markdown};
use crate::figures::{self, WIDTH};
use crate::page;
use crate::report::Report;
use crate::svg::n;
use crate::words::{rate, seconds, size};
use std::fmt::Write;

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A page of its own.
    Html,
    /// Text for a wiki or an issue.
    Markdown,
    /// A row per case, in plain numbers.
    Csv,
    /// All pictures, below each other.
    Svg,
    /// Everything, for programs.
    Json,
}

impl Form {
    /// The report in this form.
    pub fn of(self, report: &Report) -> String {
        match self {
            Self::Html => page::html(report),
            Self::Markdown => text(report),
            Self::Csv => rows(report),
            Self::Svg => pictures(report),
            Self::Json => serde_json::to_string_pretty(report).unwrap_or_default() + "\n",
        }
    }
}

fn text(report: &Report) -> String {
    let mut out = format!("# {}\n\n{}\n\n", markdown(&report.title), markdown(&report.verdict));
    for detail in &report.details {
        let _ = writeln!(out, "- {}", markdown(detail));
    }
    if !report.claims.is_empty() {
        out.push_str("\n## Published claims and what was measured here\n\n| study | published | here | the claim | why |\n|---|---|---|---|---|\n");
        for claim in &report.claims {
            let published = format!("{} ({})", claim.published, claim.source);
            let cells =
                [&claim.study, &published, &claim.here, &claim.verdict, &claim.reason].map(|cell| markdown(cell));
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    if !report.changes.is_empty() {
        out.push_str("\n## Changes\n\n| benchmark | stack | ranks | cache | first | last | ratio | verdict |\n|---|---|---|---|---|---|---|---|\n");
        for change in &report.changes {
            let point = |point: Option<&(usize, f64)>| point.map_or(String::new(), |(_, v)| figures::point_words(*v));
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                markdown(&change.benchmark),
                markdown(&change.stack),
                change.ranks,
                markdown(&change.cache),
                point(change.points.first()),
                point(change.points.last()),
                figures::ratio_words(change),
                change.verdict
            );
        }
    }
    out.push_str("\n## Cases\n\n| case | benchmark | stack | ranks | cache | data | time | rate | raw rate | verified |\n|---:|---|---|---:|---|---:|---:|---:|---:|---|\n");
    for case in &report.cases {
        let shown = |text: String| if case.is_good() { text } else { "-".into() };
        let state = if case.is_good() { case.verified.replace('_', " ") } else { case.status.clone() };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            case.label(report.runs.len()),
            markdown(&case.benchmark),
            markdown(&case.stack),
            case.ranks,
            markdown(&case.cache),
            size(case.bytes as f64),
            shown(seconds(case.time.median)),
            shown(rate(case.rate.median)),
            shown(rate(case.raw_rate.median)),
            markdown(&state)
        );
    }
    if !report.notes.is_empty() {
        out.push_str("\n## Notes\n\n");
        for note in &report.notes {
            let _ = writeln!(out, "- {} (cases {})", markdown(&note.text), markdown(&note.cases.join(", ")));
        }
    }
    for run in &report.runs {
        let _ = writeln!(out, "\n## {}\n\nStarted {}.\n", markdown(&run.path), markdown(&run.started));
        let _ = writeln!(out, "    {}\n", run.command.replace(char::is_control, " "));
        for (name, value) in &run.facts {
            let _ = writeln!(out, "- {}: {}", markdown(name), markdown(value));
        }
    }
    out
}

fn rows(report: &Report) -> String {
    let mut out = String::from(
        "file,case,benchmark,workload,stack,ranks,cache,status,verified,bytes,repetitions,seconds,seconds_low,seconds_high,\
         bytes_per_second,bytes_per_second_low,bytes_per_second_high,raw_bytes_per_second",
    );
    PARTS.iter().for_each(|part| {
        let _ = write!(out, ",{part}_seconds");
    });
    out.push_str(",call_p50,call_p99,error\n");
    for case in &report.cases {
        let path = report.runs.get(case.run - 1).map_or("", |run| run.path.as_str());
        let _ = writeln!(out, "{},{}", csv(path), line(case));
    }
    out
}

fn line(case: &CaseRow) -> String {
    let mut fields = vec![
        case.number.to_string(),
        csv(&case.benchmark),
        csv(&case.workload),
        csv(&case.stack),
        case.ranks.to_string(),
        csv(&case.cache),
        csv(&case.status),
        csv(&case.verified),
        case.bytes.to_string(),
        case.time.count.to_string(),
    ];
    let [(t0, t1), (r0, r1)] = [case.time.reach(), case.rate.reach()].map(|[low, high]| (low, high));
    let figures = [case.time.median, t0, t1, case.rate.median, r0, r1, case.raw_rate.median];
    fields.extend(figures.map(|value| if case.is_good() { value.to_string() } else { String::new() }));
    fields.extend((0..PARTS.len()).map(|part| case.parts.get(part).map(f64::to_string).unwrap_or_default()));
    let latency = case.transfers().map(|(_, latency)| *latency);
    fields.extend([latency.map(|l| l.p50), latency.map(|l| l.p99)].map(|v| v.map_or(String::new(), |v| v.to_string())));
    fields.push(csv(case.error.as_deref().unwrap_or_default()));
    fields.join(",")
}

/// Colours for pictures that stand alone: those of the page, in light.
const COLOURS: &str = "text{font:12px sans-serif;fill:#1c2126}.k{fill:#59636e;font-size:11px}.m{text-anchor:middle}.e{text-anchor:end}.v,.t{font-weight:bold}\
.g{stroke:#d5dae0;fill:none}.w{stroke:#1c2126;fill:none}.ideal{stroke:#59636e;stroke-dasharray:4 4;fill:none}.hit{fill:none}\
.s0,.p2,.q0,.h1,.h2,.h3,.h4,.h5,.h6,.h7,.h8{fill:#2f6db5}.s1,.p1,.q1{fill:#c25700}.s2,.p3{fill:#1b7f5c}.s3,.p0{fill:#8a4fb0}.s4{fill:#a8871b}.s5,.p4{fill:#c0407a}\
.s6{fill:#3d8fa8}.s7{fill:#6b6b6b}.p5,.q2{fill:#a9b2bc}.p6,.q3{fill:#c9a227}.l0,.l1,.l2,.l3,.l4,.l5,.l6,.l7{fill:none;stroke-width:2}\
.l0{stroke:#2f6db5}.l1{stroke:#c25700}.l2{stroke:#1b7f5c}.l3{stroke:#8a4fb0}.l4{stroke:#a8871b}.l5{stroke:#c0407a}.l6{stroke:#3d8fa8}.l7{stroke:#6b6b6b}\
.h1{fill-opacity:.12}.h2{fill-opacity:.24}.h3{fill-opacity:.36}.h4{fill-opacity:.48}.h5{fill-opacity:.6}.h6{fill-opacity:.74}.h7{fill-opacity:.87}";

fn pictures(report: &Report) -> String {
    let mut body = String::new();
    let mut y = 30.0;
    for figure in page::figures(report) {
        let _ = write!(body, "<text class=\"t\" x=\"2\" y=\"{}\">{}</text>", n(y), escape(&figure.title));
        let about: String = figure.about.chars().take(70).collect();
        let _ = write!(body, "<text class=\"k\" x=\"2\" y=\"{}\">{}</text>", n(y + 15.0), escape(&about));
        body += &figure.drawing.moved(y + 18.0);
        y += figure.drawing.height() + 50.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-10 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" aria-label=\"{}\">\
         <title>{0}</title><style>{COLOURS}</style><rect x=\"-10\" width=\"{w}\" height=\"{h}\" fill=\"#fff\"/>{body}</svg>\n",
        escape(&report.verdict),
        w = n(WIDTH + 20.0),
        h = n(y)
    )
}
