//! Programs that end while writes wait in memory: by a signal, or without closing.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, modes, plugin, trial};

const LIMIT: Duration = Duration::from_secs(60);
/// Bytes a second of the device, so that writes wait.
const RATE: u64 = 40 << 20;
const CHECK: &str = "
import h5py, numpy as np, sys
with h5py.File(sys.argv[1]) as file:
    wanted = np.repeat(np.arange(1, 9, dtype='f4'), 1 << 20).reshape(8, -1)
    assert (file['large'][...] == wanted).all()
";

pub fn trials() -> Vec<Trial> {
    let each = ["async", "codec+async"].into_iter().flat_map(|mode| {
        [
            trial(format!("SIGTERM while writes wait, {mode}"), move || signalled(mode, "waits", Some(libc::SIGTERM))),
            trial(format!("SIGTERM while writing, {mode}"), move || signalled(mode, "continues", Some(libc::SIGTERM))),
            trial(format!("SIGTERM with a handler, {mode}"), move || signalled(mode, "handler", None)),
            trial(format!("leaving while writes wait, {mode}"), move || leaving(mode)),
        ]
    });
    each.collect()
}

fn command(mode: &str, folder: &std::path::Path, how: &str) -> Result<Option<Command>, String> {
    let Some(python) = program::python() else { return Ok(None) };
    let Ok(shim) = plugin::fault_shim() else { return Ok(None) };
    let file = folder.join("a.h5");
    let mut command = program::python_command(&python);
    command.arg(program::scripts().join("ends.py")).arg(&file).arg(how).env("LD_PRELOAD", shim);
    modes::apply(command.current_dir(folder), mode, folder)?;
    command.env("HYPERSLAB_SLOW", format!("path={},rate={RATE},latency=0", file.display()));
    Ok(Some(command))
}

/// Everything that was written is in the file, for a program without the connector.
fn check(folder: &std::path::Path, mode: &str) -> Result<(), String> {
    let python = program::python().ok_or(NO_PYTHON)?;
    let mut plain = program::python_command(&python);
    plain.args(["-c", CHECK]).arg(folder.join("a.h5"));
    let ended = program::run(modes::apply(&mut plain, modes::PLAIN, folder)?, LIMIT)?;
    ended.expect_success(&format!("reading the file under {mode}")).map(drop)
}

/// `signal`: what the process is to die of; otherwise its own handler ends it.
fn signalled(mode: &str, how: &str, signal: Option<i32>) -> Outcome {
    let folder = program::folder()?;
    let Some(mut command) = command(mode, folder.path(), how)? else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
    let mut line = String::new();
    let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
    let id = i32::try_from(child.id()).map_err(|error| error.to_string())?;
    // SAFETY: `kill` only sends a signal; the process is a child that was not waited for yet.
    unsafe { libc::kill(id, libc::SIGTERM) };
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if begin.elapsed() > LIMIT {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("it lives on after SIGTERM under {mode}").into());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    if line.trim() != "ready" {
        return Err(format!("it was not ready under {mode}: {read:?}").into());
    }
    match signal {
        Some(signal) if status.signal() == Some(signal) => check(folder.path(), mode)?,
        None if status.code() == Some(7) => {}
        _ => return Err(format!("it ended with {status} under {mode}").into()),
    }
    Ok(Completion::Completed)
}

/// A normal end writes everything, and says what takes so long.
fn leaving(mode: &str) -> Outcome {
    let folder = program::folder()?;
    let Some(mut command) = command(mode, folder.path(), "leaves")? else {
        return Ok(Completion::ignored_with(NO_PYTHON));
    };
    // As much may wait as the program has written.
    command.env("HYPERSLAB_LAG", "off").env("HYPERSLAB_SLOW", {
        format!("path={},rate={},latency=0", folder.path().join("a.h5").display(), 12 << 20)
    });
    let ended = program::run(&mut command, LIMIT)?;
    let said = ended.errors.matches("when what waits in memory is written").count();
    if said != 1 {
        return Err(format!("{said} lines about a slow end under {mode}: {}", ended.errors).into());
    }
    ended.expect_success(&format!("ends.py under {mode}"))?;
    check(folder.path(), mode)?;
    Ok(Completion::Completed)
}
