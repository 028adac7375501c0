//! The spool of one rank: a file to which its steps are appended through a buffer.
//!
//! The first line is a [`SpoolHeader`]. Lines `{"array":...}` declare kinds of arrays in order, before their use; all
//! others are steps in the final format.

use super::names::{open_plain, part_of};
use hyperslab_core::workload::{Step, write_step};
use hyperslab_core::{ArraySpec, Error, OpenMode, Result};
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Buffer size.
const BUFFER: usize = 64 << 10;
/// Maximum time that steps stay in memory only, while calls go on.
const LONGEST: Duration = Duration::from_secs(1);
/// Maximum length of a line.
const MAX_LINE: u64 = 64 << 20;

/// The first line of a spool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpoolHeader {
    /// Format version of spools.
    pub hyperslab_trace_part: u32,
    pub rank: usize,
    pub ranks: usize,
    /// Name of the container.
    pub file: String,
    pub how: OpenMode,
}

/// Format version of spools.
pub(super) const PART_VERSION: u32 = 1;

/// Declares a kind of array.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declares {
    pub array: ArraySpec,
}

/// Whether a line declares a kind of array.
pub(super) fn declares(line: &[u8]) -> bool {
    line.starts_with(b"{\"array\":")
}

/// A spool being written. Removed when dropped without [`RankSpool::keep`].
#[derive(Debug)]
pub(super) struct RankSpool {
    path: PathBuf,
    file: File,
    rank: usize,
    buffer: Vec<u8>,
    written: Instant,
    kept: bool,
    /// Number of steps recorded.
    pub steps: u64,
    pieces: Pieces,
}

impl RankSpool {
    /// Creates and locks a spool, replacing that of a killed run. `None` if another program is writing it.
    pub fn create(trace: &Path, begin: &SpoolHeader, piece: usize) -> std::io::Result<Option<Self>> {
        let path = part_of(trace, begin.rank);
        let mut file = open_plain(&path, OFlags::RDWR | OFlags::CREATE)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        if file.metadata()?.len() > 0 && read_begin(&mut BufReader::new(&file)).is_none() {
            return Err(std::io::Error::other(format!("{} is there and no part of a trace", path.display())));
        }
        file.set_len(0)?;
        file.rewind()?;
        let mut buffer = serde_json::to_vec(begin)?;
        buffer.push(b'\n');
        file.write_all(&buffer)?;
        buffer.clear();
        let (rank, pieces) = (begin.rank, Pieces::new(piece));
        Ok(Some(Self { path, file, rank, buffer, written: Instant::now(), kept: false, steps: 0, pieces }))
    }

    /// Appends a declaration of a kind of array.
    pub fn declare(&mut self, array: ArraySpec) -> Result<()> {
        serde_json::to_writer(&mut self.buffer, &Declares { array })
            .map_err(|e| Error::invalid("trace", e.to_string()))?;
        self.buffer.push(b'\n');
        Ok(())
    }

    /// Appends a step; `now` is the approximate time.
    pub fn step(&mut self, step: &Step, took: Option<u64>, now: Instant) -> Result<()> {
        let before = self.buffer.len();
        write_step(Some(self.rank), took, step, &mut self.buffer)?;
        let line = self.buffer.len() - before;
        if line as u64 >= MAX_LINE {
            return Err(Error::unsupported("trace", format!("a step takes {line} bytes, more than a line may have")));
        }
        self.steps += 1;
        self.pieces.add(line);
        if self.buffer.len() >= BUFFER || now.saturating_duration_since(self.written) > LONGEST {
            self.flush()?;
            self.written = now;
        }
        Ok(())
    }

    /// Writes out the buffer.
    pub fn flush(&mut self) -> Result<()> {
        let done = self.file.write_all(&self.buffer);
        self.buffer.clear();
        done.map_err(|e| Error::io("trace", e).target(self.path.display()))
    }

    /// Number of pieces of whole lines in which it is sent.
    pub fn pieces(&self) -> u64 {
        self.pieces.count
    }

    /// Reads its steps from the beginning, in pieces.
    pub fn sender(&mut self) -> Result<Sender<'_>> {
        self.flush()?;
        let failed = |e| Error::io("trace", e);
        self.file.rewind().map_err(failed)?;
        let mut lines = BufReader::with_capacity(BUFFER, &self.file);
        next_line(&mut lines).map_err(failed)?;
        Ok(Sender { lines, limit: self.pieces.limit, next: None })
    }

    /// Makes every write fail, as on a full disk.
    #[cfg(test)]
    pub fn refuse_writes(&mut self) {
        self.file = File::open(&self.path).unwrap();
    }

    /// Removes it when it is dropped.
    pub fn discard(&mut self) {
        self.kept = false;
    }

    /// Leaves it to be found when the run is over.
    pub fn keep(&mut self) {
        self.kept = true;
    }
}

impl Drop for RankSpool {
    fn drop(&mut self) {
        if self.kept {
            // All that can still be done for a run that did not come to its end.
            let _ = self.flush();
        } else {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// How lines fall into pieces: as many whole lines as fit, at least one.
#[derive(Debug)]
struct Pieces {
    limit: usize,
    count: u64,
    filled: usize,
}

impl Pieces {
    fn new(limit: usize) -> Self {
        Self { limit, count: 0, filled: 0 }
    }

    fn add(&mut self, line: usize) {
        if self.count == 0 || self.filled + line > self.limit {
            (self.count, self.filled) = (self.count + 1, 0);
        }
        self.filled += line;
    }
}

/// Reads a part's steps in the pieces that [`RankSpool::pieces`] counted.
pub(super) struct Sender<'a> {
    lines: BufReader<&'a File>,
    limit: usize,
    /// The line that did not fit.
    next: Option<Vec<u8>>,
}

impl Sender<'_> {
    /// The next piece; nothing at the end.
    pub fn piece(&mut self) -> std::io::Result<Vec<u8>> {
        let mut piece = self.next.take().unwrap_or_default();
        while let Some(line) = next_line(&mut self.lines)? {
            if declares(&line) {
                continue;
            }
            if !piece.is_empty() && piece.len() + line.len() > self.limit {
                self.next = Some(line);
                break;
            }
            piece.extend(line);
        }
        Ok(piece)
    }
}

/// The next whole line with its end; `None` at the end, or where a line was begun and not ended.
pub(super) fn next_line(from: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.take(MAX_LINE).read_until(b'\n', &mut line)?;
    Ok((line.last() == Some(&b'\n')).then_some(line))
}

/// The first line of a part, if it is one.
pub(super) fn read_begin(from: &mut impl BufRead) -> Option<SpoolHeader> {
    let mut line = Vec::new();
    from.take(BUFFER as u64).read_until(b'\n', &mut line).ok()?;
    let begin: SpoolHeader = serde_json::from_slice(&line).ok()?;
    (begin.hyperslab_trace_part == PART_VERSION).then_some(begin)
}
