//! Something to try: other storage, a mode of `hyperslab run`, or both.

use super::recorded_program::ArrayGroup;
use hyperslab_core::{DatasetOverride, FileOverride, Filter, LayoutOverride, StorageOverrides};

/// What is tried in the place of what the program does.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Proposal {
    /// Changes of groups, by their number.
    pub changes: Vec<(usize, StorageChange)>,
    /// Bytes of the chunk cache of every dataset.
    pub cache: Option<u64>,
    /// Objects begin at multiples of it.
    pub align: Option<u64>,
    /// Modes of the connector; `None` without it.
    pub modes: Option<&'static str>,
    /// Predicted seconds of I/O, if there is a model of it.
    pub predicted: Option<f64>,
}

/// What is changed of datasets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageChange {
    /// Where elements are put.
    pub layout: Option<LayoutOverride>,
    /// All filters.
    pub filters: Option<Vec<Filter>>,
}

impl Proposal {
    /// Whether storage stays as it is.
    pub fn keeps_storage(&self) -> bool {
        self.changes.is_empty() && self.cache.is_none() && self.align.is_none()
    }

    /// The same below modes of the connector.
    pub fn with_modes(&self, modes: &'static str) -> Self {
        Self { modes: Some(modes), predicted: None, ..self.clone() }
    }

    /// In the words of the connector. `files`: names of all files; those of netCDF set caches for each dataset.
    pub fn overrides(&self, groups: &[ArrayGroup], files: &[String], each_dataset: bool) -> StorageOverrides {
        let mut overrides = StorageOverrides::default();
        let change =
            |number: usize| self.changes.iter().find(|(changed, _)| *changed == number).map(|(_, change)| change);
        for (number, group) in groups.iter().enumerate() {
            let change = change(number);
            let cache = self.cache.filter(|_| each_dataset && self.is_chunked(number, group));
            if change.is_none() && cache.is_none() {
                continue;
            }
            for (file, name) in &group.datasets {
                overrides.datasets.push(DatasetOverride {
                    file: file.clone(),
                    name: name.clone(),
                    layout: change.and_then(|change| change.layout.clone()),
                    filters: change.and_then(|change| change.filters.clone()),
                    cache,
                });
            }
        }
        let cache = self.cache.filter(|_| !each_dataset);
        if cache.is_some() || self.align.is_some() {
            let about = |file: &String| FileOverride { file: file.clone(), cache, align: self.align };
            overrides.files = files.iter().map(about).collect();
        }
        overrides
    }

    /// Whether datasets of a group are in chunks then.
    pub fn is_chunked(&self, number: usize, group: &ArrayGroup) -> bool {
        let change = self.changes.iter().find(|(changed, _)| *changed == number);
        match change.and_then(|(_, change)| change.layout.as_ref()) {
            Some(LayoutOverride::Chunked(_)) => true,
            Some(LayoutOverride::Contiguous) => false,
            None => group.spec.chunk.is_some(),
        }
    }
}
