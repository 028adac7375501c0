//! Programs under `log`, killed right after a call that wrote has returned, in every way that h5py has to write: after `hyperslab
//! recover` the file holds it.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, long_trial, modes, plugin, trial};

const LIMIT: Duration = Duration::from_secs(60);
/// What a log may have: less than some of the writes.
const MORE: &str = ";log_limit=1MiB";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("killed after each way to write, log", || all("log", "write", MORE)),
        long_trial("killed after each way to write, log, its folder full", full),
        long_trial("killed after each way to write, log, datasets closed", || all("log", "close", MORE)),
        long_trial("killed after each way to write, codec+log", || all("codec+log", "write", MORE)),
        long_trial("killed after each way to write, every write durable", || {
            all("log", "write", ";log_limit=1MiB;durability=every-write")
        }),
    ]
}

fn all(mode: &str, how: &str, more: &str) -> Outcome {
    killed(mode, how, more, None)
}

/// Writes to the log fail from the start, and after some.
fn full() -> Outcome {
    for from in [3, 8] {
        if let Completion::Ignored { reason } = killed("log", "write", MORE, Some(from))? {
            return Ok(Completion::Ignored { reason });
        }
    }
    Ok(Completion::Completed)
}

/// Has each way to write be killed, and looks for what it wrote. `fails`: from this call on there is no room for the log.
fn killed(mode: &str, how: &str, more: &str, fails: Option<u32>) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let script = program::scripts().join("killed_after.py");
    let listed = program::run(program::python_command(&python).arg(&script).arg("list"), LIMIT)?;
    let listed = listed.expect_success("killed_after.py list")?;
    let ways: Vec<&str> = listed.split_whitespace().collect();
    if ways.len() < 25 {
        return Err(format!("only {} ways to write are known", ways.len()).into());
    }
    let folder = program::folder()?;
    for way in &ways {
        let mut command = program::python_command(&python);
        command.arg(&script).arg(how).arg(folder.path()).arg(way);
        modes::apply_with(&mut command, mode, folder.path(), more)?;
        if let Some(from) = fails {
            let shim = match plugin::fault_shim() {
                Ok(shim) => shim,
                Err(why) => return Ok(Completion::ignored_with(why)),
            };
            let fault = format!("path={},call=write,from={from},fault=ENOSPC", folder.path().join("logs").display());
            command.env("LD_PRELOAD", shim).env("HYPERSLAB_FAULT", fault);
        }
        let ended = program::run(&mut command, LIMIT)?;
        if ended.status.signal() != Some(9) {
            return Err(format!("{way} under {mode} ended by {}: {}", ended.status, ended.errors).into());
        }
    }
    let looked = in_plain(&python, &script, folder.path(), "look", &ways)?;
    // A campaign in which the log is seldom needed shows nothing.
    let needed = looked.lines().next_back().and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    if fails.is_none() && needed.is_none_or(|needed| needed < 8) {
        return Err(format!("hardly any file needed a recovery: {looked}").into());
    }
    let mut recover = Command::new(plugin::hyperslab()?);
    recover.arg("recover").arg(folder.path().join("logs")).current_dir(folder.path());
    program::run(&mut recover, LIMIT)?.expect_success("hyperslab recover")?;
    in_plain(&python, &script, folder.path(), "check", &ways)?;
    Ok(Completion::Completed)
}

/// What the script says of the files, without the connector.
fn in_plain(python: &Path, script: &Path, folder: &Path, what: &str, ways: &[&str]) -> Result<String, String> {
    let mut command = program::python_command(python);
    command.arg(script).arg(what).arg(folder).args(ways);
    let ended = program::run(modes::apply(&mut command, modes::PLAIN, folder)?, LIMIT)?;
    ended.expect_success(&format!("killed_after.py {what}"))
}
