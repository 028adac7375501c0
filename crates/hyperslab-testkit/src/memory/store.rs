//! What one container holds.

use hyperslab_core::{ArraySpec, Attribute, Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Arrays, groups and attributes by path.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) arrays: BTreeMap<String, Stored>,
    pub(crate) groups: BTreeSet<String>,
    /// By object and name.
    pub(crate) attributes: BTreeMap<(String, String), Attribute>,
}

/// One array: what it is, and the elements that were written.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) spec: ArraySpec,
    pub(crate) elements: BTreeMap<Vec<u64>, Vec<u8>>,
}

impl Stored {
    /// The bytes of an element that was never written.
    pub(crate) fn fill(&self) -> Vec<u8> {
        self.spec.fill_value.clone().unwrap_or_else(|| vec![0; self.spec.dtype.size() as usize])
    }
}

impl Store {
    /// Whether `object` is the root, a group or an array.
    pub(crate) fn has(&self, object: &str) -> bool {
        object.is_empty() || self.groups.contains(object) || self.arrays.contains_key(object)
    }

    /// Creates the groups above `name`.
    pub(crate) fn create_parents(&mut self, name: &str) -> Result<()> {
        for (end, _) in name.match_indices('/') {
            let parent = &name[..end];
            if self.arrays.contains_key(parent) {
                return Err(Error::invalid("create", format!("{parent:?} is an array, not a group")).target(name));
            }
            self.groups.insert(parent.into());
        }
        Ok(())
    }
}

/// Refuses paths that are not `a/b/c`.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let bad_part = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains('\0');
    if name.split('/').any(bad_part) {
        return Err(Error::invalid("check name", format!("{name:?} is not a path of the form a/b/c")));
    }
    Ok(())
}

/// What is missing where.
pub(crate) fn not_found(operation: &'static str, what: &str) -> Error {
    Error::new(ErrorKind::NotFound, operation, "there is no such object").backend("memory").target(format!("{what:?}"))
}
