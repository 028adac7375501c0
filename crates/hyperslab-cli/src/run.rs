//! `hyperslab run`: a program, unchanged, with its HDF5 calls accelerated.

mod comparison;
mod content;

use crate::connector::{self, Ended, Environment, Launched, Modes, STATS, Sink, say};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use hyperslab_core::units;
use hyperslab_journal::recover;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab run -- python script.py
      compressed data on all cores
  hyperslab run --mode codec+async -- ./simulation
      and writes behind computation
  hyperslab run --mode log --log-dir /local/scratch -- ./simulation
      small writes to a log
  hyperslab run --stats=stats.jsonl -- mpirun -n 4 ./simulation
  hyperslab run --compare -- python script.py
      without and with it, in copies of this folder: which is faster, and
      whether the files are the same

Modes, joined by +:
  codec   chunks are compressed and expanded on several threads (the default)
  async   writes return after a copy, and are made while the program computes
  log     writes go to a log on fast storage first; a crash of the program loses
          none
  auto    async or not, for every time step whatever should take less
  cache   what was read is kept in memory
  safe    a kill leaves each file as of its last flush, after `hyperslab
          recover`; part of log
  trace   calls are recorded; `hyperslab trace` does this with less to type
  off     every call is passed on, to compare

The file is the same ordinary HDF5 file. docs/connector.md says what each mode
promises. Exit codes: that of the command; 128 + N when signal N ended it; 74
the command ended well, but data that it believed to be written is not; 2 bad
input, nothing was run; 126 or 127 the command cannot be started; with
--compare 1 if files differ.";

/// The least memory that the connector takes.
const LEAST_MEMORY: u64 = 1 << 20;

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// What the connector does, such as codec+async [default: HYPERSLAB_MODE, or codec]
    #[arg(long, value_name = "MODES")]
    mode: Option<String>,
    /// Memory that the connector may hold in each process [default: HYPERSLAB_MEMORY, or 256MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Threads for one call [default: HYPERSLAB_THREADS, or as many as there are cores, at most 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    threads: Option<u32>,
    /// Where logs go, with --mode log [default: HYPERSLAB_LOG_DIR, or beside each file]
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Print every process's statistics as a line of JSON, or append them to FILE (%p: number of the process)
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "stderr")]
    stats: Option<String>,
    /// Run the command without and with the connector, in copies of this folder, and compare times and files
    #[arg(long, conflicts_with_all = ["stats", "quiet"])]
    compare: bool,
    /// Print no summary
    #[arg(long, short)]
    quiet: bool,
    /// Print statistics as JSON in place of the summary, on standard error: standard output is the command's
    #[arg(long, conflicts_with = "stats")]
    json: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command and says what the connector did.
pub fn run(options: &RunOptions) -> Result<ExitCode> {
    let modes = options.mode.clone().or_else(|| text_of("HYPERSLAB_MODE"));
    let modes = modes.map(|text| Modes::parse(&text)).transpose()?;
    let with_log = modes.as_ref().is_some_and(|modes| modes.has("log"));
    let log_dir = log_dir(options, with_log)?;
    let json = options.json.then(|| "stderr".to_owned());
    let stats = options.stats.clone().or(json).or_else(|| text_of(STATS));
    let sink = stats.map(|text| Sink::parse(&text)).transpose()?;
    let environment = environment(options, modes.as_ref(), log_dir.as_deref())?;
    if options.compare {
        environment.check()?;
        return comparison::Compared { command: &options.command, environment: &environment }.run();
    }
    let (ended, statistics) = match connector::launch(&options.command, environment)? {
        Launched::Ended(ended, statistics) => (ended, statistics),
        Launched::NotStarted(code) => return Ok(code),
    };
    if !options.quiet && !options.json {
        let text = connector::summary(&statistics).unwrap_or_else(|| connector::nothing_seen(ended));
        say(&format!("hyperslab: {text}"));
    }
    if with_log {
        say_what_is_left(ended, log_dir.as_deref());
    }
    if let Some(Err(error)) = sink.map(|sink| sink.take(&statistics)) {
        say(&format!("hyperslab: {error:#}\n"));
    }
    Ok(connector::exit_code(ended, &statistics))
}

/// The variables of everything that was asked for; the connector reads the user's own for the rest.
fn environment(options: &RunOptions, modes: Option<&Modes>, log_dir: Option<&Path>) -> Result<Environment> {
    let mut environment = Environment::new(&connector::find_plugin()?)?;
    if let Some(modes) = modes {
        environment.set("HYPERSLAB_MODE", modes.to_string());
    }
    if let Some(text) = &options.memory {
        let bytes = units::parse_size(text)?;
        let least = units::display_size(LEAST_MEMORY);
        ensure!(bytes >= LEAST_MEMORY, "--memory {text} is too little\n  try: {least} or more");
        environment.set("HYPERSLAB_MEMORY", bytes.to_string());
    }
    if let Some(threads) = options.threads {
        environment.set("HYPERSLAB_THREADS", threads.to_string());
    }
    if let Some(folder) = log_dir {
        environment.set("HYPERSLAB_LOG_DIR", folder);
    }
    Ok(environment)
}

/// The folder of logs, whole, since the command may change its directory.
fn log_dir(options: &RunOptions, with_log: bool) -> Result<Option<PathBuf>> {
    if options.log_dir.is_some() && !with_log {
        bail!("--log-dir is for logs, and the mode has none\n  try: --mode log");
    }
    let Some(folder) = options.log_dir.clone().or_else(|| std::env::var_os("HYPERSLAB_LOG_DIR").map(PathBuf::from))
    else {
        return Ok(None);
    };
    if with_log && !folder.is_dir() {
        bail!("there is no folder {} for logs\n  try: mkdir -p {}", folder.display(), folder.display());
    }
    let whole = std::path::absolute(&folder).with_context(|| format!("{} is no path", folder.display()))?;
    Ok(Some(whole))
}

/// After a run with a log: whether something waits in it, and how it gets into the files.
fn say_what_is_left(ended: Ended, log_dir: Option<&Path>) {
    let Some(folder) = log_dir else {
        if ended.signal().is_some() {
            say("hyperslab: what was written last may be in logs beside the files\n  \
                 try: hyperslab recover FOLDER, with the folder of the files\n");
        }
        return;
    };
    let left = recover::directory(folder).and_then(|files| recover::survey(&files, false)).unwrap_or_default();
    let waiting = left.iter().filter(|log| log.can_be_replayed() && log.writes > 0).count();
    if waiting > 0 {
        let folder = folder.display();
        say(&format!(
            "hyperslab: writes that are not in their files yet wait in {folder} ({waiting} {})\n  \
             try: hyperslab recover {folder}\n",
            if waiting == 1 { "log" } else { "logs" }
        ));
    }
}

fn text_of(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|text| !text.is_empty())
}
