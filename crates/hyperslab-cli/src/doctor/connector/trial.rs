//! A child process in which something is tried, and what came of it.

use crate::connector::{Environment, STATS, Statistics, find_plugin};
use anyhow::Result;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SCRIPT: &str = include_str!("probe.py");
/// How long a package may take to be loaded and used.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is tried.
pub struct Trial {
    python: PathBuf,
    words: Vec<String>,
}

/// What was said, and whether the connector took part.
pub struct TrialOutput {
    output: Result<Output, String>,
    used: bool,
}

impl Trial {
    pub fn new(python: &Path, words: &[&str]) -> Self {
        // Whole, since it is started in another folder; links stay, by which a virtual environment knows itself.
        let python = std::path::absolute(python).unwrap_or_else(|_| python.to_owned());
        Self { python, words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    /// Without the connector, whatever the environment says.
    pub fn plain(&self) -> TrialOutput {
        let folder = tempfile::tempdir();
        let mut command = self.command();
        command.env_remove("HDF5_VOL_CONNECTOR");
        let output = match &folder {
            Ok(folder) => run(command.current_dir(folder.path())),
            Err(error) => Err(error.to_string()),
        };
        TrialOutput { output, used: false }
    }

    /// With it. Fails if there is no plugin.
    pub fn under_the_connector(&self) -> Result<TrialOutput> {
        let mut environment = Environment::new(&find_plugin()?)?;
        let folder = tempfile::tempdir()?;
        let stats = folder.path().join("stats.jsonl");
        environment.set(STATS, &stats);
        environment.set("HYPERSLAB_MODE", "codec");
        let output = run(environment.apply(&mut self.command()).current_dir(folder.path()));
        let used = Statistics::read(&stats).processes.iter().any(|process| process.files > 0);
        Ok(TrialOutput { output, used })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command
            .args(["-c", SCRIPT])
            .args(&self.words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

impl TrialOutput {
    /// Whether a file was opened through the connector.
    pub fn used_the_connector(&self) -> bool {
        self.used
    }

    /// The last line as JSON; otherwise what went wrong.
    pub fn answer<T: DeserializeOwned>(&self) -> Result<T, String> {
        let output = self.output.as_ref().map_err(Clone::clone)?;
        let last = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
        };
        if let Some(answer) = last(&output.stdout).and_then(|line| serde_json::from_str(&line).ok()) {
            return Ok(answer);
        }
        Err(match last(&output.stderr) {
            Some(line) => format!("{line} ({})", output.status),
            None => format!("ended with {}", output.status),
        })
    }
}

fn run(command: &mut Command) -> Result<Output, String> {
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let begin = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("did not come to an end within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().map_err(|error| error.to_string())
}
