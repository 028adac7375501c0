//! A workflow file: where, with how many ranks, and which benchmarks in order.

use super::application::{self, Application};
use super::exerciser::Exerciser;
use super::metadata::Metadata;
use super::pattern::{Pattern, PatternKind};
use super::striping::Striping;
use super::values::Keys;
use anyhow::{Context, Result, bail};
use hyperslab_core::suggest;
use serde_json::Value;
use std::path::PathBuf;

/// The largest workflow file that is read.
const MAX_TEXT: usize = 16 << 20;
/// The most ranks that a workflow may ask for.
const MAX_RANKS: u64 = 1 << 20;

/// A workflow file, read and checked.
#[derive(Debug)]
pub struct Workflow {
    /// Where data files lie.
    pub directory: PathBuf,
    /// The ranks it asks for, if it does.
    pub ranks: Option<usize>,
    /// The launcher that it names.
    pub launcher: Option<MpiLauncher>,
    /// How files are to be striped, if it says so.
    pub striping: Option<Striping>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// The benchmarks in order.
    pub benchmarks: Vec<Benchmark>,
}

/// How h5bench would start its programs.
#[derive(Debug)]
pub struct MpiLauncher {
    /// `command`, such as `mpirun`.
    pub command: String,
    /// `configuration`: its options, which then must say the number of ranks.
    pub configuration: Option<String>,
}

/// One entry of the list of benchmarks.
#[derive(Debug)]
pub struct Benchmark {
    /// Its name in the file.
    pub name: String,
    /// Where in the file it stands, for messages.
    pub place: String,
    /// What it does.
    pub what: BenchmarkKind,
}

/// What a benchmark does.
#[derive(Debug)]
pub enum BenchmarkKind {
    /// Particles.
    Pattern(Box<Pattern>),
    /// Many small arrays.
    Metadata(Box<Metadata>),
    /// Growing buffers.
    Exerciser(Box<Exerciser>),
    /// An application kernel.
    Application(Box<Application>),
}

const PATTERN_KINDS: &[PatternKind] = &[
    PatternKind::Write,
    PatternKind::WriteUnlimited,
    PatternKind::WriteVarNormalDist,
    PatternKind::Overwrite,
    PatternKind::Append,
    PatternKind::Read,
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
        let (ranks, launcher) = parse_mpi(&top)?;
        parse_vol(&top, &mut notes)?;
        let striping = Striping::parse(&top)?;
        let directory = top.need("directory", top.text("directory")?)?.into();
        let list = top.need("benchmarks", top.list("benchmarks")?)?;
        if list.is_empty() {
            bail!("benchmarks is empty");
        }
        let mut benchmarks: Vec<Benchmark> = list
            .iter()
            .enumerate()
            .map(|(i, entry)| parse_benchmark(entry, &format!("benchmarks[{i}]"), &mut notes))
            .collect::<Result<_>>()?;
        let mut writer = None;
        for benchmark in &mut benchmarks {
            if let BenchmarkKind::Application(application) = &mut benchmark.what {
                application.follow(&mut writer, &mut notes);
            }
        }
        Ok(Self { directory, ranks, launcher, striping, notes, benchmarks })
    }

    /// Keeps only the benchmarks whose names are in a list separated by commas.
    pub fn filter(&mut self, list: &str) -> Result<()> {
        let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if let Some(wrong) = names.iter().find(|name| !all_kinds().any(|kind| kind == **name)) {
            bail!("--filter: unknown benchmark {wrong:?}; {}", suggest::hint(wrong, all_kinds()));
        }
        self.benchmarks.retain(|benchmark| names.contains(&benchmark.name.as_str()));
        if self.benchmarks.is_empty() {
            bail!("--filter {list} leaves no benchmark of the workflow");
        }
        Ok(())
    }
}

const METADATA: &str = "metadata";
const EXERCISER: &str = "exerciser";
/// Workflows name no file for the exerciser.
const EXERCISER_FILE: &str = "exerciser.h5";
/// Another name for `write_var_normal_dist` that a published sample uses.
const NORMAL_DIST_ALIAS: &str = "write_normal_dist";

fn all_kinds() -> impl Iterator<Item = &'static str> + Clone {
    let patterns = PATTERN_KINDS.iter().map(|kind| kind.name());
    patterns.chain([NORMAL_DIST_ALIAS, METADATA, EXERCISER]).chain(application::KINDS)
}

/// serde_json repeats the place at the end of its message.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(message, _)| message.to_owned())
}

