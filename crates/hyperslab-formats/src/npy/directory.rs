//! The container as a directory: which file is which array, making it and taking it away.

use super::attributes;
use super::header::MAGIC;
use crate::Beginning;
use crate::posix::names::{array_from_file, array_stem, group_from_file, with_extension};
use hyperslab_core::{Error, ErrorKind, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Extension of the files of arrays.
const EXTENSION: &str = "npy";
/// How deep groups may nest. The walk is bounded by it.
const DEEPEST: usize = 64;

/// What is in a container. Symbolic links are never followed and never belong to it.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Names of arrays, sorted.
    pub arrays: Vec<String>,
    /// Its files.
    pub files: Vec<PathBuf>,
    /// Directories below the root, outer before inner.
    directories: Vec<PathBuf>,
    /// The first thing found that does not belong to it.
    foreign: Option<PathBuf>,
}

fn fail(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |cause| Error::io(operation, cause).target(path.display())
}

/// Whether there is something at the path.
pub(super) fn exists(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(fail("look up", path)(cause)),
    }
}

/// Whether a directory has our mark, or an array somewhere in it.
pub(super) fn is_container(root: &Path) -> bool {
    root.is_dir() && (root.join(attributes::FILE).is_file() || contents(root).is_ok_and(|all| !all.arrays.is_empty()))
}

/// Refuses what is neither a container nor a single file. Returns whether it is the latter.
pub(super) fn check(path: &Path) -> Result<bool> {
    let beginning = Beginning::of(path)?;
    let single = beginning.bytes.starts_with(MAGIC);
    if !single && !is_container(path) {
        let message = "it is neither a .npy file nor a directory of such files";
        return Err(Error::new(ErrorKind::InvalidInput, "open", message));
    }
    Ok(single)
}

/// Makes an empty container.
pub(super) fn make(path: &Path) -> Result<()> {
    if path.extension().is_some_and(|extension| extension == EXTENSION) && !exists(path)? {
        return Err(Error::invalid("create", "a new container is a directory of .npy files, not one of them")
            .hint("give it a name that ends with .npys, or with no extension"));
    }
    fs::create_dir(path).map_err(fail("create", path))?;
    attributes::make(path).map(drop)
}

/// Takes a container away. Refuses, and removes nothing, if it holds anything that does not belong to it.
pub(super) fn remove(path: &Path) -> Result<()> {
    if fs::symlink_metadata(path).map_err(fail("remove", path))?.is_symlink() {
        return Err(Error::invalid("remove", "it is a symbolic link"));
    }
    if check(path)? {
        return fs::remove_file(path).map_err(fail("remove", path));
    }
    let contents = contents(path)?;
    if let Some(foreign) = contents.foreign {
        let message = format!("{} does not belong to the container", foreign.display());
        return Err(Error::invalid("remove", message).hint("move it elsewhere, then repeat"));
    }
    // The mark goes last, so that an interrupted removal can be repeated.
    let mark = path.join(attributes::FILE);
    for file in contents.files.iter().filter(|file| **file != mark) {
        fs::remove_file(file).map_err(fail("remove", file))?;
    }
    for directory in contents.directories.iter().rev() {
        fs::remove_dir(directory).map_err(fail("remove", directory))?;
    }
    match fs::remove_file(&mark) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(fail("remove", &mark)(cause)),
        _ => {}
    }
    fs::remove_dir(path).map_err(fail("remove", path))
}

/// Looks through the directory.
pub(super) fn contents(root: &Path) -> Result<Contents> {
    let mut found = Contents::default();
    walk(root, "", 0, &mut found)?;
    found.arrays.sort_unstable();
    found.files.sort_unstable();
    Ok(found)
}

fn walk(directory: &Path, group: &str, depth: usize, found: &mut Contents) -> Result<()> {
    let join = |name: &str| if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
    for entry in fs::read_dir(directory).map_err(fail("list", directory))? {
        let entry = entry.map_err(fail("list", directory))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(fail("list", directory))?);
        let file_name = entry.file_name();
        let text = file_name.to_str().unwrap_or("");
        let (stem, extension) = text.rsplit_once('.').unwrap_or((text, ""));
        if kind.is_file() && extension == EXTENSION && !stem.is_empty() {
            found.arrays.push(join(&array_from_file(stem).unwrap_or_else(|| stem.to_owned())));
            found.files.push(path);
        } else if kind.is_file() && depth == 0 && text.starts_with(attributes::FILE) {
            // Or what an interrupted change left of it.
            found.files.push(path);
        } else if kind.is_dir() && depth < DEEPEST && !text.is_empty() {
            found.directories.push(path.clone());
            walk(&path, &join(&group_from_file(text).unwrap_or_else(|| text.to_owned())), depth + 1, found)?;
        } else {
            found.foreign = found.foreign.take().or(Some(path));
        }
    }
    Ok(())
}

/// Where a new array's file belongs. Refuses names that are taken, and makes the directories above it.
pub(super) fn place(root: &Path, name: &str) -> Result<PathBuf> {
    let stem = array_stem(root, name)?;
    let taken = |what: &str| Error::new(ErrorKind::AlreadyExists, "create", what.to_owned());
    for (at, _) in name.match_indices('/') {
        if find(root, &name[..at]).is_ok() {
            return Err(taken(&format!("{:?} is an array, so nothing can be inside it", &name[..at])));
        }
    }
    if find(root, name).is_ok() {
        return Err(taken("an array of this name exists"));
    }
    if stem.is_dir() {
        return Err(taken("a group of this name exists"));
    }
    check_above(root, &stem)?;
    if let Some(directory) = stem.parent() {
        fs::create_dir_all(directory).map_err(fail("create", directory))?;
    }
    Ok(with_extension(&stem, EXTENSION))
}

/// The file of an array: by the name that this format gives it, or that others gave it.
pub(super) fn find(root: &Path, name: &str) -> Result<PathBuf> {
    let stem = array_stem(root, name)?;
    check_above(root, &stem)?;
    // The name is checked above: it leads nowhere else.
    let theirs = root.join(format!("{name}.{EXTENSION}"));
    let found = [with_extension(&stem, EXTENSION), theirs].into_iter().find(|path| path.is_file());
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, "open array", "there is no array of this name"))
}

/// Fails if a symbolic link leads out of the container.
fn check_above(root: &Path, stem: &Path) -> Result<()> {
    for above in stem.ancestors().skip(1).take_while(|above| *above != root) {
        if above.is_symlink() {
            return Err(
                Error::new(ErrorKind::Corrupt, "open array", "a symbolic link is no group").target(above.display())
            );
        }
    }
    Ok(())
}
