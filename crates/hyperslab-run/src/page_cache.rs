//! Cold or warm: what of a file the operating system holds in memory.

use hyperslab_core::{Error, Result};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Writes the files out and drops them from the page cache. Returns the part that stayed, from 0 to 1.
pub(crate) fn drop_pages(files: &[PathBuf]) -> Result<f64> {
    for path in files {
        let file = open(path)?;
        file.sync_all().map_err(|e| failed("write out", path, e))?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(|e| failed("drop from page cache", path, e.into()))?;
    }
    resident(files)
}

/// Whether files in `directory` can be dropped from the page cache: the part that stays of one that is made for this.
pub fn page_cache_control(directory: &Path) -> Result<f64> {
    let path = directory.join(format!(".hyperslab-page-cache-{}", std::process::id()));
    let made = File::create_new(&path).and_then(|mut file| file.write_all(&[7; 1 << 16]));
    let left = made.map_err(|e| failed("write", &path, e)).and_then(|()| drop_pages(std::slice::from_ref(&path)));
    // If it was not made there is nothing to remove.
    let _ = std::fs::remove_file(&path);
    left
}

/// Reads the files once, so that they are in the page cache as far as they fit.
pub(crate) fn warm_pages(files: &[PathBuf]) -> Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for path in files {
        let mut file = open(path)?;
        while file.read(&mut buffer).map_err(|e| failed("read", path, e))? > 0 {}
    }
    Ok(())
}

/// The part of the files' bytes that is in the page cache, from 0 to 1.
pub(crate) fn resident(files: &[PathBuf]) -> Result<f64> {
    let (mut total, mut present) = (0u64, 0u64);
    for path in files {
        let (pages, in_memory) = resident_pages(path)?;
        total += pages;
        present += in_memory;
    }
    Ok(if total == 0 { 0.0 } else { present as f64 / total as f64 })
}

fn resident_pages(path: &Path) -> Result<(u64, u64)> {
    let file = open(path)?;
    let len = file.metadata().map_err(|e| failed("look at", path, e))?.len() as usize;
    if len == 0 {
        return Ok((0, 0));
    }
    let pages = len.div_ceil(rustix::param::page_size());
    let mut marks = vec![0u8; pages];
    // SAFETY: a fresh mapping of `len` bytes that is never read or written through, only asked about and unmapped;
    // `marks` has one byte for each of its pages.
    let answered = unsafe {
        let map = libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if map == libc::MAP_FAILED {
            return Err(failed("map", path, std::io::Error::last_os_error()));
        }
        let status = libc::mincore(map, len, marks.as_mut_ptr());
        let error = std::io::Error::last_os_error();
        libc::munmap(map, len);
        if status == 0 { Ok(()) } else { Err(error) }
    };
    answered.map_err(|e| failed("ask about pages of", path, e))?;
    Ok((pages as u64, marks.iter().filter(|m| **m & 1 == 1).count() as u64))
}

fn open(path: &Path) -> Result<File> {
    File::open(path).map_err(|e| failed("open", path, e))
}

fn failed(operation: &'static str, path: &Path, error: std::io::Error) -> Error {
    Error::io(operation, error).target(path.display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pages_come_and_go() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        let files = [path];
        warm_pages(&files).unwrap();
        assert!(resident(&files).unwrap() > 0.99);
        let left = drop_pages(&files).unwrap();
        assert!((0.0..=1.0).contains(&left));
    }
}
