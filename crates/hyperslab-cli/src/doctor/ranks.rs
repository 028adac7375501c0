//! What can start ranks.

use super::building::first_line;
use super::{Finding, State};
use crate::mpi_job::{COMPILED_IN, find_program};
use hyperslab_run::LaunchCommand;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Launchers, the first of which is tried.
const LAUNCHERS: [&str; 6] = ["mpirun", "mpiexec", "srun", "jsrun", "aprun", "flux"];
/// How long two ranks may take to meet.
const PATIENCE: Duration = Duration::from_secs(30);

/// Processors, launchers, and whether MPI ranks come together.
pub fn look() -> Vec<Finding> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut findings = vec![Finding::good("threads", format!("{cores} processors; thread ranks need nothing else"))];
    let found: Vec<_> = LAUNCHERS.iter().filter_map(|name| Some((*name, find_program(name)?))).collect();
    for (name, path) in &found {
        let version = first_line(Command::new(path).arg("--version")).unwrap_or_else(|| "no version told".into());
        findings.push(Finding::good(*name, format!("{} ({version})", path.display())));
    }
    if found.is_empty() {
        let remedy = "cargo xtask setup --mpi, or load the MPI module of the cluster";
        findings.push(Finding::new("MPI launcher", State::Absent, "none on the PATH").try_this(remedy));
    } else if COMPILED_IN && let Some((name, _)) = found.first() {
        findings.push(meet(name));
    }
    findings
}

/// Two ranks of this program that greet each other.
fn meet(launcher: &str) -> Finding {
    let what = "two MPI ranks";
    let remedy = format!("{launcher} -n 2 hostname, to see what it says by itself");
    match try_to_meet(launcher) {
        Ok(said) => Finding::good(what, said),
        Err(why) => Finding::new(what, State::Bad, why).try_this(remedy),
    }
}

fn try_to_meet(launcher: &str) -> Result<String, String> {
    let command = LaunchCommand::new(launcher, None, 2).map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = command
        .of(program.as_os_str(), &["mpi-hello".as_ref()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let begin = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{command} did not come to an end within {} s", PATIENCE.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let line = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines()
            .map(|l| l.trim_matches(|c: char| c == '-' || c.is_whitespace()))
            .find(|l| !l.is_empty())
            .map(str::to_owned)
    };
    match (output.status.success(), line(&output.stdout)) {
        (true, Some(said)) => Ok(said),
        _ => Err(format!(
            "{command}: {}",
            line(&output.stderr).unwrap_or_else(|| format!("ended with {}", output.status))
        )),
    }
}
