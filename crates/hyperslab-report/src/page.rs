//! The page: one file, nothing loaded, nothing run but the script below.

use crate::activity::KINDS;
use crate::cases::{CaseRow, PARTS};
use crate::escape::escape;
use crate::figures::{self, Figure, spent};
use crate::report::Report;
use crate::words::{count, rate, seconds};
use std::fmt::Write;

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

/// What browsers compute of the script. The page's policy allows this script alone, so that nothing from a results file
/// could run even if it were not escaped.
pub const SCRIPT_HASH: &str = "sha256-f76ke4mb3MdKdh9jWfgfotta70vnEQL04vRSvWM9dg8=";

/// More cases than this get no bars in the table: pages of thousands stay small and quick.
const MOST_BARS: usize = 400;

/// Sections of pictures: name, heading, what to know.
const SECTIONS: [(&str, &str, &str); 6] = [
    (
        "rates",
        "Rates",
        "Median of the observed rate, and from where to where it may lie: the 95 % interval from six repetitions on, with fewer the range.",
    ),
    ("curves", "What depends on what", "Both axes are logarithmic. Whiskers as above."),
    ("time", "What the time is made of", "Of the slowest rank, in the repetition in the middle."),
    (
        "calls",
        "Times of single calls",
        "Line: fastest to slowest. Box: half to 90 % of all calls. Marks: fastest, half, 99 %, slowest.",
    ),
    ("predictions", "Predicted and measured", "Whiskers: 90 % interval of the prediction."),
    (
        "activity",
        "Who did what when",
        "Where nothing is drawn, a rank was between calls: it made data, or waited for its turn.",
    ),
];

/// The pictures of a report, in the order of the page.
pub fn figures(report: &Report) -> Vec<Figure> {
    let cases = &report.cases;
    let mut all: Vec<Figure> = report.groups.iter().map(|group| figures::rates(group, cases)).collect();
    all.extend(report.curves.iter().map(figures::curve));
    all.extend(report.groups.iter().filter_map(|group| figures::parts(group, cases)));
    all.extend(report.groups.iter().filter_map(|group| figures::latencies(group, cases)));
    all.extend(figures::predictions(cases));
    all.extend(figures::background(cases));
    for activity in &report.activities {
        all.push(figures::lanes(activity));
        if activity.ranks > 4 {
            all.push(figures::map(activity));
        }
    }
    all
}

/// The whole page.
pub fn html(report: &Report) -> String {
    let figures = figures(report);
    let mut out = String::with_capacity(1 << 16);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; base-uri 'none'; form-action 'none'\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>{STYLE}</style></head>\n\
         <body><a class=\"skip\" href=\"#main\">To the results</a><header><p class=\"sub\">{title}</p><h1>{}</h1>",
        escape(&report.verdict),
        title = escape(&report.title),
    );
    list(&mut out, &report.details);
    navigation(&mut out, report, &figures);
    out.push_str("</header>\n<main id=\"main\">");
    claims(&mut out, report);
    changes(&mut out, report);
    for (section, heading, about) in SECTIONS {
        let mine: Vec<&Figure> = figures.iter().filter(|figure| figure.section == section).collect();
        if mine.is_empty() {
            continue;
        }
        let _ = write!(out, "<section id=\"{section}\"><h2>{heading}</h2><p class=\"sub\">{about}</p>");
        match section {
            "time" => key(&mut out, "p", &PARTS),
            "activity" => key(&mut out, "q", &KINDS),
            _ => {}
        }
        let left_out = match section {
            "rates" if report.groups_left_out > 0 => {
                Some(format!("{} more are only in the table: those whose stacks differ least.", report.groups_left_out))
            }
            "activity" if report.activities_left_out > 0 => {
                Some(format!("{} shorter recordings are not shown.", report.activities_left_out))
            }
            _ => None,
        };
        if let Some(words) = left_out {
            let _ = write!(out, "<p class=\"dim\">{words}</p>");
        }
        out.push_str("<div class=\"figs\">");
        for figure in mine {
            let about =
                if figure.about.is_empty() { String::new() } else { format!("<p>{}</p>", escape(&figure.about)) };
            let _ =
                writeln!(out, "<figure><h3>{}</h3>{about}{}</figure>", escape(&figure.title), figure.drawing.html());
        }
        out.push_str("</div></section>\n");
    }
    table(&mut out, report);
    notes(&mut out, report);
    provenance(&mut out, report);
    let _ = writeln!(
        out,
        "</main><footer><p class=\"sub\">Made by hyperslab report.</p></footer><script>{SCRIPT}</script></body></html>"
    );
    out
}

