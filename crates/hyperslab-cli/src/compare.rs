//! `hyperslab compare`: the same cases in two results files.

mod ci;
mod differences;
mod pairs;
mod show;

use crate::cli::{CompareForm, CompareOptions, EXIT_FAILED, Metric};
use anyhow::{Context, Result, bail};
use hyperslab_report::ratio::{self, Ratio, Verdict};
use hyperslab_run::{CaseResult, Repetition, Results};
use pairs::{Pair, Pairing};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A pair of cases with what came of comparing them.
struct Compared<'a> {
    pair: Pair<'a>,
    /// Median figure of each side.
    medians: [f64; 2],
    ratio: Ratio,
    verdict: Verdict,
}

/// Everything `compare` has to say.
pub struct Comparison<'a> {
    /// The files.
    a: String,
    b: String,
    compared: Vec<Compared<'a>>,
    /// Cases that were not compared: which, and why.
    left_out: Vec<(&'a CaseResult, String)>,
    warnings: Vec<String>,
    /// Whether a case that was good in the first file failed in the second.
    broke: bool,
}

/// Reads, compares and reports.
pub fn run(options: &CompareOptions) -> Result<ExitCode> {
    let whole = |path: &Path| if path.is_dir() { path.join("results.json") } else { path.to_owned() };
    let load = |path: &PathBuf| Results::load(&whole(path)).map_err(anyhow::Error::from).context("a file to compare");
    let all = options.results.iter().map(load).collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = options.results.iter().map(|path| whole(path).display().to_string()).collect();
    let [first, others @ ..] = all.as_slice() else { bail!("two files at least") };
    let comparisons: Vec<Comparison<'_>> = others
        .iter()
        .zip(&names[1..])
        .map(|(other, name)| Comparison { a: names[0].clone(), b: name.clone(), ..compare(first, other, options) })
        .collect();
    let form = if options.json { CompareForm::Json } else { options.format };
    let text = match form {
        CompareForm::Junit => ci::junit(&comparisons),
        CompareForm::Github => ci::github(&comparisons),
        // One alone is set over many lines, several are one in a line, for programs to read one by one.
        CompareForm::Json if comparisons.len() == 1 => format!("{:#}\n", document(&comparisons[0], options)),
        CompareForm::Json => comparisons.iter().map(|one| format!("{}\n", document(one, options))).collect(),
        CompareForm::Table => comparisons.iter().map(|one| show::text(one, options)).collect::<Vec<_>>().join("\n"),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // Who reads has read enough; the exit code still tells.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.context("print the comparison")?,
    }
    if comparisons.iter().any(|one| one.compared.is_empty() && !one.broke) {
        bail!(
            "the two files have no case in common that succeeded in both; run the same workflow and stacks twice\n  \
             try: --match with less, if they differ on purpose"
        );
    }
    let bad = comparisons.iter().any(|one| one.broke || one.compared.iter().any(|c| c.verdict == Verdict::Slower));
    Ok(if bad { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

/// Pairs the cases of two results files and judges each pair.
pub fn compare<'a>(a: &'a Results, b: &'a Results, options: &CompareOptions) -> Comparison<'a> {
    let Pairing { pairs, mut left_out, broke } = Pairing::of(a, b, &options.matched);
    let mut warnings = differences::warnings(a, b);
    let mut compared = Vec::new();
    for pair in pairs {
        let figures = |case: &CaseResult| -> Vec<f64> {
            case.repetitions.iter().filter_map(|repetition| figure(repetition, options.metric)).collect()
        };
        let (of_a, of_b) = (figures(pair.a), figures(pair.b));
        let whole = of_a.len() == pair.a.repetitions.len() && of_b.len() == pair.b.repetitions.len();
        let Some((medians, ratio)) = ratio::of_medians(&of_a, &of_b).filter(|_| whole) else {
            left_out
                .push((pair.a, format!("a repetition has no {} figure that can be compared", options.metric.name())));
            continue;
        };
        if pair.a.bytes != pair.b.bytes {
            warnings.push(format!(
                "case {}: {} bytes in the first file, {} in the second: not the same work",
                pair.numbers(),
                pair.a.bytes,
                pair.b.bytes
            ));
        }
        let verdict = Verdict::of(&ratio, options.threshold / 100.0);
        compared.push(Compared { pair, medians, ratio, verdict });
    }
    if compared.iter().any(|c| c.ratio.interval.is_none()) {
        warnings.push(format!(
            "with fewer than {} repetitions on a side there is no interval, and chance may decide: use --repeat 5 or more",
            ratio::FEWEST
        ));
    }
    Comparison { a: String::new(), b: String::new(), compared, left_out, warnings, broke }
}

/// How fast a repetition was: bytes per second, or runs per second where no bytes are moved.
fn figure(repetition: &Repetition, metric: Metric) -> Option<f64> {
    let rate = match metric {
        Metric::Observed if repetition.bytes() == 0 => 1.0 / repetition.observed(),
        Metric::Observed => repetition.observed_rate(),
        Metric::Raw => repetition.raw_rate(),
    };
    (rate.is_finite() && rate > 0.0).then_some(rate)
}

/// The comparison for programs; described in docs/results-format.md.
fn document(comparison: &Comparison<'_>, options: &CompareOptions) -> serde_json::Value {
    let cases: Vec<_> = comparison
        .compared
        .iter()
        .map(|c| {
            let side = |case: &CaseResult, median: f64| {
                json!({"number": case.number, "repetitions": case.repetitions.len(), "median": median})
            };
            json!({
                "benchmark": c.pair.a.benchmark,
                "workload": c.pair.a.workload,
                "stack": c.pair.a.stack.to_string(),
                "stack_b": c.pair.b.stack.to_string(),
                "ranks": c.pair.a.ranks,
                "cache": c.pair.a.cache.name(),
                "a": side(c.pair.a, c.medians[0]),
                "b": side(c.pair.b, c.medians[1]),
                "ratio": c.ratio.value,
                "ratio_95": c.ratio.interval,
                "verdict": c.verdict.word(),
            })
        })
        .collect();
    let left_out: Vec<_> = comparison
        .left_out
        .iter()
        .map(|(case, why)| {
            json!({
                "number": case.number,
                "benchmark": case.benchmark,
                "stack": case.stack.to_string(),
                "why": why,
            })
        })
        .collect();
    json!({
        "hyperslab_comparison": 1,
        "a": comparison.a,
        "b": comparison.b,
        "metric": options.metric.name(),
        "threshold_percent": options.threshold,
        "warnings": comparison.warnings,
        "cases": cases,
        "not_compared": left_out,
    })
}
