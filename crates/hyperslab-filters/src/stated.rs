//! A filter as an HDF5 file states it.

/// One filter of an array, in the words of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The registered number.
    pub id: u32,
    /// Whether a chunk that the filter cannot handle is stored without it (and says so in its mask).
    pub optional: bool,
    /// Its parameters.
    pub parameters: Vec<u32>,
}
