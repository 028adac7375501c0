//! What each rank wrote into its own file: one JSON line per write, only ever appended to.

use super::directory::rank_of_file;
use super::names::INDEX;
use super::write_order::WriteClock;
use hyperslab_core::{Dims, Error, ErrorKind, Result, Selection, Slab};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Most bytes of index that one array may have; all of it is kept in memory when the array is read.
const LONGEST: u64 = 256 << 20;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    stamp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wrote: Option<Selection>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut: Option<Dims>,
}

/// What happened.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// The rank wrote these elements.
    Wrote(Selection),
    /// The array shrank to this shape; elements outside were forgotten.
    Cut(Dims),
}

#[derive(Debug)]
struct Record {
    stamp: u64,
    rank: u32,
    event: Event,
}

pub(crate) fn index_path(directory: &Path, rank: u32) -> PathBuf {
    directory.join(format!("{rank}.{INDEX}"))
}

/// The index of this rank, open for appending.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    file: File,
    path: PathBuf,
    len: u64,
    dirty: bool,
}

impl IndexWriter {
    /// Opens or makes the index. A last line that an earlier program left unfinished is dropped.
    pub fn open(directory: &Path, rank: u32) -> Result<Self> {
        let path = index_path(directory, rank);
        let open = || -> io::Result<(File, u64)> {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).custom_flags(libc::O_NOFOLLOW);
            let mut file = options.open(&path)?;
            let len = end_of_last_line(&mut file)?;
            file.set_len(len)?;
            file.seek(SeekFrom::Start(len))?;
            Ok((file, len))
        };
        let (file, len) = open().map_err(|cause| Error::io("open index", cause).target(path.display()))?;
        Ok(Self { file, path, len, dirty: false })
    }

    /// Appends one line. Either all of it is there afterwards or nothing.
    pub fn append(&mut self, stamp: u64, event: Event) -> Result<()> {
        let fail = |cause: io::Error| Error::io("write index", cause).target(self.path.display());
        let line = match event {
            Event::Wrote(selection) => Line { stamp, wrote: Some(selection), cut: None },
            Event::Cut(shape) => Line { stamp, wrote: None, cut: Some(shape) },
        };
        let mut line = serde_json::to_vec(&line).map_err(|cause| fail(cause.into()))?;
        line.push(b'\n');
        if self.len + line.len() as u64 > LONGEST {
            return Err(Error::unsupported("write index", format!("it would be longer than {LONGEST} bytes"))
                .target(self.path.display())
                .hint("write larger pieces, or use files=shared"));
        }
        if let Err(cause) = self.file.write_all(&line) {
            let undone = self.file.set_len(self.len).and_then(|()| self.file.seek(SeekFrom::Start(self.len)));
            // An unfinished line is skipped by readers; the write error is the one to report.
            drop(undone);
            return Err(fail(cause));
        }
        self.len += line.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Makes the lines survive loss of power.
    pub fn sync(&mut self) -> Result<()> {
        if self.dirty {
            self.file.sync_data().map_err(|cause| Error::io("flush index", cause).target(self.path.display()))?;
            self.dirty = false;
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// One past the last newline, looking backwards in small steps.
fn end_of_last_line(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut part = [0; 4096];
    while end > 0 {
        let from = end.saturating_sub(part.len() as u64);
        let part = &mut part[..(end - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|byte| *byte == b'\n') {
            return Ok(from + at as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// The indices of all ranks, as far as read.
#[derive(Debug)]
pub(crate) struct IndexReader {
    directory: PathBuf,
    dimensions: usize,
    /// Bytes read of each index.
    read: BTreeMap<u32, u64>,
    /// In order of stamp, then rank.
    records: Vec<Record>,
}

/// Which rank's file holds which of the elements asked for; `None` for elements never written.
pub(crate) type Holders = Vec<(Option<u32>, Selection)>;

impl IndexReader {
    /// Nothing read yet. Knows the ranks `0..size` and those with files in the directory now.
    pub fn new(directory: &Path, size: u32, dimensions: usize) -> Result<Self> {
        let mut read: BTreeMap<u32, u64> = (0..size).map(|rank| (rank, 0)).collect();
        let fail = |cause| Error::io("list", cause).target(directory.display());
        for entry in std::fs::read_dir(directory).map_err(fail)? {
            if let Some((rank, _)) = entry.map_err(fail)?.file_name().to_str().and_then(rank_of_file) {
                read.insert(rank, 0);
            }
        }
        Ok(Self { directory: directory.into(), dimensions, read, records: Vec::new() })
    }

    /// Reads what was appended since the last call.
    pub fn refresh(&mut self, clock: &WriteClock) -> Result<()> {
        let before = self.records.len();
        let mut total = 0;
        for (&rank, done) in &mut self.read {
            let path = index_path(&self.directory, rank);
            let fail = |cause| Error::io("read index", cause).target(path.display());
            let len = match std::fs::symlink_metadata(&path) {
                Ok(about) => about.len(),
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => 0,
                Err(cause) => return Err(fail(cause)),
            };
            total += len;
            if total > LONGEST {
                return Err(Error::unsupported("read index", format!("the indices are longer than {LONGEST} bytes"))
                    .target(self.directory.display()));
            }
            if len > *done {
                let mut file = OpenOptions::new()
                    .read(true)
                    .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
                    .open(&path)
                    .map_err(fail)?;
                file.seek(SeekFrom::Start(*done)).map_err(fail)?;
                let mut lines = BufReader::new(file.take(len - *done));
                let mut line = Vec::new();
                while lines.read_until(b'\n', &mut line).map_err(fail)? > 0 && line.ends_with(b"\n") {
                    self.records.push(parse(&line, rank, self.dimensions).map_err(|e| e.target(path.display()))?);
                    *done += line.len() as u64;
                    line.clear();
                }
            }
        }
        if self.records.len() > before {
            self.records.sort_by_key(|record| (record.stamp, record.rank));
            if let Some(last) = self.records.last() {
                clock.observe(last.stamp);
            }
        }
        Ok(())
    }

    /// Who holds the elements of `wanted`: the latest writer of each. The parts are disjoint and together `wanted`.
    pub fn holders(&self, wanted: &Selection, shape: &[u64]) -> Result<Holders> {
        let mut remaining = wanted.clone();
        let mut parts: BTreeMap<u32, Vec<Slab>> = BTreeMap::new();
        let mut rows = u64::MAX;
        for record in self.records.iter().rev() {
            if remaining.is_empty() {
                break;
            }
            let wrote = match &record.event {
                Event::Cut(to) => {
                    rows = rows.min(to.first().copied().unwrap_or(u64::MAX));
                    continue;
                }
                Event::Wrote(wrote) => wrote,
            };
            if rows == u64::MAX && *wrote == remaining {
                parts.entry(record.rank).or_default().extend(remaining.slabs().iter().cloned());
                remaining = Selection::empty(self.dimensions);
            } else if remaining.overlaps(wrote) {
                let mut part = remaining.intersect(wrote)?;
                if rows != u64::MAX {
                    let mut kept = Dims::from_slice(shape);
                    kept[0] = rows;
                    part = part.intersect(&Selection::all(&kept)?)?;
                }
                remaining = remaining.subtract(&part)?;
                parts.entry(record.rank).or_default().extend(part.slabs().iter().cloned());
            }
        }
        let mut out = Holders::new();
        for (rank, slabs) in parts {
            out.push((Some(rank), Selection::union(self.dimensions, slabs)?));
        }
        if !remaining.is_empty() {
            out.push((None, remaining));
        }
        Ok(out)
    }
}

/// Refuses what is no line of the index of an array with so many dimensions.
pub(crate) fn check_line(line: &[u8], dimensions: usize) -> Result<()> {
    parse(line, 0, dimensions).map(drop)
}

fn parse(line: &[u8], rank: u32, dimensions: usize) -> Result<Record> {
    let corrupt = |message: String| Error::new(ErrorKind::Corrupt, "read index", message);
    let line: Line = serde_json::from_slice(line).map_err(|cause| corrupt(cause.to_string()))?;
    let (found, event) = match (line.wrote, line.cut) {
        (Some(selection), None) => (selection.rank(), Event::Wrote(selection)),
        (None, Some(shape)) => (shape.len(), Event::Cut(shape)),
        _ => return Err(corrupt("a line says neither or both of \"wrote\" and \"cut\"".into())),
    };
    if found != dimensions {
        return Err(corrupt(format!("a line has {found} dimensions, the array {dimensions}")));
    }
    Ok(Record { stamp: line.stamp, rank, event })
}
