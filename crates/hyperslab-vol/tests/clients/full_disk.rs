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

/// Fills the disk with chunks that are encoded in the background, makes room, and flushes again.
const ROOM_AGAIN: &str = "
import h5py, numpy as np, os
data = np.random.default_rng(1).integers(0, 256, (24, 1 << 18), dtype='u1')
refused, told = [], 0
with open('filler', 'wb') as filler:
    filler.write(b'0' * (4 << 20))
file = h5py.File('a.h5', 'w')
x = file.create_dataset('x', data.shape, 'u1', chunks=(1, 1 << 18), compression='gzip', compression_opts=1)
for at in range(24):
    try:
        x[at] = data[at]
    except (OSError, RuntimeError):
        refused.append(at)
for work in (file.flush, lambda: x[3]):
    try:
        work()
    except (OSError, RuntimeError) as error:
        told += 1
assert refused or told, 'not full'
os.remove('filler')
# What was refused is written again, as a program may.
for at in refused:
    x[at] = data[at]
file.flush()
assert (x[...] == data).all(), [at for at in range(24) if (x[at] != data[at]).any()]
file.close()
with h5py.File('a.h5', 'r') as file:
    x = file['x']
    assert (x[...] == data).all(), [at for at in range(24) if (x[at] != data[at]).any()]
print('kept')
";

/// Writes a chunk that was refused once more as soon as there is room: one of many, and the only one of a dataset.
const AT_ONCE: &str = "
import h5py, numpy as np, os
data = np.random.default_rng(1).integers(0, 256, (24, 1 << 18), dtype='u1')
with open('filler', 'wb') as filler:
    filler.write(b'0' * (4 << 20))
file = h5py.File('a.h5', 'w')
kinds = dict(dtype='u1', chunks=(1, 1 << 18), compression='gzip', compression_opts=1)
many, only = file.create_dataset('many', data.shape, **kinds), file.create_dataset('only', (1, 1 << 18), **kinds)
told, refused = False, None
for at in range(24):
    try:
        many[at] = data[at]
    except (OSError, RuntimeError):
        try:
            only[0] = data[0]
        except (OSError, RuntimeError):
            refused = at
        os.remove('filler')
        many[at] = data[at]
        try:
            only[0] = data[0]
        except (OSError, RuntimeError):
            told = True
assert refused is not None, 'not full'
try:
    file.close()
except (OSError, RuntimeError):
    told = True
with h5py.File('a.h5', 'r') as file:
    wrong = [at for at in range(24) if (file['many'][at] != data[at]).any()]
    assert not wrong, wrong
    assert told or (file['only'][0] == data[0]).all()
print('kept')
";

pub fn trials() -> Vec<Trial> {
    let closing = trial("a file under safe is closed on a full disk", || {
        said_as(on_full_disk("safe", CLOSED_WHEN_FULL)?, "No space left")
    });
    let again = ["async", "codec", "cache"].map(|mode| {
        trial(format!("chunks that found no room are written when there is some, {mode}"), move || {
            said_as(on_full_disk(mode, ROOM_AGAIN)?, "kept")
        })
    });
    let at_once = ["codec", "cache"].map(|mode| {
        trial(format!("a chunk that found no room is written again, {mode}"), move || {
            said_as(on_full_disk(mode, AT_ONCE)?, "kept")
        })
    });
    let all = in_modes("full disk", full).into_iter().chain(in_modes("writes that fail", failing));
    all.chain([closing]).chain(again).chain(at_once).collect()
}

/// What a program said, which should have `wanted` in it; none was run without Python or a file system that can be mounted.
fn said_as(said: Result<String, &'static str>, wanted: &str) -> Outcome {
    match said {
        Ok(said) if said.contains(wanted) => Ok(Completion::Completed),
        Ok(said) => Err(format!("{wanted}: {said}").into()),
        Err(why) => Ok(Completion::ignored_with(why)),
    }
}

/// Runs a Python program with a small file system as its folder, under a mode; what it printed.
fn on_full_disk(mode: &str, script: &str) -> Result<Result<String, &'static str>, String> {
    let Some(python) = program::python() else { return Ok(Err(NO_PYTHON)) };
    let folder = program::folder()?;
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).map_err(|error| error.to_string())?;
    let able =
        |user: &bool| program::run(on_small_disk(&disk, *user).arg("true"), LIMIT).is_ok_and(|e| e.status.success());
    let Some(user) = [false, true].into_iter().find(able) else { return Ok(Err(NO_MOUNT)) };
    let mut command = on_small_disk(&disk, user);
    command.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(&disk).arg(&python).args(["-c", script]);
    let ended = program::run(modes::apply(&mut command, mode, folder.path())?, LIMIT)?;
    ended.expect_success(&format!("a full disk under {mode}")).map(Ok)
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
