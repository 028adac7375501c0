//! Files whose writers were killed in mode `safe` or `log`: back to their last flush.

use super::escape::{escaped, lines};
use super::{End, RecoverOptions, inspect};
use anyhow::{Context, Result};
use hyperslab_core::units::display_size;
use hyperslab_core::{Error, ErrorKind};
use hyperslab_rollback::{Pending, Refusal, RollbackOutcome};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is said of a file whose writer was killed before anything of it was promised: its last flush left nothing.
pub const NEVER_FLUSHED: &str = "it is empty: its writer was killed while it made the file, before a first flush";

/// Whether a plain file has no bytes at all.
pub fn is_empty(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.len() == 0)
}

/// The files that a user names, and those beside which rollback journals lie in the directories that he names.
pub fn files(paths: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    for path in paths {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if real.is_dir() {
            let found = hyperslab_rollback::find_in(&real);
            files.extend(found.with_context(|| format!("look into {}", escaped(path.display())))?);
        } else if real.is_file() {
            files.insert(real);
        }
    }
    Ok(files)
}

/// Says whether a file is to be rolled back. Changes nothing.
pub fn say_pending(file: &Path) -> End {
    let name = escaped(file.display());
    match hyperslab_rollback::pending(file) {
        Ok(Pending::Nothing) => End::Done,
        Ok(Pending::Live) => {
            tell!("{name}: is being written, its rollback journal is in use");
            End::LeftAlone
        }
        Ok(Pending::Orphaned) => {
            tell!("{name}: its writer was killed; to be rolled back to its last flush");
            End::Done
        }
        Err(error) => {
            complain!("hyperslab: {name}: {}", lines(error));
            End::Failed
        }
    }
}

/// Brings a file back to its last flush, and says what became of it and whether it can be read. `was_read`: others have said
/// that already.
pub fn one(file: &Path, options: &RecoverOptions, was_read: bool) -> End {
    let found = hyperslab_rollback::pending(file);
    if let Ok(Pending::Live) = found {
        return say_pending(file);
    }
    if let Err(error) = mend(file, options.force) {
        complain!("hyperslab: {}", lines(error));
        return End::Failed;
    }
    let is_orphaned = matches!(found, Ok(Pending::Orphaned));
    if was_read && !is_orphaned {
        return End::Done;
    }
    let name = escaped(file.display());
    if is_orphaned && is_empty(file) {
        tell!("{name}: {NEVER_FLUSHED}");
        return End::Done;
    }
    // Rollback journals are of HDF5 files; any other is what its first bytes say.
    let stack = match is_orphaned {
        true => Ok("hdf5".to_owned()),
        false => hyperslab::detect_stack(file).map(|stack| stack.to_string()),
    };
    match stack.map_err(|error| error.to_string()).and_then(|stack| inspect::ask(&stack, file, options.check)) {
        Ok(seen) => {
            tell!("{name}: {seen}");
            End::Done
        }
        Err(why) => {
            complain!("hyperslab: {name}: the file cannot be read: {}", lines(why));
            End::Failed
        }
    }
}

/// The same before logs are replayed. With `force`, the journal of another file that had this name is left alone: the logs are
/// wanted in this one.
pub fn mend_for_logs(file: &Path, force: bool) -> hyperslab_core::Result<()> {
    let name = escaped(file.display());
    match hyperslab_rollback::roll_back(file, force) {
        Ok(RollbackOutcome::Refused(why @ Refusal::AnotherFile)) if force => {
            complain!("hyperslab: {name}: not rolled back: {why}");
            Ok(())
        }
        outcome => told(file, outcome),
    }
}

fn mend(file: &Path, force: bool) -> hyperslab_core::Result<()> {
    told(file, hyperslab_rollback::roll_back(file, force))
}

/// Says what became of a file. One without a journal is extended to the end that its superblock names, which libhdf5 may have
/// cut off.
fn told(file: &Path, outcome: std::io::Result<RollbackOutcome>) -> hyperslab_core::Result<()> {
    let name = escaped(file.display());
    let failed = |cause| Error::io("roll back", cause).target(&name);
    match outcome.map_err(failed)? {
        RollbackOutcome::Nothing if file.is_file() => match hyperslab_rollback::mend_end(file).map_err(failed)? {
            0 => {}
            bytes => tell!("{name}: extended by {} to the end that its superblock names", display_size(bytes)),
        },
        RollbackOutcome::Nothing => {}
        RollbackOutcome::Clean => {
            tell!("{name}: its writer was killed; it is as of its last flush, nothing had to be rolled back")
        }
        RollbackOutcome::RolledBack { bytes, from, to } => {
            let (bytes, from, to) = (display_size(bytes), display_size(from), display_size(to));
            tell!("{name}: rolled back to its last flush: {bytes} put back, {from} long before, {to} now");
        }
        RollbackOutcome::Refused(why) => {
            return Err(Error::new(ErrorKind::Mismatch, "roll back", why.to_string()).target(&name));
        }
    }
    Ok(())
}
