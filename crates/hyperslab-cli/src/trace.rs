//! `hyperslab trace`: what a program does to HDF5 files, as workloads.

mod output_path;
mod recording;

use crate::connector::{self, Environment, Launched, say};
use anyhow::Result;
use clap::Args;
use output_path::Place;
use recording::Recording;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  hyperslab trace -- python script.py
      one workload for each file, in ./hyperslab-trace
  hyperslab trace -o run.jsonl -- ./simulation        under this name
  hyperslab bench --workload run.jsonl --stack 'hdf5,hdf5(plane=on),zarr'
      play it elsewhere

Every file that the program opens becomes a workload (docs/workload-format.md):
each call with its selection, its memory layout and its time, and the pauses
between. What is in the files is not recorded. Existing files are never
replaced.

Exit codes: that of the command; 128 + N when signal N ended it; 2 bad input,
nothing was run; 126 or 127 the command cannot be started.";

/// Options of `trace`.
#[derive(Debug, Args)]
pub struct TraceOptions {
    /// A file for the workload, numbered if there are several, or a folder for all of them [default: hyperslab-trace]
    #[arg(short, long, value_name = "FILE|DIR")]
    out: Option<PathBuf>,
    /// Print what was recorded as JSON, on standard error: standard output is the command's
    #[arg(long)]
    json: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command and says what was recorded.
pub fn run(options: &TraceOptions) -> Result<ExitCode> {
    let plugin = connector::find_plugin()?;
    let mut environment = Environment::new(&plugin)?;
    let place = Place::new(options.out.as_deref())?;
    environment.set("HYPERSLAB_MODE", "trace");
    environment.set("HYPERSLAB_TRACE", place.pattern());
    let (ended, statistics) = match connector::launch(&options.command, environment)? {
        Launched::Ended(ended, statistics) => (ended, statistics),
        Launched::NotStarted(code) => return Ok(code),
    };
    match place.gather() {
        Ok(recordings) if recordings.is_empty() && !options.json => {
            let why = match connector::summary(&statistics) {
                Some(text) => format!("nothing was recorded\n{text}"),
                None => connector::nothing_seen(ended),
            };
            say(&format!("hyperslab: {why}"));
        }
        Ok(recordings) if options.json => say(&format!("{:#}\n", document(&recordings))),
        Ok(recordings) => say(&words(&recordings)),
        Err(error) => say(&format!("hyperslab: {error:#}\n")),
    }
    Ok(connector::exit_code(ended, &statistics))
}

fn document(recordings: &[Recording]) -> Value {
    let one = |one: &Recording| json!({"path": one.path, "subject": one.subject, "about": one.about, "playable": one.playable});
    json!({"recordings": recordings.iter().map(one).collect::<Vec<_>>()})
}

fn words(recordings: &[Recording]) -> String {
    let number = recordings.len();
    let mut text = format!("hyperslab: {number} workload{} recorded\n", if number == 1 { "" } else { "s" });
    for recording in recordings {
        text += &format!("  {}\n    {}\n", recording.path.display(), recording.about);
    }
    if let Some(playable) = recordings.iter().find(|recording| recording.playable) {
        text += &format!("  to play it: hyperslab bench --workload {}\n", playable.path.display());
    }
    text
}
