//! Capabilities of formats.

use crate::{Filter, FilterSet};

/// Capabilities of a format. Code decides by these, never by a format's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Caps {
    /// What can be stored.
    pub data: DataModel,
    /// How transfers are executed.
    pub execution: Execution,
    /// Filters that arrays may ask for.
    pub filters: FilterSet,
}

/// What a format can store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DataModel {
    /// Written data can be read back. (Not so for `null`.)
    pub readable: bool,
    /// Data survives the process.
    pub persistent: bool,
    /// Arrays can be resized, up to `max_shape`.
    pub resize: bool,
    /// Resizable arrays share one unlimited dimension: resizing one resizes all.
    pub shared_growth: bool,
    /// Arrays can be chunked.
    pub chunks: bool,
    /// Compound datatypes keep their field names.
    pub compound: bool,
    /// Arrays may hold strings of variable length ([`Datatype::VariableString`](crate::Datatype::VariableString)).
    pub strings: bool,
    /// A write may transfer some fields of a compound and keep the others.
    pub partial_fields: bool,
    /// Fill value for elements never written.
    pub fill_value: bool,
    /// Attributes on the root, groups and arrays.
    pub attributes: bool,
    /// Groups are stored as objects, so that empty ones exist.
    pub groups: bool,
    /// Arrays keep the names of their dimensions.
    pub dimension_names: bool,
    /// Most dimensions of an array.
    pub max_rank: usize,
}

/// How a format executes transfers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Execution {
    /// Ranks may write disjoint elements of one array concurrently.
    pub concurrent_writers: bool,
    /// The library serialises the calls of all ranks of a process.
    pub serialises_ranks: bool,
    /// Collective transfers are implemented differently from independent ones.
    pub collective: bool,
    /// Ranks may be separate processes.
    pub many_processes: bool,
    /// [`Array::prefetch`](crate::Array::prefetch) has an effect.
    pub prefetch: bool,
    /// Rewriting a filtered chunk may allocate it elsewhere and free its old address for reuse, while the chunk index on disk
    /// is updated by the next flush only: a crash before that flush can lose whole chunks.
    pub relocates_chunks: bool,
}

impl Caps {
    /// Whether arrays may ask for the filter.
    pub fn has(&self, filter: &Filter) -> bool {
        self.filters.contains(filter)
    }
}
