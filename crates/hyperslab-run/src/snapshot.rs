//! Copies of containers that a workload changes, so that every run of it starts from the same state.
//!
//! A copy lies beside its original under a hidden name. Data are copied byte by byte, never as references to the same
//! blocks: a file system that shares blocks would make the next overwrite slower than it is.

use crate::machine::space_available;
use hyperslab_core::units::display_size;
use hyperslab_core::{Error, ErrorKind, Result};
use rustix::fs::{SeekFrom, seek};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PIECE: usize = 1 << 20;
/// How many names are tried for a copy.
const NAMES: usize = 1000;

/// The copies. Dropping removes them.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    copies: Vec<Kept>,
}

#[derive(Debug)]
struct Kept {
    original: PathBuf,
    copy: PathBuf,
}

impl Snapshots {
    /// Copies every container of `originals`. Nothing stays behind when it fails or `stop` says so.
    pub fn copy(originals: &[PathBuf], stop: &dyn Fn() -> bool) -> Result<Self> {
        let mut aside = Self::default();
        for original in originals {
            aside.add(original, stop).map_err(|error| {
                error.hint("every repetition has to start from the same file: use --repeat 1 and no warm-up to go without a copy")
            })?;
        }
        Ok(aside)
    }

    fn add(&mut self, original: &Path, stop: &dyn Fn() -> bool) -> Result<()> {
        let parent = match original.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let (need, left) = (stored_bytes(original)?, space_available(parent)?);
        if need > left {
            return Err(Error::new(
                ErrorKind::NoSpace,
                "copy aside",
                format!("a copy needs {}, but only {} are left", display_size(need), display_size(left)),
            )
            .target(original.display()));
        }
        for number in 0..NAMES {
            let mut name = OsString::from(".");
            name.push(original.file_name().unwrap_or_default());
            name.push(format!(".before-{}-{number}", std::process::id()));
            let copy = parent.join(name);
            match create(original, &copy) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    // From here on the name is ours, and goes with `self` whatever happens.
                    self.copies.push(Kept { original: original.into(), copy: copy.clone() });
                    return fill(original, &copy, stop);
                }
            }
        }
        Err(Error::new(ErrorKind::AlreadyExists, "copy aside", "there are too many copies already")
            .target(original.display()))
    }

    /// Whether nothing was copied.
    pub fn is_empty(&self) -> bool {
        self.copies.is_empty()
    }

    /// Makes the originals what they were. Afterwards their data are on the device, so that no write-back disturbs.
    /// A copy that could not be put back is kept for the user; the error says where.
    pub fn put_back(&mut self) -> Result<()> {
        let mut result = Ok(());
        self.copies.retain(|kept| match restore(&kept.copy, &kept.original) {
            Ok(()) => true,
            Err(error) => {
                result =
                    Err(error
                        .hint(format!("the file as it was before is {}: put it back by hand", kept.copy.display())));
                false
            }
        });
        result
    }

    /// Removes the copies and says which could not be.
    pub fn remove(&mut self) -> Result<()> {
        let mut result = Ok(());
        for kept in self.copies.drain(..) {
            let removed = remove(&kept.copy);
            result = result.and(removed);
        }
        result
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        // Errors have no place to go in a drop; who wants them calls `remove` first.
        let _ = self.remove();
    }
}

fn failed(operation: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::io(operation, error).target(path)
}

/// What lies at a path, links not followed. Anything but files and directories is refused.
fn is_directory(path: &Path) -> Result<bool> {
    let kind = fs::symlink_metadata(path).map_err(failed("look at", path))?.file_type();
    if kind.is_dir() || kind.is_file() {
        return Ok(kind.is_dir());
    }
    Err(Error::invalid("copy aside", "it is neither a regular file nor a directory").target(path.display()))
}

fn entries(directory: &Path) -> Result<Vec<OsString>> {
    let listed = fs::read_dir(directory).and_then(|all| all.map(|entry| entry.map(|e| e.file_name())).collect());
    listed.map_err(failed("list", directory))
}

/// Bytes that a file or directory occupies, holes not counted.
fn stored_bytes(path: &Path) -> Result<u64> {
    if is_directory(path)? {
        return entries(path)?.iter().try_fold(0, |sum: u64, name| Ok(sum + stored_bytes(&path.join(name))?));
    }
    Ok(fs::symlink_metadata(path).map_err(failed("look at", path))?.blocks().saturating_mul(512))
}

/// A new, empty, private file or directory like `original`; fails if anything is there.
fn create(original: &Path, new: &Path) -> Result<()> {
    let made = if is_directory(original)? {
        DirBuilder::new().mode(0o700).create(new)
    } else {
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(new).map(drop)
    };
    made.map_err(failed("copy aside", new))
}

/// Fills the new file or directory `to` with what `from` holds.
fn fill(from: &Path, to: &Path, stop: &dyn Fn() -> bool) -> Result<()> {
    if !is_directory(from)? {
        return copy_data(from, to, stop);
    }
    for name in entries(from)? {
        let (from, to) = (from.join(&name), to.join(&name));
        create(&from, &to)?;
        fill(&from, &to, stop)?;
    }
    Ok(())
}

/// Makes `to` hold what `from` holds. Files keep their place, owner and rights.
fn restore(from: &Path, to: &Path) -> Result<()> {
    let directory = is_directory(from)?;
    if !matches!(is_directory(to), Ok(found) if found == directory) {
        remove(to)?;
        let made = if directory { fs::create_dir(to) } else { File::create_new(to).map(drop) };
        made.map_err(failed("put back", to))?;
    }
    if !directory {
        return copy_data(from, to, &|| false);
    }
    for name in entries(to)? {
        if fs::symlink_metadata(from.join(&name)).is_err() {
            remove(&to.join(&name))?;
        }
    }
    entries(from)?.iter().try_for_each(|name| restore(&from.join(name), &to.join(name)))
}

fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    };
    removed.map_err(failed("remove", path))
}

/// Replaces the bytes of `to` by those of `from`, holes staying holes, and waits until they are on the device.
fn copy_data(from: &Path, to: &Path, stop: &dyn Fn() -> bool) -> Result<()> {
    let open =
        |path, write: bool| OpenOptions::new().read(!write).write(write).custom_flags(libc::O_NOFOLLOW).open(path);
    let source = open(from, false).map_err(failed("read", from))?;
    let target = open(to, true).map_err(failed("write", to))?;
    let length = source.metadata().map_err(failed("look at", from))?.len();
    target.set_len(0).and_then(|()| target.set_len(length)).map_err(failed("write", to))?;
    let mut buffer = vec![0; PIECE.min(length as usize)];
    let mut at = 0;
    while let Some((begin, end)) = data_after(&source, at, length) {
        at = begin;
        while at < end {
            if stop() {
                return Err(Error::new(ErrorKind::Interrupted, "copy aside", "stopped on request"));
            }
            let piece = buffer.len().min((end - at) as usize);
            source.read_exact_at(&mut buffer[..piece], at).map_err(failed("read", from))?;
            target.write_all_at(&buffer[..piece], at).map_err(failed("write", to))?;
            at += piece as u64;
        }
    }
    target.sync_all().map_err(failed("write", to))
}

/// The next stretch of a file, from `at` on, that is not a hole; all of the rest where the file system cannot tell.
fn data_after(file: &File, at: u64, length: u64) -> Option<(u64, u64)> {
    if at >= length {
        return None;
    }
    match seek(file, SeekFrom::Data(at)) {
        Ok(begin) if begin >= length => None,
        Ok(begin) => {
            let end = seek(file, SeekFrom::Hole(begin)).ok().filter(|end| *end > begin).unwrap_or(length);
            Some((begin, end.min(length)))
        }
        Err(rustix::io::Errno::NXIO) => None,
        Err(_) => Some((at, length)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = entries(directory).unwrap().into_iter().map(|n| n.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn files_and_directories_become_what_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let (file, tree) = (directory.path().join("f"), directory.path().join("d"));
        let sparse = File::create(&file).unwrap();
        sparse.set_len(10 << 20).unwrap();
        sparse.write_all_at(b"middle", 5 << 20).unwrap();
        let holes = fs::metadata(&file).unwrap().blocks();
        fs::create_dir_all(tree.join("a/b")).unwrap();
        fs::write(tree.join("a/b/x"), "x").unwrap();
        fs::write(tree.join("y"), "").unwrap();
        let before = fs::read(&file).unwrap();

        let mut aside = Snapshots::copy(&[file.clone(), tree.clone()], &|| false).unwrap();
        assert_eq!(names(directory.path()).len(), 4);
        for kept in &aside.copies {
            assert_eq!(fs::metadata(&kept.copy).unwrap().permissions().mode() & 0o077, 0);
        }
        for _ in 0..2 {
            fs::write(&file, "longer or shorter").unwrap();
            fs::remove_dir_all(tree.join("a/b")).unwrap();
            fs::write(tree.join("a/b"), "now a file").unwrap();
            fs::create_dir(tree.join("new")).unwrap();
            fs::write(tree.join("new/z"), "z").unwrap();
            fs::write(tree.join("y"), "changed").unwrap();
            aside.put_back().unwrap();
            assert_eq!(fs::read(&file).unwrap(), before);
            assert!(fs::metadata(&file).unwrap().blocks() <= holes + 16);
            assert_eq!(fs::read(tree.join("a/b/x")).unwrap(), b"x");
            assert_eq!(fs::read(tree.join("y")).unwrap(), b"");
            assert_eq!(names(&tree), ["a", "y"]);
        }
        aside.remove().unwrap();
        assert_eq!(names(directory.path()), ["d", "f"]);
    }

    #[test]
    fn nothing_is_followed_overwritten_or_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("f");
        fs::write(&file, "data").unwrap();
        let taken = directory.path().join(format!(".f.before-{}-0", std::process::id()));
        fs::write(&taken, "precious").unwrap();
        let aside = Snapshots::copy(std::slice::from_ref(&file), &|| false).unwrap();
        assert_ne!(aside.copies[0].copy, taken);
        drop(aside);
        assert_eq!(fs::read(&taken).unwrap(), b"precious");

        let error = Snapshots::copy(std::slice::from_ref(&file), &|| true).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Interrupted);
        let link = directory.path().join("l");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let error = Snapshots::copy(&[file, link], &|| false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert_eq!(names(directory.path()).len(), 3, "{:?}", names(directory.path()));
    }

    #[test]
    fn a_copy_that_cannot_be_put_back_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().join("home");
        fs::create_dir(&home).unwrap();
        fs::write(home.join("f"), "data").unwrap();
        let mut aside = Snapshots::copy(&[home.join("f")], &|| false).unwrap();
        let copy = aside.copies[0].copy.clone();
        aside.copies[0].original = home.join("gone/f");
        let error = aside.put_back().unwrap_err();
        assert!(error.to_string().contains(&copy.display().to_string()), "{error}");
        drop(aside);
        assert_eq!(fs::read(copy).unwrap(), b"data");
    }
}