fn list(out: &mut String, items: &[String]) {
    out.push_str("<ul class=\"say\">");
    items.iter().for_each(|item| {
        let _ = write!(out, "<li>{}</li>", escape(item));
    });
    out.push_str("</ul>");
}

fn key(out: &mut String, class: &str, names: &[&str]) {
    out.push_str("<p class=\"key\">");
    for (place, name) in names.iter().enumerate() {
        let _ = write!(out, "<span><i class=\"{class}{place}\"></i>{name}</span>");
    }
    out.push_str("</p>");
}

fn navigation(out: &mut String, report: &Report, figures: &[Figure]) {
    out.push_str("<nav aria-label=\"Sections\">");
    let mut link = |there: bool, id: &str, words: &str| {
        if there {
            let _ = write!(out, "<a href=\"#{id}\">{words}</a>");
        }
    };
    link(!report.claims.is_empty(), "claims", "Published claims");
    link(!report.changes.is_empty(), "changes", "Changes");
    for (section, heading, _) in SECTIONS {
        link(figures.iter().any(|figure| figure.section == section), section, heading);
    }
    link(!report.cases.is_empty(), "all", "All cases");
    link(!report.notes.is_empty(), "notes", "Notes");
    link(!report.runs.is_empty(), "origin", "Where it comes from");
    out.push_str("</nav>");
}

fn claims(out: &mut String, report: &Report) {
    if report.claims.is_empty() {
        return;
    }
    out.push_str(
        "<section id=\"claims\"><h2>Published claims and what was measured here</h2><table class=\"cards\"><thead><tr><th>study</th>\
         <th>published</th><th>here</th><th>the claim</th><th>why</th></tr></thead><tbody>",
    );
    for claim in &report.claims {
        let class = match claim.verdict.as_str() {
            "holds" => " class=\"good\"",
            "does not hold" => " class=\"bad\"",
            _ => "",
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\" data-l=\"study\">{}</th><td data-l=\"published\">{}<small>{}</small></td><td data-l=\"here\">{}</td>\
             <td data-l=\"the claim\"><span{class}>{}</span></td><td data-l=\"why\">{}</td></tr>",
            escape(&claim.study),
            escape(&claim.published),
            escape(&claim.source),
            escape(&claim.here),
            escape(&claim.verdict),
            escape(&claim.reason),
        );
    }
    out.push_str("</tbody></table></section>");
}

fn changes(out: &mut String, report: &Report) {
    if report.changes.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<section id=\"changes\"><h2>Changes from file to file</h2><p class=\"sub\">The last file against the first; up to 5 % is the same. \
         Files in the order of their start:</p><ol>{}</ol>",
        report
            .runs
            .iter()
            .map(|run| format!("<li>{} ({})</li>", escape(&run.path), escape(&run.started)))
            .collect::<String>()
    );
    out.push_str(
        "<div class=\"wide\"><table class=\"cards\"><thead><tr><th>benchmark</th><th>stack</th><th>ranks</th><th>cache</th><th>over the files</th>\
         <th class=\"r\">first</th><th class=\"r\">last</th><th>ratio (95 %)</th><th>verdict</th></tr></thead><tbody>",
    );
    for change in &report.changes {
        let class = match change.verdict {
            "slower" => " class=\"bad\"",
            "faster" => " class=\"good\"",
            _ => "",
        };
        let point =
            |point: Option<&(usize, f64)>| point.map_or(String::new(), |(_, value)| figures::point_words(*value));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\" data-l=\"benchmark\"><span>{}<small>{}</small></span></th><td data-l=\"stack\">{}</td><td data-l=\"ranks\">{}</td>\
             <td data-l=\"cache\">{}</td><td class=\"trend\" data-l=\"files\">{}</td><td class=\"r\" data-l=\"first\">{}</td><td class=\"r\" data-l=\"last\">{}</td>\
             <td data-l=\"ratio\">{}</td><td data-l=\"verdict\"><span{class}>{}</span></td></tr>",
            escape(&change.benchmark),
            escape(&change.workload),
            escape(&change.stack),
            change.ranks,
            escape(&change.cache),
            figures::trend(change),
            point(change.points.first()),
            point(change.points.last()),
            figures::ratio_words(change),
            change.verdict,
        );
    }
    out.push_str("</tbody></table></div></section>");
}

