//! `hyperslab report`: results as a page, pictures or tables.

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use hyperslab_report::{Form, Input, Report};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab report results-1                       writes report.html
  hyperslab report before after -o change.html     what changed between two runs
  hyperslab report nightly/*/results.json          trends over many
  hyperslab report results-1 trace.jsonl
      with time lines of a recording
  hyperslab report results-1 --format md           a table for a wiki

Times of single calls are drawn for runs of hyperslab bench --samples.

Exit codes: 0 written, 2 bad input.";

/// The form to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// One page with everything in it
    Html,
    /// Tables for a wiki or an issue
    Md,
    /// A row per case
    Csv,
    /// All pictures
    Svg,
    /// Everything, for programs
    Json,
}

/// Options of `report`.
#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Results of bench: files, or the folders that they are in; also recordings of trace
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,
    /// Where to write [default: report.html; other forms go to standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The form to write [default: by the name of FILE, otherwise html]
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<FormName>,
    /// Replace a file that is there and is no report
    #[arg(long)]
    overwrite: bool,
}

/// Reads, works out, writes.
pub fn run(options: &ReportOptions) -> Result<ExitCode> {
    let inputs = options.results.iter().map(|path| Input::load(path)).collect::<Result<Vec<_>, _>>()?;
    let report = Report::of(inputs);
    let form = options.format.unwrap_or_else(|| by_name(options.output.as_deref()));
    let text = match form {
        FormName::Html => Form::Html,
        FormName::Md => Form::Markdown,
        FormName::Csv => Form::Csv,
        FormName::Svg => Form::Svg,
        FormName::Json => Form::Json,
    }
    .of(&report);
    let output = options.output.clone().or_else(|| (form == FormName::Html).then(|| "report.html".into()));
    let Some(output) = output.filter(|path| path != Path::new("-")) else {
        print!("{text}");
        return Ok(ExitCode::SUCCESS);
    };
    write(&output, &text, options.overwrite)?;
    println!("{}", report.verdict);
    println!("Report: {}", output.display());
    Ok(ExitCode::SUCCESS)
}

fn by_name(output: Option<&Path>) -> FormName {
    match output.and_then(|path| path.extension()).and_then(|extension| extension.to_str()) {
        Some("md") => FormName::Md,
        Some("csv") => FormName::Csv,
        Some("svg") => FormName::Svg,
        Some("json") => FormName::Json,
        _ => FormName::Html,
    }
}

/// Writes a report in one step. What is replaced is an earlier report, unless the user says otherwise: `report *` must not
/// destroy results.
pub fn write(path: &Path, text: &str, overwrite: bool) -> Result<()> {
    if !overwrite && path.exists() && !is_report(path) {
        bail!("{} exists and is no report\n  try: another -o, or --overwrite", path.display());
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    fs::write(&new, text).with_context(|| format!("write {}", new.display()))?;
    fs::rename(&new, path).with_context(|| format!("write {}", path.display()))
}

fn is_report(path: &Path) -> bool {
    let text = fs::read(path).unwrap_or_default();
    text.is_empty() || text.windows(24).any(|part| part == b"Made by hyperslab report")
}
