//! `simulate --reproduce`: what others published beside what is simulated, as text, JSON or a page.

use super::claims::{self, ClaimVerdict, JudgedClaim};
use super::{SimulateOptions, reproduction_page, tables};
use crate::table::{Align, Table, wrapped};
use crate::terminal;
use anyhow::{Context, Result, bail};
use hyperslab_core::suggest;
use hyperslab_sim::{TableReproduction, builtin, published_claims, published_tables};
use serde_json::json;
use std::io::IsTerminal;
use std::process::ExitCode;

/// The work whose tables are here.
const TABLES_OF: &str = "hdf5-lustre";

/// What is set beside each other.
pub struct Reproduction {
    /// Tables, and the only one that is wanted.
    pub tables: Option<(TableReproduction, Option<String>)>,
    /// Claims.
    pub claims: Vec<JudgedClaim>,
}

/// Works out what `name` asks for and prints it.
pub fn run(name: &str, options: &SimulateOptions) -> Result<ExitCode> {
    let found = Reproduction::of(name)?;
    if let Some(path) = &options.page {
        crate::report::write(path, &reproduction_page::html(&found), true)?;
    }
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&found.value()).context("print the reproduction")?),
        false => print!("{}", found.text()),
    }
    if let (Some(path), false) = (&options.page, options.json) {
        println!("Page: {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

impl Reproduction {
    fn of(name: &str) -> Result<Self> {
        let rows = published_tables()?;
        let table = rows.iter().find(|row| row.table.eq_ignore_ascii_case(name)).map(|row| row.table.clone());
        let source = published_claims().iter().find(|claim| claim.source == name).map(|claim| claim.source.as_str());
        let (with_tables, with_claims) = match name {
            "all" => (true, true),
            "tables" => (true, false),
            "claims" => (false, true),
            TABLES_OF => (true, true),
            _ if table.is_some() => (true, false),
            _ if source.is_some() => (false, true),
            _ => {
                let mut known: Vec<&str> = vec!["all", "tables", "claims"];
                known.extend(rows.iter().map(|row| row.table.as_str()));
                known.extend(published_claims().iter().map(|claim| claim.source.as_str()));
                known.dedup();
                bail!("--reproduce {name}: nothing of this name was published\n  try: {}", suggest::hint(name, known));
            }
        };
        let tables = match with_tables {
            true => Some((TableReproduction::of(&builtin("lustre-2014")?)?, table)),
            false => None,
        };
        let shown = std::io::stderr().is_terminal();
        let progress = |at: usize, all: usize| {
            if shown && at.is_multiple_of(10) {
                eprintln!("claims: {at} of {all}");
            }
        };
        let claims = if with_claims { claims::judged(source, progress)? } else { Vec::new() };
        Ok(Self { tables, claims })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if let Some((tables, wanted)) = &self.tables {
            text += &tables::text(tables, wanted.as_deref());
        }
        if !self.claims.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            let width = terminal::width().unwrap_or(80).clamp(40, 100);
            text += &self.claims.iter().map(|claim| in_words(claim, width)).collect::<String>();
            text += "\n";
            text += &counts(&self.claims).render();
            text += &wrapped(COUNT_WORDS, width, 0);
        }
        text
    }

    fn value(&self) -> serde_json::Value {
        let claim = |one: &JudgedClaim| {
            json!({
                "claim": one.number,
                "source": one.claim.cited(),
                "system": one.claim.system,
                "workload": one.claim.workload,
                "metric": one.claim.metric,
                "condition": one.claim.condition,
                "published": one.claim.value,
                "unit": one.claim.unit,
                "simulated": one.simulated,
                "error": one.error,
                "verdict": one.verdict,
                "pairs_in_order": one.ordered.map(|(right, all)| [right, all]),
                "simulate": one.commands,
                "why": one.why,
            })
        };
        let mut value = match &self.tables {
            Some((tables, _)) => tables::as_value(tables),
            None => json!({}),
        };
        value["claims"] = self.claims.iter().map(claim).collect();
        value
    }
}

/// A claim for a terminal.
fn in_words(one: &JudgedClaim, width: usize) -> String {
    let mut text = wrapped(&format!("{} {}: {}", one.number, one.claim.cited(), one.verdict.words()), width, 2);
    text += &wrapped(&format!("  published: {}", one.claim.words()), width, 4);
    if let Some(found) = one.simulated {
        text += &wrapped(&format!("  simulated: {}", amount(one, found)), width, 4);
    }
    for command in &one.commands {
        text += &wrapped(&format!("  hyperslab simulate {command}"), width, 4);
    }
    if !one.why.is_empty() {
        text += &wrapped(&format!("  {}", one.why), width, 2);
    }
    text
}

/// What was simulated, with its error and how much of its order is right.
pub fn amount(one: &JudgedClaim, found: f64) -> String {
    let mut text = number(found);
    if let Some(error) = one.error {
        text += &format!(" ({:+.0} %)", error * 100.0);
    }
    if let Some((right, all)) = one.ordered {
        text += &format!(", {right} of {all} in order");
    }
    text
}

/// A number with three figures.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// How many claims of each work have which verdict.
pub fn counts(claims: &[JudgedClaim]) -> Table {
    let heads = std::iter::once("work").chain(ClaimVerdict::ALL.map(ClaimVerdict::words)).chain(["all"]);
    let columns: Vec<(&str, Align)> =
        heads.enumerate().map(|(at, head)| (head, if at == 0 { Align::Left } else { Align::Right })).collect();
    let mut table = Table::new(&columns);
    let mut works: Vec<&str> = claims.iter().map(|one| one.claim.source.as_str()).collect();
    works.dedup();
    if works.len() > 1 {
        works.push("all");
    }
    for work in works {
        let of: Vec<&JudgedClaim> = claims.iter().filter(|one| work == "all" || one.claim.source == work).collect();
        let count = |verdict: ClaimVerdict| of.iter().filter(|one| one.verdict == verdict).count().to_string();
        let cells = std::iter::once(work.to_owned()).chain(ClaimVerdict::ALL.map(count));
        table.row(cells.chain([of.len().to_string()]).collect());
    }
    table
}

/// What the verdicts mean.
pub const COUNT_WORDS: &str = "met: times and rates within 15 %, ratios within 20 %, saturation points within a factor of 1.5. \
    direction: the winner, the sign or the order of a series is right, the figure is not. input: a figure that the system's \
    description was made of, or that follows from one; no success. Of the systems of these claims only lustre-2014 is calibrated.";
