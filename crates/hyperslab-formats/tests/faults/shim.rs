//! Runs the program with the preloaded library that injects faults.

use super::program::{PATH, ROLE, STACK};
use libtest_mimic::Failed;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long one run may take before it counts as hung.
const LIMIT: Duration = Duration::from_secs(60);

/// The library, built at first use.
#[derive(Default)]
pub struct Lazy(OnceLock<Result<Shim, String>>);

impl Lazy {
    pub fn get(&self) -> Result<&Shim, Failed> {
        self.0.get_or_init(|| build().map(|library| Shim { library })).as_ref().map_err(Failed::from)
    }
}

/// The library that injects faults.
pub struct Shim {
    pub library: PathBuf,
}

/// How a run under a fault ended.
pub struct Outcome {
    /// Whether the fault was injected at all.
    pub met_a_fault: bool,
    /// The error that the program reported.
    pub reported: Option<String>,
}

/// How a process ended: its exit code and what it said.
pub struct Ended {
    pub code: i32,
    pub said: String,
}

impl Shim {
    /// Runs the program under `fault` and checks what it left behind.
    pub fn run(&self, stack: &str, fault: &str) -> Result<Outcome, Failed> {
        let directory = directory()?;
        let inside = directory.path().join("data");
        std::fs::create_dir(&inside)?;
        let (container, mark) = (inside.join("container"), directory.path().join("met"));
        let configuration = format!("path={},{fault},mark={}", inside.display(), mark.display());
        let variables =
            [("LD_PRELOAD", self.library.clone().into_os_string()), ("HYPERSLAB_FAULT", configuration.into())];
        let wrote = start("write", stack, &container, &variables).map_err(|error| format!("{fault}: {error}"))?;
        let met = std::fs::read_to_string(&mark).ok();
        let verified =
            start("verify", stack, &container, &[]).map_err(|error| format!("{fault}, verifying: {error}"))?;
        if wrote.code == 0 && verified.code != 0 {
            return Err(format!(
                "{fault} (in {}): reported success, but the data is wrong: {}",
                met.as_deref().unwrap_or("nothing"),
                verified.said
            )
            .into());
        }
        let reported = (wrote.code != 0).then_some(wrote.said);
        Ok(Outcome { met_a_fault: met.is_some(), reported })
    }
}

/// A fresh directory, in memory where the machine has that: faults are injected, so no disk need take part.
pub fn directory() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("hyperslab-fault-");
    builder.tempdir_in("/dev/shm").or_else(|_| builder.tempdir())
}

/// Runs this binary in a role. Anything but success or a reported error is a failure.
pub fn start(role: &str, stack: &str, path: &Path, more: &[(&str, OsString)]) -> Result<Ended, String> {
    let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    command.env(ROLE, role).env(STACK, stack).env(PATH, path).env("RUST_BACKTRACE", "0");
    command.envs(more.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if began.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("hung: still running after {} s", LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        std::io::Read::read_to_string(&mut stderr, &mut said).map_err(|error| error.to_string())?;
    }
    match status.code() {
        None => Err(format!("died of a signal ({status}); it said {said:?}")),
        Some(_) if said.contains("panicked") => Err(format!("panicked: {said}")),
        Some(0) => Ok(Ended { code: 0, said }),
        Some(1) if !said.trim().is_empty() => Ok(Ended { code: 1, said }),
        Some(code) => Err(format!("ended with {code} and said {said:?}")),
    }
}

/// Builds the library with the same cargo and finds where it went.
fn build() -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--package", "hyperslab-faultshim", "--message-format=json"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run cargo to build hyperslab-faultshim: {error}"))?;
    if !output.status.success() {
        return Err(format!("hyperslab-faultshim does not build: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "hyperslab_faultshim")
        .filter_map(|message| message["filenames"][0].as_str().map(PathBuf::from))
        .next_back()
        .ok_or_else(|| "cargo did not say where hyperslab-faultshim is".into())
}
