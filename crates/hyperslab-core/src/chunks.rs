//! An array cut into chunks, and selections cut along them.

mod chunk_subset;
mod grid;
mod split;

pub use chunk_subset::ChunkSubset;
pub use grid::ChunkGrid;
pub use split::ChunkSubsets;
