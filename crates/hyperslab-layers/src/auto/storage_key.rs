//! Identifies storage whose times are comparable: file system and stack.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// A file system and the stack above it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StorageKey {
    /// Type and size of the file system, which survive reboots.
    pub file_system: String,
    /// The stack below this layer.
    pub stack: String,
}

impl StorageKey {
    /// The key of a container, which need not exist.
    pub fn of(path: &Path, stack: &str) -> Self {
        let about = path.ancestors().map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
        let about = about.filter_map(|folder| rustix::fs::statfs(folder).ok()).next();
        let file_system = about.map_or("unknown".into(), |about| {
            let bytes = about.f_blocks.saturating_mul(about.f_bsize as u64);
            format!("{:x}-{bytes}", about.f_type)
        });
        Self { file_system, stack: stack.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_does_not_exist_has_the_place_of_its_folder() {
        let place = |path: &str| StorageKey::of(Path::new(path), "posix");
        assert_eq!(place("/proc/no/such/thing"), place("/proc/self"));
        assert_ne!(place("/proc/x").file_system, "unknown");
        assert_ne!(place("/proc/x"), StorageKey::of(Path::new("/proc/x"), "hdf5"));
        assert_eq!(place("x.h5"), place("./x.h5"));
    }
}
