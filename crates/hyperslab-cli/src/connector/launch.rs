//! A command under the connector, and the statistics of all its processes.

use super::{Ended, Environment, STATS, Statistics, child};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitCode};

/// Exit codes that shells and `env` use.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// What became of a command.
pub enum Launched {
    /// It ran to its end.
    Ended(Ended, Statistics),
    /// It could not be started, which was said; this is the exit code.
    NotStarted(ExitCode),
}

/// Runs `words` with the variables of `environment`, which are checked before. Statistics are gathered in a private file, which is gone afterwards.
pub fn launch(words: &[OsString], environment: Environment) -> Result<Launched> {
    let (program, arguments) = words.split_first().context("there is no command to run")?;
    launch_command(Command::new(program).args(arguments), environment)
}

/// The same of a command that is made ready.
pub fn launch_command(command: &mut Command, mut environment: Environment) -> Result<Launched> {
    for remark in environment.check()? {
        say(&format!("hyperslab: {remark}\n"));
    }
    let folder =
        tempfile::Builder::new().prefix("hyperslab-run-").tempdir().context("cannot make a temporary folder")?;
    let path = folder.path().join("stats.jsonl");
    // Made here, so that nobody but this user can read it, whatever the processes do.
    let options = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    options.with_context(|| format!("cannot create {}", path.display()))?;
    environment.set(STATS, &path);
    // The user is told here what could not be written.
    environment.set("HYPERSLAB_RUN", "1");
    started(environment.apply(command), || Statistics::read(&path))
}

/// Runs a command without the connector, whatever the user's variables say.
pub fn launch_alone(command: &mut Command) -> Result<Launched> {
    started(Environment::remove(command), Statistics::default)
}

fn started(command: &mut Command, statistics: impl FnOnce() -> Statistics) -> Result<Launched> {
    match child::run(command) {
        Ok(ended) => Ok(Launched::Ended(ended, statistics())),
        Err(error) => {
            let missing = error.kind() == ErrorKind::NotFound;
            say(&format!("hyperslab: cannot run {}: {error}\n", command.get_program().display()));
            Ok(Launched::NotStarted(ExitCode::from(if missing { NOT_FOUND } else { NOT_STARTED })))
        }
    }
}

/// Writes to standard error, which the command may have closed at the other end.
pub fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
