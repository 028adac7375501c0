//! Copies of the folder that a program runs in, so that it can be run many times and leaves everything as it was.

use anyhow::{Context, Result, bail};
use hyperslab_core::units::display_size;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Files that may be copied.
const MOST_FILES: usize = 20_000;
/// Of free space at most this part is used by a copy.
const SHARE_OF_FREE: u64 = 3;
/// How copies are named, and folders that are never copied.
const PREFIX: &str = ".hyperslab-tune-";
const NEVER: [&str; 1] = [".git"];

/// Where the program runs.
pub struct WorkFolder {
    from: PathBuf,
    /// Where copies are made; `None` if it runs where it is.
    scratch: Option<TempDir>,
}

/// One copy; gone when it is dropped.
pub struct FolderCopy {
    path: PathBuf,
    temporary: bool,
}

impl WorkFolder {
    /// Looks at the folder. Refuses what is too large to be copied for every run.
    pub fn new(from: &Path, in_place: bool) -> Result<Self> {
        let from = fs::canonicalize(from).with_context(|| from.display().to_string())?;
        if in_place {
            return Ok(Self { from, scratch: None });
        }
        let (mut files, mut bytes) = (0, 0);
        measure(&from, &mut files, &mut bytes)?;
        let free = rustix::fs::statvfs(&from).map_or(u64::MAX, |about| about.f_bavail.saturating_mul(about.f_frsize));
        if files > MOST_FILES || bytes > free / SHARE_OF_FREE {
            bail!(
                "{} has {files} files of {}, too much to copy for every run\n  try: a folder with only what the program \
                 needs, or --in-place, which runs it where it is",
                from.display(),
                display_size(bytes)
            );
        }
        // On the same file system, since that is what is measured.
        let scratch = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&from);
        let scratch = scratch.with_context(|| format!("cannot write to {}", from.display()))?;
        Ok(Self { from, scratch: Some(scratch) })
    }

    /// The folder itself.
    pub fn source(&self) -> &Path {
        &self.from
    }

    /// A new copy, all of it on the device, so that nothing is written while the program runs but by itself.
    pub fn copy(&self) -> Result<FolderCopy> {
        self.copy_as("copy")
    }

    /// The same by a name, beside copies of other names.
    pub fn copy_as(&self, name: &str) -> Result<FolderCopy> {
        let Some(scratch) = &self.scratch else { return Ok(FolderCopy { path: self.from.clone(), temporary: false }) };
        let path = scratch.path().join(name);
        fs::create_dir(&path).with_context(|| path.display().to_string())?;
        let copy = FolderCopy { path, temporary: true };
        copy_all(&self.from, &copy.path).with_context(|| format!("copying {}", self.from.display()))?;
        let folder = fs::File::open(&copy.path)?;
        rustix::fs::syncfs(&folder).with_context(|| format!("writing {} to the device", copy.path.display()))?;
        Ok(copy)
    }

    /// A word of the command as it is to be in a copy: what leaves the folder is named from the root.
    pub fn word(&self, word: &std::ffi::OsStr) -> std::ffi::OsString {
        let path = Path::new(word);
        let leaves = path.is_relative() && path.starts_with("..") && self.from.join(path).exists();
        if leaves { self.from.join(path).into() } else { word.to_owned() }
    }

    /// The program: a path within the folder stays where it is, so that what belongs to it is found.
    pub fn program(&self, word: &std::ffi::OsStr) -> std::ffi::OsString {
        let path = Path::new(word);
        let here = path.is_relative() && path.components().count() > 1 && self.from.join(path).exists();
        if here { self.from.join(path).into() } else { word.to_owned() }
    }

    /// Whether it runs in copies.
    pub fn copies(&self) -> bool {
        self.scratch.is_some()
    }

    /// A place for what is recorded.
    pub fn private(&self) -> Result<TempDir> {
        tempfile::Builder::new().prefix("hyperslab-tune-").tempdir().context("cannot make a temporary folder")
    }
}

impl FolderCopy {
    /// Where the program runs.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Files of these names, wherever they are in it: the paths and what they take on storage.
    pub fn find(&self, names: &BTreeSet<&str>) -> Vec<(PathBuf, u64)> {
        let mut found = Vec::new();
        let _ = visit(&self.path, &mut |path, about| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if about.is_file() && names.contains(name) {
                found.push((path.to_owned(), about.len()));
            }
            Ok(())
        });
        found
    }
}

impl Drop for FolderCopy {
    fn drop(&mut self) {
        if self.temporary {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Everything in a folder but what is never copied. Links are not followed.
fn visit(folder: &Path, each: &mut dyn FnMut(&Path, &fs::Metadata) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let name = name.to_string_lossy();
        if name.starts_with(PREFIX) || NEVER.contains(&name.as_ref()) {
            continue;
        }
        let about = fs::symlink_metadata(&entry)?;
        each(&entry, &about)?;
        if about.is_dir() {
            visit(&entry, each)?;
        }
    }
    Ok(())
}

fn measure(folder: &Path, files: &mut usize, bytes: &mut u64) -> Result<()> {
    visit(folder, &mut |_, about| {
        *files += 1;
        *bytes = bytes.saturating_add(if about.is_file() { about.len() } else { 0 });
        Ok(())
    })
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    visit(from, &mut |path, about| {
        let Ok(inside) = path.strip_prefix(from) else { return Ok(()) };
        let new = to.join(inside);
        if about.is_dir() {
            fs::create_dir(&new)?;
        } else if about.is_symlink() {
            let target = fs::read_link(path)?;
            let near = path.parent().unwrap_or(from);
            // A link that leaves the folder is named from the root, since the copy lies elsewhere.
            let whole = fs::canonicalize(near.join(&target)).ok().filter(|whole| !whole.starts_with(from));
            std::os::unix::fs::symlink(whole.unwrap_or(target), &new)?;
        } else if about.is_file() {
            fs::copy(path, &new)?;
            // Programs may look at which of two files is newer.
            let times = fs::FileTimes::new().set_modified(about.modified()?);
            if about.mode() & 0o200 != 0 {
                fs::File::options().write(true).open(&new)?.set_times(times)?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_whole_and_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("in/a.h5"), "data").unwrap();
        std::os::unix::fs::symlink("in/a.h5", folder.path().join("link.h5")).unwrap();
        std::os::unix::fs::symlink("/etc", folder.path().join("away")).unwrap();
        let work = WorkFolder::new(folder.path(), false).unwrap();
        for _ in 0..2 {
            let copy = work.copy().unwrap();
            assert_eq!(fs::read_to_string(copy.path().join("link.h5")).unwrap(), "data");
            fs::write(copy.path().join("in/a.h5"), "changed").unwrap();
            assert_eq!(copy.find(&["a.h5"].into()).len(), 1);
        }
        assert_eq!(fs::read_to_string(folder.path().join("in/a.h5")).unwrap(), "data");
        drop(work);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    }
}
