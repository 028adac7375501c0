//! The container as a directory: what is in it, and taking it away.

use super::metadata::{ArrayMetadata, GroupMetadata, Of, decode, load};
use super::names::{self, DATA, DESCRIPTION, INDEX, MARK, RANKS, UNFINISHED, with_extension};
use hyperslab_core::{Error, ErrorKind, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// How deep groups may nest. The walk is bounded by it.
const DEEPEST: usize = 64;

/// Everything found in a container. Symbolic links are never followed and never belong to it.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Names of arrays.
    pub arrays: Vec<String>,
    /// Names of groups, but for the root.
    pub groups: Vec<String>,
    /// Files that belong to the container, but for the mark of the root.
    pub files: Vec<PathBuf>,
    /// Directories below the root that belong to the container, outer before inner.
    pub directories: Vec<PathBuf>,
    /// The first thing found that does not belong to it.
    pub foreign: Option<PathBuf>,
}

/// Refuses what is not a container of this format and version.
pub(crate) fn check_container(root: &Path) -> Result<GroupMetadata> {
    let refuse = |kind, message: String| Error::new(kind, "open", message).backend("posix").target(root.display());
    let about =
        std::fs::metadata(root).map_err(|cause| Error::io("open", cause).backend("posix").target(root.display()))?;
    if !about.is_dir() {
        return Err(refuse(ErrorKind::InvalidInput, "it is no directory, so no container of this format".into()));
    }
    let mark = root.join(MARK);
    match load(&mark).and_then(|bytes| decode(&bytes, Of::Container, &mark)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(refuse(
            ErrorKind::InvalidInput,
            format!("there is no {MARK} in it, so it is no container of this format"),
        )),
        other => other.map_err(|error| error.backend("posix")),
    }
}

/// Walks the container at `root`, whose mark has been checked.
pub(crate) fn contents(root: &Path) -> Result<Contents> {
    let mut out = Contents::default();
    walk(root, "", 0, &mut out).map_err(|error| error.backend("posix").target(root.display()))?;
    out.arrays.sort();
    out.groups.sort();
    Ok(out)
}

fn walk(directory: &Path, group: &str, depth: usize, out: &mut Contents) -> Result<()> {
    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(directory).map_err(|cause| Error::io("list", cause))? {
        let entry = entry.map_err(|cause| Error::io("list", cause))?;
        let kind = entry.file_type().map_err(|cause| Error::io("list", cause))?;
        names.insert((entry.file_name(), kind.is_file(), kind.is_dir()));
    }
    let join = |name: &str| if group.is_empty() { name.to_string() } else { format!("{group}/{name}") };
    let described: BTreeSet<String> = names
        .iter()
        .filter(|(_, is_file, _)| *is_file)
        .filter_map(|(name, ..)| name.to_str()?.strip_suffix(".json").map(str::to_string))
        .filter(|stem| {
            names::array_from_file(stem).is_some() && is_description(&directory.join(format!("{stem}.json")))
        })
        .collect();
    for (name, is_file, is_dir) in &names {
        let path = directory.join(name);
        let text = name.to_str().unwrap_or("");
        let (stem, extension) = text.rsplit_once('.').unwrap_or((text, ""));
        if *is_file {
            match extension {
                _ if text == MARK => {
                    if depth > 0 {
                        out.files.push(path);
                    }
                }
                DESCRIPTION if described.contains(stem) => {
                    out.arrays.extend(names::array_from_file(stem).map(|name| join(&name)));
                    out.files.push(path);
                }
                DATA if described.contains(stem) => out.files.push(path),
                UNFINISHED if stem.ends_with(".json") => out.files.push(path),
                _ => out.foreign = out.foreign.take().or(Some(path)),
            }
        } else if *is_dir && extension == RANKS && described.contains(stem) {
            out.directories.push(path.clone());
            walk_ranks(&path, out)?;
        } else if *is_dir
            && depth < DEEPEST
            && let Some(name) = names::group_from_file(text)
            && is_group(&path)
        {
            out.directories.push(path.clone());
            out.groups.push(join(&name));
            walk(&path, &join(&name), depth + 1, out)?;
        } else {
            out.foreign = out.foreign.take().or(Some(path));
        }
    }
    Ok(())
}

