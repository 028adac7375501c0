//! Moving all elements to a file of another layout, which then takes the place of the old one.

use super::encode::encode;
use super::header::{Header, Variable};
use crate::posix::data_file::{Access, DataFile};
use crate::posix::names::with_extension;
use crate::posix::staging::Staging;
use hyperslab_core::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the new file is until it is whole.
pub(crate) fn unfinished(path: &Path) -> PathBuf {
    with_extension(path, "hyperslab-new")
}

/// Writes the file anew as `new` says, whose first variables are those of `old`, and renames it into place. A crash leaves the
/// old file or the new one; `durable` says that this holds for loss of power too. Which of them the directory has after that is
/// certain when it was synced.
pub(crate) fn relocate(
    path: &Path,
    file: &DataFile,
    staging: &Arc<Staging>,
    (old, new): (&Header, &Header),
    durable: bool,
) -> Result<()> {
    let target = unfinished(path);
    let fail = |cause| Error::io("move data", cause).target(target.display());
    let write = || {
        match std::fs::remove_file(&target) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(fail(cause)),
            _ => {}
        }
        let copy = DataFile::open(&target, Access::Make, false, staging)?;
        let mode = file.buffered().metadata().map_err(fail)?.permissions();
        copy.buffered().set_permissions(mode).map_err(fail)?;
        copy.write_cached(&encode(new), 0)?;
        let header = encode(new).len() as u64;
        copy.set_len(new.end().max(header))?;
        Mover { from: file, to: &copy, staging, size: file.len()? }.copy(old, new)?;
        if durable {
            copy.sync()?;
        }
        std::fs::rename(&target, path).map_err(fail)
    };
    write().inspect_err(|_| {
        // The error says more than one of cleaning up.
        let _ = std::fs::remove_file(&target);
    })
}

struct Mover<'a> {
    from: &'a DataFile,
    to: &'a DataFile,
    staging: &'a Staging,
    /// Of the old file: what others have written may be shorter than its header says.
    size: u64,
}

impl Mover<'_> {
    fn copy(&self, old: &Header, new: &Header) -> Result<()> {
        let pairs = || old.variables.iter().zip(&new.variables);
        for (from, to) in pairs().filter(|(from, _)| !old.has_records(from)) {
            self.range(from.begin, to.begin, old.inner_bytes(from))?;
        }
        let moved: Vec<_> = pairs().filter(|(from, _)| old.has_records(from)).collect();
        let (Some(from), Some(to)) = (old.records_begin(), new.records_begin()) else { return Ok(()) };
        let (from_size, to_size) = (old.record_size(), new.record_size());
        let offset = |variable: &Variable, begin: u64| variable.begin - begin;
        if from_size == to_size && moved.iter().all(|(a, b)| offset(a, from) == offset(b, to)) {
            return self.range(from, to, old.records * from_size);
        }
        let held = self.staging.size() as u64 / from_size.max(to_size).max(1);
        if held == 0 {
            for record in 0..old.records {
                for (a, b) in &moved {
                    let bytes = old.inner_bytes(a);
                    self.range(a.begin + record * from_size, b.begin + record * to_size, bytes)?;
                }
            }
            return Ok(());
        }
        let mut before = self.staging.take((held * from_size) as usize);
        let mut after = self.staging.take((held * to_size) as usize);
        let mut record = 0;
        while record < old.records {
            let count = held.min(old.records - record);
            let before = &mut before[..(count * from_size) as usize];
            let after = &mut after[..(count * to_size) as usize];
            self.fetch(before, from + record * from_size)?;
            after.fill(0);
            let rows = before.chunks(from_size as usize).zip(after.chunks_mut(to_size as usize));
            for (before, after) in rows {
                for (a, b) in &moved {
                    let bytes = old.inner_bytes(a) as usize;
                    let (at, to) = (offset(a, from) as usize, offset(b, to) as usize);
                    after[to..to + bytes].copy_from_slice(&before[at..at + bytes]);
                }
            }
            self.store(after, to + record * to_size)?;
            record += count;
        }
        Ok(())
    }

    fn range(&self, mut from: u64, mut to: u64, mut bytes: u64) -> Result<()> {
        let mut buffer = self.staging.take(bytes.min(self.staging.size() as u64) as usize);
        while bytes > 0 {
            let n = bytes.min(buffer.len() as u64);
            let part = &mut buffer[..n as usize];
            self.fetch(part, from)?;
            self.store(part, to)?;
            (from, to, bytes) = (from + n, to + n, bytes - n);
        }
        Ok(())
    }

    /// Reads; what lies beyond the end of the file, where only padding may lie, is zeros.
    fn fetch(&self, bytes: &mut [u8], at: u64) -> Result<()> {
        let there = self.size.saturating_sub(at).min(bytes.len() as u64) as usize;
        let (there, beyond) = bytes.split_at_mut(there);
        beyond.fill(0);
        self.from.read_cached(there, at)
    }

    /// Writes; what is zeros anyway stays a hole.
    fn store(&self, bytes: &[u8], at: u64) -> Result<()> {
        if bytes.iter().all(|byte| *byte == 0) { Ok(()) } else { self.to.write_cached(bytes, at) }
    }
}

/// Refuses a file that ends before the last element of its variables.
pub(crate) fn check_size(header: &Header, size: u64) -> Option<String> {
    let ends = |variable: &Variable| {
        let bytes = header.inner_bytes(variable);
        match (header.has_records(variable), header.records) {
            (false, _) => variable.begin + bytes,
            (true, 0) => 0,
            (true, records) => variable.begin + (records - 1) * header.record_size() + bytes,
        }
    };
    let end = header.variables.iter().map(ends).max().unwrap_or(0);
    (size < end).then(|| format!("the file has {size} bytes, its arrays end at byte {end}"))
}
