//! h5bench's configuration files: workflows of patterns, read as they are.

mod pattern;
mod values;
mod workflow;

pub use pattern::{Pattern, PatternKind};
pub use workflow::Workflow;