fn walk_ranks(directory: &Path, out: &mut Contents) -> Result<()> {
    for entry in std::fs::read_dir(directory).map_err(|cause| Error::io("list", cause))? {
        let entry = entry.map_err(|cause| Error::io("list", cause))?;
        let is_file = entry.file_type().map_err(|cause| Error::io("list", cause))?.is_file();
        let name = entry.file_name();
        if is_file && name.to_str().and_then(rank_of_file).is_some() {
            out.files.push(entry.path());
        } else {
            out.foreign = out.foreign.take().or(Some(entry.path()));
        }
    }
    Ok(())
}

/// The rank and extension of `3.raw` or `3.index`.
pub(crate) fn rank_of_file(name: &str) -> Option<(u32, &str)> {
    let (digits, extension) = name.split_once('.')?;
    let rank: u32 = digits.parse().ok()?;
    (rank.to_string() == digits && (extension == DATA || extension == INDEX)).then_some((rank, extension))
}

fn is_description(path: &Path) -> bool {
    load(path).and_then(|bytes| decode::<ArrayMetadata>(&bytes, Of::Array, path)).is_ok()
}

/// Whether the directory is a group of ours: it has the mark, or is empty, as an interrupted removal leaves it.
pub(crate) fn is_group(directory: &Path) -> bool {
    let mark = directory.join(MARK);
    load(&mark).and_then(|bytes| decode::<GroupMetadata>(&bytes, Of::Group, &mark)).is_ok()
        || std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
}

/// Removes the container at `root`. Refuses, and removes nothing, if it is a symbolic link, no container of this
/// format, or holds anything that does not belong to it. An interrupted removal can be repeated.
pub(crate) fn remove(root: &Path) -> Result<()> {
    let fail = |path: &Path, cause| Error::io("remove", cause).backend("posix").target(path.display());
    let about = std::fs::symlink_metadata(root).map_err(|cause| fail(root, cause))?;
    if about.is_symlink() {
        return Err(Error::invalid("remove", "it is a symbolic link").backend("posix").target(root.display()));
    }
    check_container(root)?;
    let contents = contents(root)?;
    if let Some(foreign) = contents.foreign {
        return Err(Error::invalid("remove", format!("{} does not belong to the container", foreign.display()))
            .backend("posix")
            .target(root.display())
            .hint("move it elsewhere, then repeat"));
    }
    // Marks and descriptions say what belongs to the container, so they go after the data; the root's own goes last.
    let (described, data): (Vec<_>, Vec<_>) =
        contents.files.iter().partition(|path| path.extension().is_some_and(|e| e == DESCRIPTION));
    for path in data {
        std::fs::remove_file(path).map_err(|cause| fail(path, cause))?;
    }
    let is_ranks = |path: &&PathBuf| path.extension().is_some_and(|e| e == RANKS);
    for path in contents.directories.iter().filter(is_ranks) {
        std::fs::remove_dir(path).map_err(|cause| fail(path, cause))?;
    }
    for path in described.iter().filter(|path| !path.ends_with(MARK)) {
        std::fs::remove_file(path).map_err(|cause| fail(path, cause))?;
    }
    for path in contents.directories.iter().rev().filter(|path| !is_ranks(path)) {
        let mark = path.join(MARK);
        match std::fs::remove_file(&mark) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(fail(&mark, cause)),
            _ => {}
        }
        std::fs::remove_dir(path).map_err(|cause| fail(path, cause))?;
    }
    let mark = root.join(MARK);
    std::fs::remove_file(&mark).map_err(|cause| fail(&mark, cause))?;
    std::fs::remove_dir(root).map_err(|cause| fail(root, cause))
}

/// All files of the container.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    check_container(root)?;
    let mut files = contents(root)?.files;
    files.push(root.join(MARK));
    files.sort();
    Ok(files)
}

/// The data file of an array in the shared form.
pub(crate) fn data_file(stem: &Path) -> PathBuf {
    with_extension(stem, DATA)
}

/// The description of an array.
pub(crate) fn metadata_file(stem: &Path) -> PathBuf {
    with_extension(stem, DESCRIPTION)
}