fn parse_mpi(top: &Keys<'_>) -> Result<(Option<usize>, Option<MpiLauncher>)> {
    let Some(mpi) = top.object("mpi")? else { return Ok((None, None)) };
    let mpi = Keys::new(mpi, "mpi", &["command", "ranks", "configuration"])?;
    let (command, configuration) = (mpi.text("command")?, mpi.text("configuration")?);
    let mut ranks = mpi.positive("ranks")?;
    if let Some(number) = configuration.as_deref().and_then(|words| ranks_in(words, command.as_deref())) {
        ranks = Some(
            number
                .parse()
                .ok()
                .filter(|&n| n > 0)
                .with_context(|| format!("mpi: configuration asks for {number:?} ranks, which is not a number"))?,
        );
    }
    if let Some(n) = ranks.filter(|n| *n > MAX_RANKS) {
        bail!("mpi: {n} ranks; at most {MAX_RANKS} are possible");
    }
    Ok((ranks.map(|n| n as usize), command.map(|command| MpiLauncher { command, configuration })))
}

/// The number of ranks that a launcher's options ask for.
fn ranks_in<'a>(options: &'a str, command: Option<&str>) -> Option<&'a str> {
    let name = command.unwrap_or("mpirun").split_whitespace().next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or(name);
    // For other launchers -c means cores.
    let short = if name.starts_with("mpi") { ["-n", "-np", "-c"].as_slice() } else { ["-n", "-np"].as_slice() };
    let words: Vec<&str> = options.split_whitespace().collect();
    let apart = |w: &[&'a str]| (short.contains(&w[0]) || ["--np", "--ntasks"].contains(&w[0])).then_some(w[1]);
    let joined = |w: &&'a str| w.strip_prefix("--ntasks=").or(w.strip_prefix("--np="));
    words.windows(2).find_map(apart).or_else(|| words.iter().find_map(joined))
}

/// Connectors are for programs that call libhdf5 under their own name; here stacks do their work.
fn parse_vol(top: &Keys<'_>, notes: &mut Vec<String>) -> Result<()> {
    let Some(vol) = top.object("vol")? else { return Ok(()) };
    let vol = Keys::new(vol, "vol", &["library", "path", "preload", "connector"])?;
    for key in ["library", "path", "preload", "connector"] {
        vol.text(key)?;
    }
    if let Some(connector) = vol.text("connector")? {
        notes.push(format!("the connector {connector:?} is not loaded: MODE chooses a stack of this program instead"));
    }
    Ok(())
}

fn parse_benchmark(entry: &Value, place: &str, notes: &mut Vec<String>) -> Result<Benchmark> {
    let Value::Object(map) = entry else { bail!("{place} should be an object in braces") };
    // The older form: {"write": {"file": ..., "configuration": ...}}.
    let older = map.iter().next().filter(|(key, _)| map.len() == 1 && all_kinds().any(|kind| kind == key.as_str()));
    let (map, older_name) = match older {
        Some((name, Value::Object(inside))) => (inside, Some(name.clone())),
        _ => (map, None),
    };
    let keys = Keys::new(map, place, &["benchmark", "file", "configuration"])?;
    let name = match older_name {
        Some(name) => name,
        None => keys.need("benchmark", keys.text("benchmark")?)?,
    };
    let configuration = keys.need("configuration", keys.object("configuration")?)?;
    let inside = format!("{place}.configuration");
    let file = keys.text("file")?;
    let kind = PATTERN_KINDS.iter().copied().find(|kind| kind.name() == name);
    let kind = kind.or((name == NORMAL_DIST_ALIAS).then_some(PatternKind::WriteVarNormalDist));
    let what = match (kind, name.as_str()) {
        (Some(kind), _) => {
            if name == NORMAL_DIST_ALIAS {
                notes.push(format!("{name} is taken for {}; h5bench does not know this name", kind.name()));
            }
            let file = keys.need("file", file)?;
            BenchmarkKind::Pattern(Box::new(Pattern::parse(kind, file, configuration, &inside, notes)?))
        }
        (None, METADATA) => {
            let metadata = Metadata::parse(keys.need("file", file)?, configuration, &inside)?;
            notes.extend(metadata.notes.iter().cloned());
            BenchmarkKind::Metadata(Box::new(metadata))
        }
        (None, EXERCISER) => {
            let file = file.unwrap_or_else(|| EXERCISER_FILE.into());
            let exerciser = Exerciser::parse(file, configuration, &inside)?;
            notes.extend(exerciser.notes.iter().cloned());
            BenchmarkKind::Exerciser(Box::new(exerciser))
        }
        (None, other) if application::KINDS.contains(&other) => {
            let application = Application::parse(other, file, configuration, &inside)?;
            notes.extend(application.notes.iter().cloned());
            BenchmarkKind::Application(Box::new(application))
        }
        (None, other) => bail!("{place}: unknown benchmark {other:?}; {}", suggest::hint(other, all_kinds())),
    };
    Ok(Benchmark { name, place: inside, what })
}
