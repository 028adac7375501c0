//! Who asks for I/O: functions from parameters to a [`Workload`](hyperslab_core::workload::Workload), never to I/O.

mod particles;

pub use particles::{FilePattern, MemoryPattern, Part, Particles};
