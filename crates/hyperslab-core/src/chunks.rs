//! Chunk grids, and selections split by chunk.

mod chunk_subset;
mod grid;
mod split;

pub use chunk_subset::ChunkSubset;
pub use grid::ChunkGrid;
pub use split::ChunkSubsets;
