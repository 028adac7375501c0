//! Recovery of what a killed program had written.

use hyperslab_core::{Error, ErrorKind, Result};
use hyperslab_journal::marker;
use hyperslab_journal::recover::{Job, Recovery, directory, jobs, survey};
use hyperslab_rollback::{RollbackOutcome, roll_back};
use hyperslab_run::{orphan_format, single_rank};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// What a recovery brought into a file, as [`recover()`] returns it.
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("run.posix");
/// # hyperslab::File::create(&path, "posix")?.close()?;
/// // The file needs no recovery.
/// assert_eq!(hyperslab::recover(&path)?, hyperslab::Recovered::default());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Bytes that a rollback journal put back, so that the file is as of its last flush.
    pub rolled_back: u64,
    /// Writes that were brought from logs into the file.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Recovers a file whose program was killed: rolls it back to its last flush if it has a rollback journal, then replays its logs
/// and removes them. Does nothing to a file that needs no recovery. Fails, and leaves file and logs as they are, while a
/// process still writes, if the logs are of another file than the one that is there, or if something else changed it since.
///
/// `hyperslab recover` does the same for whole directories, and says what it did.
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("run.posix");
/// let file = hyperslab::File::create(&path, "log/posix")?;
/// file.create_array::<f32>("x", &[4])?.write(.., &[1.0_f32; 4])?;
/// file.close()?;
/// // The program closed its file, so there is nothing to recover.
/// assert_eq!(hyperslab::recover(&path)?.writes, 0);
/// # Ok(())
/// # }
/// ```
pub fn recover(path: impl AsRef<Path>) -> Result<Recovered> {
    let path = path.as_ref();
    let path = path.canonicalize().map_err(|cause| Error::io("recover", cause).target(path.display()))?;
    let mut recovered = Recovered::default();
    let rolled_back = Cell::new(0);
    let mend = |file: &Path| mend(file).map(|bytes| rolled_back.set(rolled_back.get() + bytes));
    for folder in log_folders(&path) {
        let files = directory(&folder)?;
        let of_file = survey(&files, false)?
            .into_iter()
            .filter(|journal| journal.header.as_ref().is_some_and(|header| header.container == path));
        let (found, _) = jobs(of_file.collect());
        for mut job in found {
            check(&job, &path)?;
            let recovery = Recovery { files: &files, format: &orphan_format, alone: single_rank(), mend: &mend };
            let replayed = recovery.replay_and_keep(&job)?;
            if replayed.writes > 0 {
                recovery.compare(&job)?;
            }
            recovery.finish(&mut job)?;
            recovered.writes += replayed.writes;
            recovered.bytes += replayed.bytes;
        }
    }
    mend(&path)?;
    Ok(Recovered { rolled_back: rolled_back.get(), ..recovered })
}

/// The directories that may hold logs of a file: those that its markers name, and its own.
fn log_folders(path: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = marker::markers(path).into_iter().map(|marker| marker.directory).collect();
    folders.extend(path.parent().map(Path::to_path_buf));
    folders.sort();
    folders.dedup();
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Refuses jobs that run, and logs that are not of this file as it is.
fn check(job: &Job, path: &Path) -> Result<()> {
    if job.is_in_use() || job.is_elsewhere() {
        return Err(Error::new(ErrorKind::Busy, "recover", "a process still uses its logs").target(path.display()));
    }
    let header = job.header()?;
    let stack = header.stack.parse()?;
    job.check_identity(&|path| orphan_format(&stack)?.files(path))
}

/// Brings a file back to its last flush. The bytes that were put back.
fn mend(file: &Path) -> Result<u64> {
    match roll_back(file, false).map_err(|cause| Error::io("roll back", cause).target(file.display()))? {
        RollbackOutcome::RolledBack { bytes, .. } => Ok(bytes),
        RollbackOutcome::Nothing | RollbackOutcome::Clean => Ok(0),
        RollbackOutcome::Refused(why) => {
            Err(Error::new(ErrorKind::Mismatch, "roll back", why.to_string()).target(file.display()))
        }
    }
}
