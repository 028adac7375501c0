//! What an array is known by among those of a container.

use hyperslab_core::Array;

/// Equal for all handles of an array, and never that of another array.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ArrayKey {
    /// Of formats whose names may be moved, or given to new arrays.
    Object(u64),
    Name(String),
}

impl ArrayKey {
    /// Of an array that was opened by this name.
    pub fn of(array: &dyn Array, name: &str) -> Self {
        array.object().map_or_else(|| Self::Name(name.into()), Self::Object)
    }
}
