//! Attributes, which `.npy` files have no place for: in `attributes.json` in the container, by object and name, `""` being the
//! container. Values are written as in descriptions of `posix` (docs/posix-format.md).

use crate::posix::metadata::{StoredAttribute, load, store};
use hyperslab_core::{Attribute, Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The file's name.
pub(super) const FILE: &str = "attributes.json";

type Attributes = BTreeMap<String, BTreeMap<String, StoredAttribute>>;

fn path(root: &Path) -> PathBuf {
    root.join(FILE)
}

fn all(root: &Path) -> Result<Attributes> {
    let path = path(root);
    let bytes = match load(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Attributes::new()),
        other => other?,
    };
    serde_json::from_slice(&bytes).map_err(|cause| {
        let message = format!("it holds no attributes of this format: {cause}");
        Error::new(ErrorKind::Corrupt, "read attributes", message).target(path.display())
    })
}

/// Makes the file, empty. Returns its path.
pub(super) fn make(root: &Path) -> Result<PathBuf> {
    store(&path(root), &Attributes::new()).map(|()| path(root))
}

/// Stores one. Returns the path of the file.
pub(super) fn set(root: &Path, object: &str, name: &str, value: &Attribute) -> Result<PathBuf> {
    value.check()?;
    if name.is_empty() {
        return Err(Error::invalid("set attribute", "an attribute needs a name"));
    }
    let mut all = all(root)?;
    all.entry(object.to_owned()).or_default().insert(name.to_owned(), value.into());
    store(&path(root), &all).map(|()| path(root))
}

/// One of an object's.
pub(super) fn get(root: &Path, object: &str, name: &str) -> Result<Attribute> {
    let found = all(root)?.get_mut(object).and_then(|attributes| attributes.remove(name));
    let found = found
        .ok_or_else(|| Error::new(ErrorKind::NotFound, "read attribute", format!("there is no attribute {name:?}")))?;
    found.restore()
}

/// The names of an object's.
pub(super) fn list(root: &Path, object: &str) -> Result<Vec<String>> {
    Ok(all(root)?.remove(object).map(|attributes| attributes.into_keys().collect()).unwrap_or_default())
}
