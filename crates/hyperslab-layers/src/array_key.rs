//! Identity of an array within a container.

use hyperslab_core::Array;

/// Equal for all handles of an array, different for different arrays.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ArrayKey {
    /// Object id, for formats in which names can be moved or reused.
    Object(u64),
    Name(String),
}

impl ArrayKey {
    /// The key of an array that was opened by `name`.
    pub fn of(array: &dyn Array, name: &str) -> Self {
        array.object().map_or_else(|| Self::Name(name.into()), Self::Object)
    }
}
