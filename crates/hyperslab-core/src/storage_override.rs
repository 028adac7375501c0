//! Storage that datasets get in the place of what their program asks for, so that a program can be tried with other chunks
//! without being changed.

use crate::{Dims, Filter};
use serde::{Deserialize, Serialize};

/// What is overridden, of all files. Everything else stays as the program asks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageOverrides {
    /// Datasets that the program creates or opens.
    #[serde(default)]
    pub datasets: Vec<DatasetOverride>,
    /// Files that it creates or opens.
    #[serde(default)]
    pub files: Vec<FileOverride>,
}

/// What is overridden of a dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetOverride {
    /// The last part of the file's path.
    pub file: String,
    /// The dataset's path in the file, without the first `/`.
    pub name: String,
    /// Where its elements are put when it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<LayoutOverride>,
    /// All its filters when it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Vec<Filter>>,
    /// Bytes of its chunk cache, also if the program asks for another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<u64>,
}

/// Where the elements of a dataset are put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutOverride {
    /// One after the other.
    Contiguous,
    /// In chunks of these extents.
    Chunked(Dims),
}

/// What is overridden of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileOverride {
    /// The last part of its path.
    pub file: String,
    /// Bytes of the chunk cache of each dataset that does not ask for one itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<u64>,
    /// Objects of at least so many bytes begin at multiples of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub align: Option<u64>,
}

impl StorageOverrides {
    /// Whether nothing is overridden.
    pub fn is_empty(&self) -> bool {
        self.datasets.is_empty() && self.files.is_empty()
    }

    /// What is overridden of a dataset; leading and doubled `/` of its path make no difference.
    pub fn of_dataset(&self, file: &str, path: &str) -> Option<&DatasetOverride> {
        let parts = |path: &str| path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let wanted = parts(path);
        self.datasets.iter().find(|one| one.file == file && parts(&one.name) == wanted)
    }

    /// What is overridden of a file.
    pub fn of_file(&self, file: &str) -> Option<&FileOverride> {
        self.files.iter().find(|one| one.file == file)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn datasets_are_found_by_their_paths() {
        let text = r#"{"datasets": [{"file": "a.h5", "name": "g/x", "layout": {"chunked": [2, 3]}, "filters": []}],
                       "files": [{"file": "a.h5", "cache": 1048576}]}"#;
        let overrides: StorageOverrides = serde_json::from_str(text).unwrap();
        let found = overrides.of_dataset("a.h5", "/g//x").unwrap();
        assert_eq!(found.layout, Some(LayoutOverride::Chunked([2, 3].into_iter().collect())));
        assert_eq!(found.filters, Some(Vec::new()));
        assert!(overrides.of_dataset("b.h5", "g/x").is_none() && overrides.of_dataset("a.h5", "x").is_none());
        assert_eq!(overrides.of_file("a.h5").unwrap().cache, Some(1 << 20));
        let again: StorageOverrides = serde_json::from_str(&serde_json::to_string(&overrides).unwrap()).unwrap();
        assert_eq!(again, overrides);
        assert!(serde_json::from_str::<StorageOverrides>(r#"{"other": 1}"#).is_err());
    }
}
