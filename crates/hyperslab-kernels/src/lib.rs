//! Who asks for I/O: functions from parameters to a [`Workload`](hyperslab_core::workload::Workload), never to I/O.

mod make_inputs;
mod particles;
mod shared_file;
mod sweep;
mod tiles;

pub use make_inputs::inputs;
pub use particles::{FilePattern, MemoryPattern, Part, Particles};
pub use sweep::{MAX_SIZES, Sweep};
pub use tiles::{DatasetRank, Scaling, SlowestDim, Tiles};
