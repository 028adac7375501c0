//! A file system of a few MiB, which becomes full.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::{Completion, Trial};

use crate::program::{self, NO_PYTHON};
use crate::{Outcome, in_modes, modes, plugin, trial};

const LIMIT: Duration = Duration::from_secs(60);
const NO_MOUNT: &str = "no file system can be mounted here: needs root, or namespaces of users";

/// Fills the disk, and closes the file on the full disk, as it can be without a rollback journal.
const CLOSED_WHEN_FULL: &str = "
import h5py, numpy as np, sys
file = h5py.File('a.h5', 'w')
data = file.create_dataset('x', (100, 1 << 17), 'f4')
try:
    for row in range(100):
        data[row] = row
except OSError as error:
    print(error)
file.close()
with h5py.File('a.h5', 'r') as file:
    assert all((file['x'][at] == at).all() for at in range(row)), row
";

pub fn trials() -> Vec<Trial> {
    let closing = trial("a file under safe is closed on a full disk", closed_when_full);
    in_modes("full disk", full).into_iter().chain(in_modes("writes that fail", failing)).chain([closing]).collect()
}

fn closed_when_full() -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let folder = program::folder()?;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).map_err(|error| error.to_string())?;
    let able =
        |user: &bool| program::run(on_small_disk(&disk, *user).arg("true"), LIMIT).is_ok_and(|e| e.status.success());
    let Some(user) = [false, true].into_iter().find(able) else { return Ok(Completion::ignored_with(NO_MOUNT)) };
    let mut command = on_small_disk(&disk, user);
    command.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(&disk).arg(&python).args(["-c", CLOSED_WHEN_FULL]);
    let ended = program::run(modes::apply(&mut command, "safe", folder.path())?, LIMIT)?;
    let said = ended.expect_success("closing on a full disk")?;
    if said.contains("No space left") { Ok(Completion::Completed) } else { Err(format!("not full: {said}").into()) }
}

/// A command in a name space of its own, where the folder is a small file system.
fn on_small_disk(folder: &Path, user: bool) -> Command {
    let mut command = Command::new("unshare");
    command.arg(if user { "-rm" } else { "-m" });
    command.args(["sh", "-c", "mount -t tmpfs -o size=8m none \"$0\" && exec \"$@\""]).arg(folder);
    command
}

fn full(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let folder = program::folder()?;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).map_err(|error| error.to_string())?;
    let able =
        |user: &bool| program::run(on_small_disk(&disk, *user).arg("true"), LIMIT).is_ok_and(|e| e.status.success());
    let Some(user) = [false, true].into_iter().find(able) else { return Ok(Completion::ignored_with(NO_MOUNT)) };
    // Logs on the same disk, which is then full for them too, and elsewhere.
    let places: &[&Path] = if mode.contains("log") { &[folder.path(), &disk] } else { &[folder.path()] };
    for logs in places {
        let mut command = on_small_disk(&disk, user);
        command.arg(&python).arg(program::scripts().join("full_disk.py")).arg(&disk).env("PYTHONFAULTHANDLER", "1");
        let more = if *logs == disk { format!(";log_dir={}", disk.display()) } else { String::new() };
        let ended = program::run(modes::apply_with(&mut command, mode, folder.path(), &more)?, LIMIT)?;
        ended.expect_success(&format!("full_disk.py under {mode}, logs in {}", logs.display()))?;
    }
    Ok(Completion::Completed)
}

/// The n-th write call and all after it fail, and each alone.
fn failing(mode: &str) -> Outcome {
    let Some(python) = program::python() else { return Ok(Completion::ignored_with(NO_PYTHON)) };
    let shim = match plugin::fault_shim() {
        Ok(shim) => shim,
        Err(why) => return Ok(Completion::ignored_with(why)),
    };
    for (key, nth) in [("nth", 12), ("nth", 25), ("from", 12), ("from", 40)] {
        let folder = program::folder()?;
        let mut command = program::python_command(&python);
        command.arg(program::scripts().join("failing_writes.py")).arg(folder.path()).env("LD_PRELOAD", shim);
        let files = folder.path().join("data");
        let fault = format!(
            "path={},call=write,{key}={nth},fault=EIO,mark={}",
            files.display(),
            folder.path().join("met").display()
        );
        modes::apply(&mut command, mode, folder.path())?;
        let ended = program::run(command.env("HYPERSLAB_FAULT", fault), LIMIT)?;
        ended.expect_success(&format!("failing_writes.py under {mode}, {key}={nth}"))?;
    }
    Ok(Completion::Completed)
}
