//! Subfiles of an HDF5 file that was written with the subfiling driver.
//!
//! libhdf5 puts the data into `NAME.subfile_INODE_I_of_N` and their list into `NAME.subfile_INODE.config`, where INODE
//! belongs to the file NAME itself, which holds little more than the superblock.

use hyperslab_core::{Error, ErrorKind, Result};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The subfiles and their configuration file, sorted; empty for an ordinary or missing file.
pub(super) fn list(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let inode = match path.metadata() {
        Ok(found) if found.is_file() => found.ino(),
        Ok(_) => return Ok(Vec::new()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e),
    };
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return Ok(Vec::new()) };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let prefix = [name.as_bytes(), format!(".subfile_{inode}").as_bytes()].concat();
    // A look at one name is enough for ordinary files, whose folder may be large.
    if !config_path(path, inode).exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(rest) = name.as_bytes().strip_prefix(prefix.as_slice())
            && (rest == b".config" || is_subfile(rest))
        {
            found.push(path.with_file_name(name));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The configuration file, which lists the subfiles.
fn config_path(path: &Path, inode: u64) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".subfile_{inode}.config"));
    path.with_file_name(name)
}

/// Whether this is `_I_of_N`.
fn is_subfile(rest: &[u8]) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    std::str::from_utf8(rest)
        .ok()
        .and_then(|rest| rest.strip_prefix('_')?.split_once("_of_"))
        .is_some_and(|(one, all)| number(one) && number(all))
}

/// Refuses to open a file with a driver that would not find its data.
pub(super) fn refuse_wrong_driver(path: &Path, subfiling: bool) -> Result<()> {
    let split = !list(path).map_err(|e| Error::io("open", e))?.is_empty();
    match (split, subfiling) {
        (true, false) => Err(Error::new(ErrorKind::Unsupported, "open", "the data of this file lies in subfiles")
            .hint("open it on MPI ranks with hdf5(driver=subfiling)")),
        (false, true) => {
            Err(Error::invalid("open", "the file has no subfiles beside it").hint("leave driver=subfiling out"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_the_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.h5");
        assert!(list(&path).unwrap().is_empty());
        std::fs::write(&path, b"x").unwrap();
        assert!(list(&path).unwrap().is_empty());
        let inode = path.metadata().unwrap().ino();
        let own = [".config", "_1_of_2", "_2_of_2"].map(|end| dir.path().join(format!("a.h5.subfile_{inode}{end}")));
        let others =
            ["_1_of_", "_x_of_2", "9_1_of_2", ".config.old", ""].map(|end| format!("a.h5.subfile_{inode}{end}"));
        own.iter()
            .cloned()
            .chain(others.map(|name| dir.path().join(name)))
            .for_each(|p| std::fs::write(p, b"y").unwrap());
        assert_eq!(list(&path).unwrap(), own);
        assert!(refuse_wrong_driver(&path, false).is_err() && refuse_wrong_driver(&path, true).is_ok());
    }
}