fn table(out: &mut String, report: &Report) {
    if report.cases.is_empty() {
        return;
    }
    out.push_str(
        "<section id=\"all\"><h2>All cases</h2><div class=\"tools\" hidden><label for=\"filter\">Filter by words<input id=\"filter\" type=\"search\"></label>\
         <label for=\"status\">Status<select id=\"status\"><option value=\"\">all</option></select></label>\
         <label for=\"stack\">Stack<select id=\"stack\"><option value=\"\">all</option></select></label><span id=\"shown\" role=\"status\" class=\"dim\"></span></div>",
    );
    key(out, "p", &PARTS);
    out.push_str(
        "<div class=\"wide\"><table id=\"cases\" class=\"cards\"><caption>Medians over the repetitions; the column headings sort.</caption><thead><tr>\
         <th scope=\"col\">case</th><th scope=\"col\">benchmark</th><th scope=\"col\">stack</th><th scope=\"col\">ranks</th><th scope=\"col\">cache</th>\
         <th scope=\"col\" class=\"r\">data</th><th scope=\"col\" class=\"r\">time</th><th scope=\"col\" class=\"r\">rate</th>\
         <th scope=\"col\" class=\"r\">raw rate</th><th scope=\"col\">made of</th><th scope=\"col\" class=\"r\">call: half, 99 %</th><th scope=\"col\">verified</th></tr></thead><tbody>\n",
    );
    let bars = report.cases.len() <= MOST_BARS;
    for case in &report.cases {
        row(out, case, report.runs.len(), bars);
    }
    out.push_str("</tbody></table></div></section>");
}

fn row(out: &mut String, case: &CaseRow, runs: usize, bars: bool) {
    let good = case.is_good();
    let status = if good { String::new() } else { format!("<small class=\"bad\">{}</small>", escape(&case.status)) };
    let error = case.error.as_ref().map(|error| format!("<small>{}</small>", escape(error))).unwrap_or_default();
    let _ = write!(
        out,
        "<tr data-s=\"{}\"><th scope=\"row\" data-l=\"case\" data-v=\"{}\">{}</th><td data-l=\"benchmark\"><span>{}<small>{}</small>{status}{error}</span></td><td data-l=\"stack\">{}</td>\
         <td data-l=\"ranks\" data-v=\"{ranks}\">{ranks}</td><td data-l=\"cache\">{}</td><td class=\"r\" data-l=\"data\" data-v=\"{}\">{}</td>",
        escape(&case.status),
        case.run as u64 * 1_000_000 + case.number,
        escape(&case.label(runs)),
        escape(&case.benchmark),
        escape(&case.workload),
        escape(&case.stack),
        escape(&case.cache),
        case.bytes,
        figures::bytes_words(case.bytes),
        ranks = case.ranks,
    );
    if !good {
        out.push_str(&"<td class=\"nil\"></td>".repeat(5));
        let _ = writeln!(out, "<td data-l=\"verified\">{}</td></tr>", verified(case));
        return;
    }
    let cell = |label: &str, value: f64, shown: String| {
        format!(
            "<td class=\"r\" data-l=\"{label}\" data-v=\"{}\"><span>{shown}</span></td>",
            if value.is_finite() { value } else { 0.0 }
        )
    };
    let around = |[low, high]: [f64; 2], show: fn(f64) -> String| {
        if case.time.count > 1 {
            format!("<small>{} to {}</small>", show(low), show(high))
        } else {
            "<small>one run</small>".into()
        }
    };
    out.push_str(&cell("time", case.time.median, seconds(case.time.median) + &around(case.time.reach(), seconds)));
    if case.bytes > 0 {
        out.push_str(&cell("rate", case.rate.median, rate(case.rate.median) + &around(case.rate.reach(), rate)));
        out.push_str(&cell("raw rate", case.raw_rate.median, rate(case.raw_rate.median)));
    } else {
        out.push_str(&"<td class=\"nil\"></td>".repeat(2));
    }
    let sum: f64 = case.parts.iter().sum();
    let listed: Vec<String> = spent(case).map(|(_, part, time)| format!("{part} {}", seconds(time))).collect();
    if sum > 0.0 && bars {
        let _ = write!(
            out,
            "<td data-l=\"made of\" data-v=\"{}\"><div class=\"bar h\" role=\"img\" aria-label=\"{}\">",
            case.parts.get(2).copied().unwrap_or(0.0) / sum,
            listed.join(", ")
        );
        for (place, _, time) in spent(case) {
            let width = time / sum * 100.0;
            if width >= 0.5 {
                let _ = write!(out, "<i class=\"p{place}\" style=\"width:{}%\"></i>", crate::svg::n(width));
            }
        }
        out.push_str("</div></td>");
    } else {
        let longest = spent(case).max_by(|a, b| a.2.total_cmp(&b.2));
        let words = longest.map_or(String::new(), |(_, part, time)| format!("{part} {}", seconds(time)));
        let _ = write!(out, "<td data-l=\"most of it\">{words}</td>");
    }
    match case.transfers() {
        Some((_, latency)) => {
            out.push_str(&cell("call", latency.p50, format!("{}, {}", seconds(latency.p50), seconds(latency.p99))));
        }
        None => out.push_str("<td class=\"nil\"></td>"),
    }
    let _ = writeln!(out, "<td data-l=\"verified\">{}</td></tr>", verified(case));
}

