//! Who asks for I/O: functions from parameters to a [`Workload`](hyperslab_core::workload::Workload), never to I/O.

mod amrex;
mod attributes;
mod batches;
mod bdcats;
mod btio;
mod cosmoflow;
mod direction;
mod e3sm;
mod flash;
pub mod ior;
mod macsio;
mod make_inputs;
mod named;
mod openpmd;
mod particles;
mod random;
mod shared_file;
mod sweep;
mod tiles;
mod vl_stream;
mod vpic;

pub use amrex::Amrex;
pub use btio::{Btio, Calls};
pub use cosmoflow::{CosmoFlow, ReadUnit};
pub use e3sm::{Decomposition, E3sm, E3smCase, E3smLayout, History, Requests, Run, compact};
pub use flash::{Flash, FlashFile};
pub use macsio::{Macsio, ParallelFiles};
pub use make_inputs::inputs;
pub use named::{Files, Growth, Kernel, Phase, Values, kernels};
pub use openpmd::{Encoding, OpenPmd, ReadPattern};
pub use particles::{FilePattern, MemoryPattern, ParticleSubset, Particles};
pub use sweep::{MAX_SIZES, Sweep};
pub use tiles::{DatasetRank, Scaling, SlowestDim, Tiles};
pub use vl_stream::Stream;
