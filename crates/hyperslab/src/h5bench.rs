//! h5bench's configuration files: workflows of benchmarks, read as they are, and its forms of output.

pub mod output;
mod part;
mod pattern;
mod striping;
mod values;
mod workflow;

pub use pattern::{Mode, Pattern, PatternKind};
pub use striping::Striping;
pub use workflow::{Benchmark, What, Workflow};
