//! h5bench's configuration files: workflows of benchmarks, read as they are, and its forms of output.

mod application;
mod exerciser;
pub mod exerciser_output;
pub mod filter_words;
mod metadata;
pub mod metadata_output;
pub mod output;
mod pattern;
mod striping;
mod subset;
mod values;
mod workflow;
mod workflow_keys;

pub use application::Application;
pub use exerciser::Exerciser;
pub use metadata::Metadata;
pub use pattern::{Asked, Mode, Pattern, PatternKind};
pub use striping::Striping;
pub use workflow::{Benchmark, BenchmarkKind, Workflow};
pub use workflow_keys::{WorkflowKeys, with_values};