fn verified(case: &CaseRow) -> String {
    match case.verified.as_str() {
        "yes" => "yes".into(),
        "no" if case.status == "ok" || case.status == "failed" => "<span class=\"bad\">no</span>".into(),
        other => escape(&other.replace('_', " ")),
    }
}

fn notes(out: &mut String, report: &Report) {
    if report.notes.is_empty() {
        return;
    }
    out.push_str("<section id=\"notes\"><h2>Notes</h2><ul class=\"say\">");
    for note in &report.notes {
        let shown: Vec<&str> = note.cases.iter().take(12).map(String::as_str).collect();
        let more = if note.cases.len() > 12 { ", ..." } else { "" };
        let which = if note.cases.len() == report.cases.len() { "all".into() } else { shown.join(", ") + more };
        let _ = write!(
            out,
            "<li>{} <span class=\"dim\">({}: {})</span></li>",
            escape(&note.text),
            count(note.cases.len(), "case", "cases"),
            escape(&which)
        );
    }
    out.push_str("</ul></section>");
}

fn provenance(out: &mut String, report: &Report) {
    if report.runs.is_empty() {
        return;
    }
    out.push_str("<section id=\"origin\"><h2>Where it comes from</h2>");
    for run in &report.runs {
        let _ = write!(
            out,
            "<h3>{}</h3><p class=\"sub\">Started {}{}</p>",
            escape(&run.path),
            escape(&run.started),
            if run.complete { "" } else { "; it did not come to its end" }
        );
        let _ = write!(out, "<p class=\"sub\">To run it again:</p><pre>{}</pre><dl>", escape(&run.command));
        for (name, value) in &run.facts {
            let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        out.push_str("</dl>");
    }
    let mut stacks: Vec<&str> = report.cases.iter().map(|case| case.stack.as_str()).collect();
    stacks.sort_unstable();
    stacks.dedup();
    if !stacks.is_empty() {
        out.push_str("<h3>Stacks</h3><ul class=\"say\">");
        for stack in stacks {
            let _ = write!(out, "<li><code>{}</code></li>", escape(stack));
        }
        out.push_str("</ul>");
    }
    out.push_str("</section>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use sha2::Digest;

    #[test]
    fn the_policy_names_the_script() {
        let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(SCRIPT));
        assert_eq!(SCRIPT_HASH, format!("sha256-{hash}"), "put the right one into page.rs");
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
    }
}
