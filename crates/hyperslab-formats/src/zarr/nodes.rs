//! Groups and arrays of a store: their metadata files, their attributes, their names.

use super::atomic_files::AtomicFiles;
use super::json;
use super::layout::Version;
use hyperslab_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value, json as literal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Group or array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Holds groups and arrays.
    Group,
    /// Holds chunks.
    Array,
}

/// The metadata of a group or array.
#[derive(Debug)]
pub struct Node {
    /// Version of its metadata.
    pub version: Version,
    /// What it is.
    pub kind: NodeKind,
    /// `zarr.json`, `.zgroup` or `.zarray`.
    pub document: Value,
    /// Its attributes.
    pub attributes: Map<String, Value>,
}

/// Names of metadata files; no object may be called so.
pub const METADATA_FILES: [&str; 5] = ["zarr.json", ".zgroup", ".zarray", ".zattrs", ".zmetadata"];

/// Held while metadata is read, changed and written back, so that no change of another thread is lost.
pub fn change_metadata() -> MutexGuard<'static, ()> {
    static CHANGE: Mutex<()> = Mutex::new(());
    CHANGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses names that no store can hold or that would leave it. The root, `""`, is fine.
pub fn check_name(name: &str) -> Result<()> {
    let bad = |why: &str| {
        Err(Error::invalid("check name", format!("{name:?} {why}")).hint("name objects like group/subgroup/array"))
    };
    if name.is_empty() {
        return Ok(());
    }
    if name.split('/').count() > super::store_dir::MAX_DEPTH {
        return bad("is too deep");
    }
    for part in name.split('/') {
        if part.is_empty() || part.chars().all(|c| c == '.') {
            return bad("has a part that is empty or only dots");
        }
        if part.contains('\0') || part.starts_with("__") {
            return bad("has a part with NUL or beginning with __, which Zarr keeps for itself");
        }
        if METADATA_FILES.contains(&part) || part.ends_with(super::atomic_files::PARTIAL) {
            return bad("has a part that is the name of a metadata or temporary file");
        }
    }
    Ok(())
}

/// The directory of an object.
pub fn directory(root: &Path, name: &str) -> PathBuf {
    name.split('/').filter(|part| !part.is_empty()).fold(root.to_owned(), |path, part| path.join(part))
}

/// The names above `name`, the root first, `name` itself not included.
pub fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    let root = (!name.is_empty()).then_some("");
    root.into_iter().chain(name.match_indices('/').map(|(at, _)| &name[..at]))
}

/// The object in a directory; `None` when nothing there is one.
pub fn read(directory: &Path) -> Result<Option<Node>> {
    let corrupt =
        |message: &str| Err(Error::new(ErrorKind::Corrupt, "read zarr metadata", message).target(directory.display()));
    if let Some(document) = json::read(&directory.join("zarr.json"))? {
        if document.get("zarr_format").and_then(Value::as_u64) != Some(3) {
            return corrupt("zarr.json does not say zarr_format 3");
        }
        let kind = match document.get("node_type").and_then(Value::as_str) {
            Some("group") => NodeKind::Group,
            Some("array") => NodeKind::Array,
            _ => return corrupt("zarr.json is neither of a group nor of an array"),
        };
        let attributes = match document.get("attributes") {
            None => Map::new(),
            Some(Value::Object(map)) => map.clone(),
            Some(_) => return corrupt("the attributes are no object"),
        };
        return Ok(Some(Node { version: Version::V3, kind, document, attributes }));
    }
    for (file, kind) in [(".zarray", NodeKind::Array), (".zgroup", NodeKind::Group)] {
        let Some(document) = json::read(&directory.join(file))? else { continue };
        if document.get("zarr_format").and_then(Value::as_u64) != Some(2) {
            return corrupt("the metadata does not say zarr_format 2");
        }
        let attributes = match json::read(&directory.join(".zattrs"))? {
            None => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => return corrupt("the attributes are no object"),
        };
        return Ok(Some(Node { version: Version::V2, kind, document, attributes }));
    }
    Ok(None)
}

/// Writes the metadata of an object. The caller holds [`change_metadata`].
pub fn write(files: &AtomicFiles, directory: &Path, node: &Node) -> Result<()> {
    match node.version {
        Version::V3 => {
            let mut document = node.document.clone();
            if let Some(object) = document.as_object_mut() {
                object.insert("attributes".into(), Value::Object(node.attributes.clone()));
            }
            json::write(files, &directory.join("zarr.json"), &document)
        }
        Version::V2 => {
            // Attributes first: an array exists once `.zarray` does, and is complete then.
            let attributes = directory.join(".zattrs");
            if node.attributes.is_empty() {
                files.remove(&attributes)?;
            } else {
                json::write(files, &attributes, &Value::Object(node.attributes.clone()))?;
            }
            let file = if node.kind == NodeKind::Array { ".zarray" } else { ".zgroup" };
            json::write(files, &directory.join(file), &node.document)
        }
    }
}

/// A group without attributes.
pub fn new_group(version: Version) -> Node {
    let document = match version {
        Version::V2 => literal!({"zarr_format": 2}),
        Version::V3 => literal!({"zarr_format": 3, "node_type": "group", "attributes": {}}),
    };
    Node { version, kind: NodeKind::Group, document, attributes: Map::new() }
}

/// Removes copies of metadata that groups above `name` (and `name` itself) keep; a change would make them lie.
/// The caller holds [`change_metadata`].
pub fn drop_consolidated(files: &AtomicFiles, name: &str) -> Result<()> {
    for group in ancestors(name).chain([name]) {
        let directory = directory(files.root(), group);
        files.remove(&directory.join(".zmetadata"))?;
        let Some(mut node) = read(&directory)? else { continue };
        let had = node.document.as_object_mut().and_then(|object| object.remove("consolidated_metadata"));
        if had.is_some_and(|copy| !copy.is_null()) {
            write(files, &directory, &node)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_store() {
        for good in ["", "a", "a/b.c/d e", "c", "0"] {
            check_name(good).unwrap();
        }
        for bad in ["/a", "a/", "a//b", "..", "a/../b", ".", "zarr.json", "a/.zarray", "__x", "a\0", "x.partial"] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert_eq!(ancestors("a/b/c").collect::<Vec<_>>(), ["", "a", "a/b"]);
        assert_eq!(ancestors("").count(), 0);
    }
}
