//! Changing a header so that it is found whole: the old and the new bytes are put beside the file first.
//!
//! ```text
//! "HSCDFHDR"  length u64  crc32c u32  old bytes  new bytes        little-endian; `length` bytes each
//! ```
//! The file beside is removed when the new header is in place. A header that is the old one in some sectors and the new one in
//! others was interrupted, and becomes the new one; any other header was not, and the file beside means nothing.

use hyperslab_core::{Error, Result};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"HSCDFHDR";
/// What a device writes whole or not at all.
pub(crate) const SECTOR: usize = 512;
/// The most bytes of a header.
pub(crate) const LARGEST_HEADER: u64 = 1 << 30;

/// Where the bytes are while a header changes.
pub(crate) fn beside(path: &Path) -> PathBuf {
    crate::posix::names::with_extension(path, "hyperslab-header")
}

/// Puts a journal beside the file; `durable` says that it must survive loss of power.
pub(crate) fn put(path: &Path, old: &[u8], new: &[u8], durable: bool) -> Result<()> {
    let journal = beside(path);
    let checksum = crc32c::crc32c_append(crc32c::crc32c(old), new);
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&(new.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes.extend_from_slice(old);
    bytes.extend_from_slice(new);
    let store = || {
        let mut file = File::create(&journal)?;
        file.write_all(&bytes)?;
        if durable {
            file.sync_all()?;
            sync_directory(path)?;
        }
        Ok(())
    };
    store().map_err(|cause: io::Error| Error::io("change header", cause).target(journal.display()))
}

/// Takes the journal away.
pub(crate) fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(beside(path)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("change header", cause).target(beside(path).display()))
        }
        _ => Ok(()),
    }
}

/// What the header of an interrupted change is to become; `None` if it is whole.
pub(crate) fn interrupted(path: &Path, file: &File) -> Result<Option<Vec<u8>>> {
    let fail = |cause: io::Error| Error::io("open", cause).target(beside(path).display());
    let mut bytes = Vec::new();
    match File::open(beside(path)) {
        Ok(journal) => journal.take(3 * LARGEST_HEADER).read_to_end(&mut bytes).map_err(fail)?,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(fail(cause)),
    };
    let Some((old, new)) = parts(&bytes) else { return Ok(None) };
    let mut now = vec![0; new.len()];
    read_up_to(file, &mut now).map_err(fail)?;
    let sectors = || now.chunks(SECTOR).zip(old.chunks(SECTOR)).zip(new.chunks(SECTOR));
    let is_mixed = now != old && now != new && sectors().all(|((now, old), new)| now == old || now == new);
    Ok(is_mixed.then(|| new.to_vec()))
}

/// The old and the new bytes of a journal that is whole.
fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (len, rest) = rest.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
    let whole = rest.len() == len.checked_mul(2)? && crc32c::crc32c(rest) == u32::from_le_bytes(*checksum);
    whole.then(|| rest.split_at(len))
}

/// Fills `bytes` from the beginning of the file; those beyond its end stay as they are.
pub(crate) fn read_up_to(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
    Ok(done)
}

/// Makes new and changed names in the directory of `path` survive loss of power.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
