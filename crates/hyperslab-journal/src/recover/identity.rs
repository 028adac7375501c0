//! Checks that the file at a job's path is its container, and was not changed since.

use super::replay::Job;
use crate::nanoseconds;
use hyperslab_core::{Error, ErrorKind, Result};
use hyperslab_rollback::FileIdentity;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Tolerance between a writer's last heartbeat and its last modification of the container: heartbeats come every 0.4 s at
/// least, and file systems round times.
const LATER: Duration = Duration::from_secs(2);

/// Refuses a path that is neither a regular file nor a directory.
pub(crate) fn check_kind(path: &Path) -> Result<Option<Metadata>> {
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(Error::io("recover", cause).target(path.display())),
    };
    match about.is_file() || about.is_dir() {
        true => Ok(Some(about)),
        false => {
            Err(Error::unsupported("recover", "it is neither a plain file nor a directory").target(path.display()))
        }
    }
}

impl Job {
    /// Fails if the container is not the one that the journals were written for, or was changed by others after the job
    /// ended. `files` lists the files of a container. Call before changing the container.
    pub fn check_identity(&self, files: &dyn Fn(&Path) -> Result<Vec<PathBuf>>) -> Result<()> {
        let header = self.header()?;
        let path = &header.container;
        let refuse = |why: String| {
            Err(Error::new(ErrorKind::Mismatch, "recover", why).target(path.display()).hint(
                "nothing was changed; look at the file, then --discard the logs, or --force to apply them all the same",
            ))
        };
        if !self.journals.iter().any(|journal| journal.can_be_replayed()) {
            return Ok(());
        }
        if self.journals.iter().any(|journal| journal.is_copy) {
            return refuse("the logs are a copy of others, which may have been applied since".into());
        }
        // A missing file is reported when it is opened.
        let Some(about) = check_kind(path)? else { return Ok(()) };
        let unknown = match &header.identity {
            None => "the logs do not say which file they are of, and ",
            Some(was) => {
                if std::fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink()) {
                    return refuse("a link is now where the file was that the logs are of".into());
                }
                let now = File::open(path).and_then(|file| FileIdentity::of(&file));
                let now = now.map_err(|cause| Error::io("recover", cause).target(path.display()))?;
                if !was.matches(&now) {
                    return refuse(format!(
                        "another file is there now than the one that the logs are of ({}, and was {})",
                        describe(&now),
                        describe(was)
                    ));
                }
                ""
            }
        };
        if let Some(why) = self.changed_since(&about, &files(path).unwrap_or_default()) {
            return refuse(format!("{unknown}{why}"));
        }
        Ok(())
    }

    /// The evidence that another program changed the container after the job ended, if any.
    fn changed_since(&self, about: &Metadata, files: &[PathBuf]) -> Option<String> {
        let journals = || self.journals.iter().filter(|journal| journal.can_be_replayed());
        let seen = journals().filter_map(|journal| journal.sighting).max_by_key(|seen| seen.seen);
        let modified = about.modified().ok()?;
        if let Some(seen) = seen {
            let born = about.created().map_or(0, nanoseconds);
            if seen.born != 0 && born != 0 && born != seen.born {
                return Some("the file was made anew after the job ended".into());
            }
            if about.is_file() && (seen.modified, seen.len) == (nanoseconds(modified), about.len()) {
                return None;
            }
            if about.is_file() && nanoseconds(modified) < seen.modified {
                return Some("the file is older than the job left it: it was put back".into());
            }
        }
        let inside = files.iter().filter_map(|file| std::fs::metadata(file).ok()?.modified().ok());
        let modified = if about.is_dir() { inside.max()? } else { modified };
        let last = journals().filter_map(|journal| journal.modified).max()?;
        (modified > last + LATER).then(|| {
            let apart = modified.duration_since(last).unwrap_or_default();
            format!("the file was changed by something else {} after the job ended", words(apart))
        })
    }

    /// Time of the last modification of its journals.
    pub fn last_sign(&self) -> Option<SystemTime> {
        self.journals.iter().filter_map(|journal| journal.modified).max()
    }
}

fn words(time: Duration) -> String {
    match time.as_secs() {
        0..120 => format!("{:.1} s", time.as_secs_f64()),
        120..7200 => format!("{} min", time.as_secs() / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}

fn describe(identity: &FileIdentity) -> String {
    match identity.generation {
        Some(stamp) => {
            let stamp: String = stamp[..4].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("inode {} with stamp {stamp}", identity.inode)
        }
        None => format!("inode {} of device {}", identity.inode, identity.device),
    }
}
