//! A Python process that opens files with plain h5py and judges them.

use crate::acks::Progress;
use crate::subject::Promise;
use crate::tools::Tools;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What became of a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Kept,
    Lost(String),
    Unreadable(String),
}

/// The program whose file is judged.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// `h5py` or `netcdf`.
    pub flavour: &'static str,
    pub seed: u64,
    pub length: u32,
}

/// The process.
pub struct Checker {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Checker {
    pub fn start(tools: &Tools) -> Result<Self> {
        let mut child = Command::new(&tools.python)
            .args(["-m", "crashlab.check"])
            .env("PYTHONPATH", &tools.modules)
            .env_remove("HDF5_VOL_CONNECTOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", tools.python.display()))?;
        let requests = child.stdin.take().context("the checker has no input")?;
        let answers = BufReader::new(child.stdout.take().context("the checker has no output")?);
        Ok(Self { child, requests, answers })
    }

    /// Judges a file.
    pub fn judge(&mut self, file: &Path, program: Program, progress: Progress, promise: Promise) -> Result<Verdict> {
        let request = json!({
            "file": file, "flavour": program.flavour, "seed": program.seed, "length": program.length,
            "begun": progress.begun, "acked": progress.acked, "promise": promise.name(),
        });
        writeln!(self.requests, "{request}")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line).context("the checker ended")?;
        let why = answer["why"].as_str().unwrap_or_default().to_owned();
        Ok(match answer["verdict"].as_str() {
            Some("kept") => Verdict::Kept,
            Some("lost") => Verdict::Lost(why),
            _ => Verdict::Unreadable(why),
        })
    }
}

impl Drop for Checker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
