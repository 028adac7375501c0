//! Runs a program beside a clock, and says what it said.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Why trials with Python clients are skipped.
pub const NO_PYTHON: &str = "HYPERSLAB_PYTHON is not set: cargo xtask test sets it";

/// A program that ended.
pub struct Ended {
    pub status: ExitStatus,
    pub output: String,
    pub errors: String,
}

impl Ended {
    /// What it said on standard output if it ended well.
    pub fn expect_success(self, what: &str) -> Result<String, String> {
        if self.status.success() {
            return Ok(self.output);
        }
        let end = match self.status.signal() {
            Some(signal) => format!("died of signal {signal}"),
            None => format!("ended with {}", self.status.code().unwrap_or(-1)),
        };
        Err(format!("{what} {end}\n{}\n{}", last(&self.output), last(&self.errors)))
    }
}

/// The end of a long text.
fn last(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

/// The Python that has the clients.
pub fn python() -> Option<PathBuf> {
    std::env::var_os("HYPERSLAB_PYTHON").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Whether that Python has a module.
pub fn has_module(python: &Path, module: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", &format!("import {module}")]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Python with the programs of the tests in reach.
pub fn python_command(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.env("PYTHONPATH", scripts()).env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONFAULTHANDLER", "1");
    command
}

/// The folder of the tests' Python programs.
pub fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python")
}

/// A folder that is removed in the end unless something went wrong in it.
pub fn folder() -> Result<tempfile::TempDir, String> {
    tempfile::Builder::new().prefix("hyperslab-vol-").tempdir().map_err(|error| format!("no temporary folder: {error}"))
}

/// Runs it to its end, or stops it and all that it started after `limit`. What it leaves where it runs goes with a folder of its own,
/// unless the command names another.
pub fn run(command: &mut Command, limit: Duration) -> Result<Ended, String> {
    let files = folder()?;
    let (out, err, here) = (files.path().join("out"), files.path().join("err"), files.path().join("here"));
    if command.get_current_dir().is_none() {
        std::fs::create_dir(&here).map_err(|error| format!("cannot create {}: {error}", here.display()))?;
        command.current_dir(&here);
    }
    let create = |path: &Path| File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()));
    command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break Some(status),
            None if begin.elapsed() > limit => break None,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    if status.is_none() {
        let group = i32::try_from(child.id()).map_err(|error| error.to_string())?;
        // SAFETY: `kill` only sends a signal; the group is that of a child that was not waited for yet.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = child.wait();
    }
    let text = |path| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let (output, errors) = (text(&out), text(&err));
    match status {
        Some(status) => Ok(Ended { status, output, errors }),
        None => Err(format!("hung: still running after {} s\n{}\n{}", limit.as_secs(), last(&output), last(&errors))),
    }
}
