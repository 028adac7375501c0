//! The reproduction as a page with everything in it.

use super::claims::{ClaimVerdict, JudgedClaim};
use super::reproduction::{COUNT_WORDS, Reproduction, amount, counts};
use super::tables;
use crate::table::{Table, escaped};
use hyperslab_sim::TableReproduction;
use std::collections::BTreeSet;
use std::fmt::Write;

const STYLE: &str = "body{font-family:sans-serif;max-width:75em;margin:2em auto;padding:0 1em}\
    table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}\
    .number{text-align:right}svg{max-width:34em}code{font-size:85%}\
    .met{color:#187a33}.direction{color:#8a6d00}.missed{color:#b3261e}.input,.not{color:#666}";

/// The whole page.
pub fn html(found: &Reproduction) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Published and simulated</title>\n\
         <style>{STYLE}</style></head>\n<body><h1>Published and simulated</h1>\n"
    );
    if !found.claims.is_empty() {
        let _ = write!(
            page,
            "<h2>Claims by verdict</h2>\n{}<p>{}</p>\n",
            counts(&found.claims).html(),
            escaped(COUNT_WORDS)
        );
    }
    if let Some((tables, wanted)) = &found.tables {
        page += &part(tables, wanted.as_deref());
    }
    if !found.claims.is_empty() {
        page += "<h2>Claims</h2>\n";
        page += &judged(&found.claims);
    }
    page + "</body></html>\n"
}

fn section(heading: &str, table: &Table, words: &str) -> String {
    format!("<h2>{}</h2>\n{}<p>{}</p>\n", escaped(heading), table.html(), escaped(words))
}

fn part(found: &TableReproduction, wanted: Option<&str>) -> String {
    let mut text = section("Accuracy of tables", &tables::accuracies(found), tables::ACCURACY_WORDS);
    text += &scatter(found);
    let all: BTreeSet<&str> = found.rows.iter().map(|one| one.row.table.as_str()).collect();
    let mut names: Vec<&str> = all.into_iter().filter(|name| wanted.is_none_or(|wanted| wanted == *name)).collect();
    names.sort_by_key(|name| name.trim_start_matches("A.").parse::<u32>().unwrap_or(0));
    for name in names {
        let source = found.rows.iter().find(|one| one.row.table == name).map_or("", |one| one.row.source.as_str());
        text += &format!("<h2>{}</h2>\n{}", escaped(source), tables::rows(found, Some(name)).html());
    }
    let _ = writeln!(text, "<p>{}</p>", escaped(tables::ROW_WORDS));
    text + &section("Parameters", &tables::parameters(found), &tables::parameter_words(found))
}

fn judged(claims: &[JudgedClaim]) -> String {
    let mut text = String::from(
        "<table><tr><th>no.</th><th>where</th><th>published</th><th>simulated</th><th>verdict</th><th>how, and why</th></tr>\n",
    );
    for one in claims {
        let commands: String = one
            .commands
            .iter()
            .map(|words| format!("<code>hyperslab simulate {}</code><br>", escaped(words)))
            .collect();
        let class = if one.verdict == ClaimVerdict::NotSimulated { "not" } else { one.verdict.words() };
        let _ = writeln!(
            text,
            "<tr><td class=\"number\">{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{}</td><td>{commands}{}</td></tr>",
            one.number,
            escaped(&one.claim.cited()),
            escaped(&one.claim.words()),
            one.simulated.map_or(String::new(), |found| escaped(&amount(one, found))),
            one.verdict.words(),
            escaped(&one.why),
        );
    }
    text + "</table>\n"
}

const SIZE: f64 = 420.0;
const MARGIN: f64 = 50.0;

/// A dot for each row: published against simulated by a fit that did not know the table.
fn scatter(found: &TableReproduction) -> String {
    let rates = || found.rows.iter().flat_map(|one| [one.row.rate[1], one.unknown]);
    let (low, high) = (rates().fold(f64::INFINITY, f64::min).ln(), rates().fold(0.0, f64::max).ln());
    let at = |rate: f64| (rate.ln() - low) / (high - low).max(1e-9) * SIZE;
    let whole = SIZE + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole} {whole}\" font-family=\"sans-serif\" font-size=\"12\" \
         role=\"img\" aria-label=\"Published and simulated rates\">\n<rect width=\"{whole}\" height=\"{whole}\" fill=\"white\"/>\n\
         <path d=\"M{MARGIN} {0}V{MARGIN}M{MARGIN} {0}H{0}M{MARGIN} {0}L{0} {MARGIN}\" stroke=\"#999\" fill=\"none\"/>\n\
         <text x=\"{1}\" y=\"{2}\" text-anchor=\"middle\">published MiB/s, {3:.0} to {4:.0}</text>\n\
         <text x=\"14\" y=\"{1}\" transform=\"rotate(-90 14 {1})\" text-anchor=\"middle\">simulated</text>\n",
        MARGIN + SIZE,
        whole / 2.0,
        whole - 12.0,
        low.exp(),
        high.exp(),
    );
    for one in &found.rows {
        let (x, y) = (MARGIN + at(one.row.rate[1]), MARGIN + SIZE - at(one.unknown));
        let colour = if one.row.writes { "#d62728" } else { "#1f77b4" };
        let words = format!(
            "{} {}: {:.0} published, {:.0} simulated",
            one.row.table,
            one.row.words(),
            one.row.rate[1],
            one.unknown
        );
        let _ = writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\" fill-opacity=\"0.6\"><title>{}</title></circle>",
            escaped(&words)
        );
    }
    svg + "</svg>\n<p>Red: writes; blue: reads. Each by a fit that did not know its table.</p>\n"
}
