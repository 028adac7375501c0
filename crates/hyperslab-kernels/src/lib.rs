//! Who asks for I/O: functions from parameters to a [`Workload`](hyperslab_core::workload::Workload), never to I/O.

mod inputs;
pub mod ior;
mod one_file;
mod particles;
mod sweep;
mod tiles;

pub use inputs::inputs;
pub use particles::{FilePattern, MemoryPattern, Part, Particles};
pub use sweep::{MAX_SIZES, Sweep};
pub use tiles::{DatasetRank, Scaling, Slowest, Tiles};
