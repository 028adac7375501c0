//! Programs under `log`, killed at any moment: after `hyperslab recover` the file holds every write that had returned.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, long_trial, modes, plugin, trial};

const LIMIT: Duration = Duration::from_secs(60);
const MODES: [&str; 2] = ["log", "codec+log"];

pub fn trials() -> Vec<Trial> {
    vec![trial("killed under log", || kills(6, 23)), long_trial("killed under log, many times", || kills(100, 7919))]
}

/// Kills that many programs of each mode, after pauses that differ by so many milliseconds, modulo 300.
fn kills(count: u64, apart: u64) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    for mode in MODES {
        for round in 0..count {
            let after = Duration::from_micros(round * apart % 300 * 1000 + round * 37);
            let folder = program::folder()?;
            if let Err(why) = kill(&python, mode, folder.path(), after) {
                let kept = folder.keep();
                return Err(format!(
                    "{mode}, killed {after:?} after its first write: {why}\nfiles: {}",
                    kept.display()
                )
                .into());
            }
        }
    }
    Ok(Completion::Completed)
}

fn kill(python: &Path, mode: &str, folder: &Path, after: Duration) -> Result<(), String> {
    let script = program::scripts().join("acknowledged.py");
    let mut command = program::python_command(python);
    command
        .arg(&script)
        .arg("write")
        .arg(folder)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = modes::apply(&mut command, mode, folder)?.spawn().map_err(|error| error.to_string())?;
    let (mut said, mut errors) = (child.stdout.take().ok_or("no pipe")?, child.stderr.take().ok_or("no pipe")?);
    let mut first = [0];
    let begun = said.read_exact(&mut first);
    std::thread::sleep(after);
    child.kill().and_then(|()| child.wait()).map_err(|error| error.to_string())?;
    let (mut rest, mut complaint) = (Vec::new(), String::new());
    said.read_to_end(&mut rest).map_err(|error| error.to_string())?;
    let _ = errors.read_to_string(&mut complaint);
    begun.map_err(|_| format!("it wrote nothing: {complaint}"))?;
    let acknowledged = 1 + rest.len();
    let mut recover = Command::new(plugin::hyperslab()?);
    recover.arg("recover").arg(folder.join("logs")).current_dir(folder);
    let recovered = program::run(&mut recover, LIMIT)?.expect_success("hyperslab recover")?;
    let mut check = program::python_command(python);
    check.arg(&script).arg("check").arg(folder).arg(acknowledged.to_string());
    let checked = program::run(modes::apply(&mut check, modes::PLAIN, folder)?, LIMIT)?;
    checked.expect_success(&format!("check after {acknowledged} writes (recover said {recovered:?})")).map(|_| ())
}
