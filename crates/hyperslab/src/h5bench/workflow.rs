//! A workflow file: where, with how many ranks, and which benchmarks in order.

use super::pattern::{Pattern, PatternKind};
use super::values::Keys;
use anyhow::{Context, Result, bail};
use hyperslab_core::nearest;
use serde_json::Value;
use std::path::PathBuf;

/// The largest workflow file that is read.
const MAX_TEXT: usize = 16 << 20;
/// The most ranks that a workflow may ask for on thread ranks.
const MAX_RANKS: u64 = 4096;

/// A workflow file, read and checked.
#[derive(Debug)]
pub struct Workflow {
    /// Where data files lie.
    pub directory: PathBuf,
    /// The ranks it asks for, if it does.
    pub ranks: Option<usize>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The benchmarks in order.
    pub benchmarks: Vec<Pattern>,
}

/// Benchmark kinds of h5bench that this build does not run.
const OTHER_KINDS: &[&str] = &[
    "write-unlimited",
    "write_var_normal_dist",
    "write_normal_dist",
    "overwrite",
    "append",
    "exerciser",
    "metadata",
    "amrex",
    "openpmd",
    "e3sm",
    "macsio",
];

impl Workflow {
    /// Parses the text of a workflow file.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_TEXT {
            bail!("it is longer than {MAX_TEXT} bytes");
        }
        let value: Value = serde_json::from_str(text)
            .map_err(|e| anyhow::anyhow!("line {}, column {}: {}", e.line(), e.column(), without_place(&e)))?;
        let Value::Object(top) = &value else { bail!("the file should hold an object in braces") };
        let top = Keys::new(top, "top level", &["mpi", "vol", "file-system", "directory", "benchmarks"])?;
        let mut notes = Vec::new();
        let ranks = parse_mpi(&top, &mut notes)?;
        if top.object("vol")?.is_some_and(|vol| !vol.is_empty()) {
            notes.push("the vol block is not used: connectors are not available in this build".into());
        }
        if top.object("file-system")?.is_some_and(|fs| !fs.is_empty()) {
            notes.push("the file-system block is not used: striping is not available in this build".into());
        }
        let directory = top.need("directory", top.text("directory")?)?.into();
        let list = top.need("benchmarks", top.list("benchmarks")?)?;
        if list.is_empty() {
            bail!("benchmarks is empty");
        }
        let benchmarks = list
            .iter()
            .enumerate()
            .map(|(i, entry)| parse_benchmark(entry, &format!("benchmarks[{i}]"), &mut notes))
            .collect::<Result<_>>()?;
        Ok(Self { directory, ranks, notes, benchmarks })
    }
}

/// serde_json repeats the place at the end of its message.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

fn parse_mpi(top: &Keys<'_>, notes: &mut Vec<String>) -> Result<Option<usize>> {
    let Some(mpi) = top.object("mpi")? else { return Ok(None) };
    let mpi = Keys::new(mpi, "mpi", &["command", "ranks", "configuration"])?;
    let mut ranks = mpi.positive("ranks")?;
    if let Some(configuration) = mpi.text("configuration")? {
        let words: Vec<&str> = configuration.split_whitespace().collect();
        let asked = words.windows(2).find(|w| ["-n", "-np", "--np", "-c", "--ntasks"].contains(&w[0])).map(|w| w[1]);
        if let Some(number) = asked {
            ranks =
                Some(
                    number.parse().ok().filter(|&n| n > 0).with_context(|| {
                        format!("mpi: configuration asks for {number:?} ranks, which is not a number")
                    })?,
                );
        }
    }
    if let Some(n) = ranks
        && n > MAX_RANKS
    {
        bail!("mpi: {n} ranks; at most {MAX_RANKS} thread ranks are possible");
    }
    if let Some(command) = mpi.text("command")? {
        notes.push(format!("{command} is not used: ranks are threads of this process"));
    }
    Ok(ranks.map(|n| n as usize))
}

fn parse_benchmark(entry: &Value, place: &str, notes: &mut Vec<String>) -> Result<Pattern> {
    let Value::Object(map) = entry else { bail!("{place} should be an object in braces") };
    let keys = Keys::new(map, place, &["benchmark", "file", "configuration"])?;
    let name = keys.need("benchmark", keys.text("benchmark")?)?;
    let kind = match name.as_str() {
        "write" => PatternKind::Write,
        "read" => PatternKind::Read,
        other if OTHER_KINDS.contains(&other) => bail!("{place}: benchmark {other:?} is not available in this build"),
        other => bail!(
            "{place}: unknown benchmark {other:?}; {}",
            nearest::hint(other, ["write", "read"].into_iter().chain(OTHER_KINDS.iter().copied()))
        ),
    };
    let file = keys.need("file", keys.text("file")?)?;
    let configuration = keys.need("configuration", keys.object("configuration")?)?;
    Pattern::parse(kind, file, configuration, &format!("{place}.configuration"), notes)
}
