//! Traces of `hyperslab-faultshim`: every change of a file below a directory, in the order in which they took effect.
//!
//! `crates/hyperslab-faultshim/src/record.rs` describes the bytes.

use anyhow::{Context as _, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// A change of a file.
#[derive(Debug, Clone)]
pub struct Event {
    pub path: PathBuf,
    /// Time of the file's modification after the call, in ns since 1970; 0 if it had gone.
    pub modified: i64,
    pub action: Action,
}

/// What was done.
#[derive(Debug, Clone)]
pub enum Action {
    Open { truncate: bool, permissions: u32 },
    Write { offset: u64, data: Vec<u8> },
    Truncate { len: u64 },
    Allocate { offset: u64, len: u64, mode: i64 },
    Sync { whole_file_system: bool },
    Rename { to: PathBuf },
    Unlink,
    MakeDirectory,
    RemoveDirectory,
    Link { to: PathBuf },
    SetAttribute { name: String, value: Vec<u8> },
    RemoveAttribute { name: String },
    SetModified,
}

const MAGIC: &[u8] = b"HSR1";
const HEAD: usize = 56;
const O_TRUNC: i64 = 0o1000;

/// Reads a trace.
pub fn read(path: &Path) -> Result<Vec<Event>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read the trace {}", path.display()))?;
    let (mut rest, mut events) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (event, after) = event(rest).with_context(|| format!("record {} of the trace", events.len()))?;
        events.push(event);
        rest = after;
    }
    Ok(events)
}

fn event(bytes: &[u8]) -> Result<(Event, &[u8])> {
    ensure!(bytes.len() >= HEAD && bytes.starts_with(MAGIC), "is torn");
    let small = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let large = |at: usize| u64::from(small(at)) | u64::from(small(at + 4)) << 32;
    let number = |index: usize| large(16 + 8 * index) as i64;
    let lens = [small(40) as usize, small(44) as usize, usize::try_from(large(48))?];
    let mut rest = &bytes[HEAD..];
    let mut parts = [&[][..]; 3];
    for (part, len) in parts.iter_mut().zip(lens) {
        ensure!(rest.len() >= len, "is torn");
        (*part, rest) = rest.split_at(len);
    }
    let [path, second, data] = parts;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).context("a name is no UTF-8");
    let action = match small(4) {
        1 => Action::Open { truncate: number(0) & O_TRUNC != 0, permissions: u32::try_from(number(1))? },
        2 => Action::Write { offset: number(0) as u64, data: data.to_vec() },
        3 => Action::Truncate { len: number(0) as u64 },
        4 => Action::Allocate { offset: number(0) as u64, len: number(1) as u64, mode: number(2) },
        5 => Action::Sync { whole_file_system: number(0) == 2 },
        6 => Action::Rename { to: text(second)?.into() },
        7 => Action::Unlink,
        8 => Action::MakeDirectory,
        9 => Action::RemoveDirectory,
        10 => Action::Link { to: text(second)?.into() },
        11 => Action::SetAttribute { name: text(second)?, value: data.to_vec() },
        12 => Action::RemoveAttribute { name: text(second)? },
        13 => Action::SetModified,
        other => bail!("is of the unknown kind {other}"),
    };
    Ok((Event { path: text(path)?.into(), modified: large(8) as i64, action }, rest))
}
