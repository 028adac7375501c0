//! The directory of a store: listing, and removal that never deletes foreign files.

use super::atomic_files::PARTIAL;
use super::nodes::{self, METADATA_FILES, NodeKind};
use hyperslab_core::{Error, ErrorKind, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// How deep groups and chunk directories are followed.
pub const MAX_DEPTH: usize = 64;

fn io(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::io(operation, error).target(path.display())
}

/// What lies in a directory: names with whether each is a directory (`Some(true)`), a regular file (`Some(false)`), or
/// neither. Symbolic links are neither: they are never followed.
fn entries(directory: &Path) -> Result<Vec<(PathBuf, Option<bool>)>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(directory).map_err(io("list", directory))? {
        let entry = entry.map_err(io("list", directory))?;
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => out.push((entry.path(), Some(true))),
            Ok(kind) if kind.is_file() => out.push((entry.path(), Some(false))),
            Ok(_) => out.push((entry.path(), None)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(io("list", &entry.path())(error)),
        }
    }
    out.sort();
    Ok(out)
}

fn too_deep(path: &Path) -> Error {
    let message = format!("directories nest deeper than {MAX_DEPTH}");
    Error::new(ErrorKind::Corrupt, "list", message).target(path.display())
}

/// Every regular file below `directory`, sorted; files under construction included.
pub fn regular_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let mut waiting = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(too_deep(&directory));
        }
        for (path, is_directory) in entries(&directory)? {
            match is_directory {
                Some(true) => waiting.push((path, depth + 1)),
                Some(false) => out.push(path),
                None => {}
            }
        }
    }
    out.sort();
    Ok(out)
}

/// Names of all arrays below `root`, sorted; `""` when the root itself is an array. An object whose metadata cannot
/// be read is an error, not an omission.
pub fn arrays(root: &Path) -> Result<Vec<String>> {
    Ok(objects(root)?.0)
}

/// Names of all groups below `root`, itself not included, sorted.
pub fn groups(root: &Path) -> Result<Vec<String>> {
    Ok(objects(root)?.1)
}

/// Names of arrays and of groups.
fn objects(root: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let (mut out, mut groups) = (Vec::new(), Vec::new());
    let mut waiting = vec![(root.to_owned(), String::new(), 0)];
    while let Some((directory, name, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(too_deep(&directory));
        }
        match nodes::read(&directory)?.map(|node| node.kind) {
            Some(NodeKind::Array) => {
                out.push(name);
                continue;
            }
            Some(NodeKind::Group) if name.is_empty() => {}
            Some(NodeKind::Group) => groups.push(name.clone()),
            None => continue,
        }
        for (path, is_directory) in entries(&directory)? {
            let child = path.file_name().and_then(|child| child.to_str());
            if let (Some(true), Some(child)) = (is_directory, child) {
                let name = if name.is_empty() { child.to_owned() } else { format!("{name}/{child}") };
                waiting.push((path, name, depth + 1));
            }
        }
    }
    out.sort();
    groups.sort();
    Ok((out, groups))
}

/// Fails if the path is not a Zarr store.
pub fn check_store(path: &Path, operation: &'static str) -> Result<()> {
    let meta = fs::symlink_metadata(path).map_err(io(operation, path))?;
    let is_store = if meta.is_symlink() {
        fs::metadata(path).map_err(io(operation, path))?.is_dir() && has_marker(path)
    } else {
        meta.is_dir() && has_marker(path)
    };
    if is_store {
        return Ok(());
    }
    Err(Error::invalid(operation, "this is no Zarr store: it has no zarr.json, .zgroup or .zarray")
        .target(path.display())
        .hint("check the path"))
}

fn has_marker(path: &Path) -> bool {
    ["zarr.json", ".zgroup", ".zarray"].iter().any(|file| path.join(file).is_file())
}

/// Removes the store at `path`. Everything in it is looked at first; if anything is not part of a Zarr store, or
/// the path is a symbolic link, nothing is removed.
pub fn remove(path: &Path, operation: &'static str) -> Result<()> {
    let meta = fs::symlink_metadata(path).map_err(io(operation, path))?;
    if meta.is_symlink() {
        return Err(Error::invalid(operation, "a symbolic link; what it points to is left alone")
            .target(path.display())
            .hint("name the store itself"));
    }
    check_store(path, operation)?;
    check_only_zarr(path, operation)?;
    fs::remove_dir_all(path).map_err(io(operation, path))
}

fn check_only_zarr(root: &Path, operation: &'static str) -> Result<()> {
    let foreign = |path: &Path| {
        Error::invalid(operation, "this is not part of a Zarr store, so nothing was removed")
            .target(path.display())
            .hint("move it away, or remove the directory by hand")
    };
    let mut waiting = vec![(root.to_owned(), false, 0)];
    while let Some((directory, in_array, depth)) = waiting.pop() {
        if depth > MAX_DEPTH {
            return Err(too_deep(&directory));
        }
        let is_array = in_array
            || directory.join(".zarray").is_file()
            || matches!(nodes::read(&directory), Ok(Some(node)) if node.kind == NodeKind::Array);
        let listed = entries(&directory)?;
        for (path, is_directory) in &listed {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("/");
            let belongs = match is_directory {
                // A directory without metadata holds chunks, or nothing yet.
                Some(true) if is_array => chunk_like(name),
                Some(true) => has_marker(path) || is_empty_tree(path, depth)?,
                Some(false) => {
                    name.ends_with(PARTIAL) || METADATA_FILES.contains(&name) || is_array && chunk_like(name)
                }
                None => false,
            };
            if !belongs {
                return Err(foreign(path));
            }
        }
        let directories = listed.into_iter().filter(|(_, is_directory)| *is_directory == Some(true));
        waiting.extend(directories.map(|(path, _)| (path, is_array, depth + 1)));
    }
    Ok(())
}

fn chunk_like(name: &str) -> bool {
    let numbers = name.strip_prefix('c').unwrap_or(name);
    numbers.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_empty_tree(path: &Path, depth: usize) -> Result<bool> {
    if depth > MAX_DEPTH {
        return Err(too_deep(path));
    }
    for (entry, is_directory) in entries(path)? {
        if is_directory != Some(true) || !is_empty_tree(&entry, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}
