//! An array cut into chunks, and selections cut along them.

mod grid;
mod part;
mod split;

pub use grid::ChunkGrid;
pub use part::ChunkPart;
pub use split::ChunkParts;
