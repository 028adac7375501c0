//! The header in its file: reading it, and putting a changed one in its place.

use super::decode::{Decoded, Flaw, decode};
use super::encode::encode;
use super::header::Header;
use super::journal::{self, LARGEST_HEADER, SECTOR, read_up_to};
use crate::posix::data_file::DataFile;
use hyperslab_core::{Error, ErrorKind, Result};
use std::fs::File;
use std::path::Path;

/// How much is read at first.
const FIRST: u64 = 64 << 10;

/// The bytes of the header of `file`, and what is to be put in place of them before anything else is written.
pub(crate) fn load(path: &Path, file: &File) -> Result<(Vec<u8>, bool)> {
    let interrupted = journal::interrupted(path, file)?;
    let fail = |cause| Error::io("open", cause).target(path.display());
    let size = file.metadata().map_err(fail)?.len();
    let mut want = FIRST.min(size);
    loop {
        let mut bytes = vec![0; want as usize];
        let got = read_up_to(file, &mut bytes).map_err(fail)?;
        bytes.truncate(got);
        if let Some(new) = &interrupted {
            bytes.resize(got.max(new.len()), 0);
            bytes[..new.len()].copy_from_slice(new);
        }
        match decode(&bytes) {
            Ok(decoded) => {
                bytes.truncate(decoded.len as usize);
                return Ok((bytes, interrupted.is_some()));
            }
            Err(Flaw::Short(needs)) if needs <= size && needs <= LARGEST_HEADER && want < size => {
                want = needs.max(want * 2).min(size).min(LARGEST_HEADER);
            }
            Err(flaw) => return Err(refuse(path, &bytes, flaw)),
        }
    }
}

fn refuse(path: &Path, bytes: &[u8], flaw: Flaw) -> Error {
    let about = |kind, message: String| Error::new(kind, "open", message).target(path.display());
    if !bytes.starts_with(b"CDF") {
        let error = about(ErrorKind::InvalidInput, "it is no classic NetCDF file".into());
        let is_hdf5 = bytes.starts_with(b"\x89HDF");
        return if is_hdf5 { error.hint("it is an HDF5 file, as NetCDF-4 makes them: use hdf5") } else { error };
    }
    match flaw {
        Flaw::Wrong(at, message) => about(ErrorKind::Corrupt, format!("at byte {at} of the header: {message}")),
        Flaw::Short(needs) if needs > LARGEST_HEADER => {
            about(ErrorKind::Unsupported, format!("its header goes on beyond byte {LARGEST_HEADER}"))
        }
        Flaw::Short(needs) => about(ErrorKind::Corrupt, format!("it ends before byte {needs} of its header")),
    }
}

/// The header of bytes that [`load`] found, in a file of `size` bytes.
pub(crate) fn parse(path: &Path, bytes: &[u8], size: u64) -> Result<Decoded> {
    let mut decoded = decode(bytes).map_err(|flaw| refuse(path, bytes, flaw))?;
    if decoded.streaming
        && let Some(begin) = decoded.header.records_begin()
    {
        let header = &mut decoded.header;
        header.records = size.saturating_sub(begin).checked_div(header.record_size()).unwrap_or(0);
    }
    Ok(decoded)
}

/// Puts the bytes of an interrupted change in place.
pub(crate) fn repair(path: &Path, file: &DataFile, bytes: &[u8]) -> Result<()> {
    file.write_cached(bytes, 0)?;
    file.sync()?;
    journal::remove(path)
}

/// Puts `header` in place of `old`, the bytes that the file has; returns what it has now. A crash leaves one or the other.
/// `durable` says that this holds for loss of power too.
pub(crate) fn replace(path: &Path, file: &DataFile, old: &[u8], header: &Header, durable: bool) -> Result<Vec<u8>> {
    let bytes = encode(header);
    if bytes == old {
        return Ok(bytes);
    }
    // What is left of a longer one becomes zeros.
    let mut new = bytes.clone();
    new.resize(bytes.len().max(old.len()), 0);
    if file.len()? < new.len() as u64 {
        file.set_len(new.len() as u64)?;
    }
    let mut now = vec![0; new.len()];
    read_up_to(file.buffered(), &mut now).map_err(|cause| file.fail("change header", cause))?;
    let differs = |(at, (now, new)): (usize, (&u8, &u8))| (now != new).then_some(at);
    let first = now.iter().zip(&new).enumerate().find_map(differs);
    let last = now.iter().zip(&new).enumerate().rev().find_map(differs);
    if let (Some(first), Some(last)) = (first, last) {
        let is_whole = first / SECTOR == last / SECTOR;
        if !is_whole {
            journal::put(path, &now, &new, durable)?;
        }
        file.write_cached(&new[first..=last], first as u64)?;
        if !is_whole {
            if durable {
                file.sync()?;
            }
            journal::remove(path)?;
        }
    }
    Ok(bytes)
}
