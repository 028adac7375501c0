//! The line of a process in the file of statistics. It is appended once and rewritten in place from then on.
//!
//! The file is opened anew each time: a descriptor that stays open may be closed by the program, and its number be that of
//! another file.

use super::report::Report;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A record is refreshed only after so many times the time that a refresh takes.
pub(super) const COST: u32 = 100;
/// But at the latest after this long.
pub(super) const LONGEST: Duration = Duration::from_millis(100);
/// Lines that are to be rewritten have a multiple of this, filled up by blanks.
const ROOM: usize = 2048;

/// Where a record is.
#[derive(Debug, Default)]
pub(super) struct Record {
    line: Option<Line>,
    /// Milliseconds since 1970.
    started: Option<u64>,
}

/// A line of a file.
#[derive(Debug)]
struct Line {
    /// What the user said, and where that was.
    to: String,
    path: PathBuf,
    /// The file's own number and that of its device.
    file: (u64, u64),
    at: u64,
    room: usize,
}

impl Record {
    /// Writes what `report` makes of the time at which the record was begun. `ended`: for the last time. Standard error and
    /// whatever is no plain file get it only then. Whether it was written.
    pub(super) fn write(&mut self, to: &str, ended: bool, report: &dyn Fn(u64) -> Report) -> bool {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        let started = *self.started.get_or_insert_with(now);
        let line = || {
            let mut line = serde_json::to_vec(&report(started)).ok()?;
            line.push(b'\n');
            Some(line)
        };
        if to == "stderr" {
            return ended && line().is_some_and(|line| std::io::stderr().write_all(&line).is_ok());
        }
        let (path, rewritten) = match &self.line {
            Some(known) if known.to == to => (known.path.clone(), is_still(known)),
            _ => {
                let path = to.replace("%p", &std::process::id().to_string());
                (std::path::absolute(&path).unwrap_or_else(|_| path.into()), false)
            }
        };
        if !ended && !may_be_rewritten(&path) {
            return false;
        }
        let Some(mut line) = line() else { return false };
        match self.line.as_ref().filter(|known| rewritten && known.room >= line.len()) {
            Some(known) => {
                fill(&mut line, known.room);
                open(&path, false).and_then(|file| file.write_all_at(&line, known.at)).is_ok()
            }
            None => self.append(to, path, line, ended, rewritten).is_ok(),
        }
    }

    /// Adds a line at the end by one write, so that lines of several processes do not mix. An earlier one is made blank.
    fn append(
        &mut self,
        to: &str,
        path: PathBuf,
        mut line: Vec<u8>,
        ended: bool,
        rewritten: bool,
    ) -> std::io::Result<()> {
        if !ended {
            let room = (line.len() + ROOM / 2).next_multiple_of(ROOM);
            fill(&mut line, room);
        }
        let mut file = open(&path, true)?;
        file.write_all(&line)?;
        let end = file.stream_position().unwrap_or_default();
        let data = file.metadata()?;
        let at = end.saturating_sub(line.len() as u64);
        let new = Line { to: to.into(), path, file: number(&data), at, room: line.len() };
        if let Some(old) = self.line.replace(new).filter(|_| rewritten) {
            let mut blank = vec![b'\n'];
            fill(&mut blank, old.room);
            open(&old.path, false)?.write_all_at(&blank, old.at)?;
        }
        Ok(())
    }
}

/// Puts blanks before the end of a line.
fn fill(line: &mut Vec<u8>, room: usize) {
    line.pop();
    line.resize(room.saturating_sub(1), b' ');
    line.push(b'\n');
}

fn number(data: &Metadata) -> (u64, u64) {
    (data.dev(), data.ino())
}

/// Whether the file is the one that has the line.
fn is_still(line: &Line) -> bool {
    std::fs::symlink_metadata(&line.path).is_ok_and(|data| number(&data) == line.file && data.len() >= line.at)
}

fn may_be_rewritten(path: &Path) -> bool {
    std::fs::symlink_metadata(path).map_or_else(|error| error.kind() == std::io::ErrorKind::NotFound, |d| d.is_file())
}

fn open(path: &Path, append: bool) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(append).append(append).write(true).mode(0o600);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC).open(path)
}
