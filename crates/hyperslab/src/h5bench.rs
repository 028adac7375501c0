//! h5bench's configuration files: workflows of patterns, read as they are.

#[cfg_attr(not(test), expect(dead_code, reason = "not in workflows yet"))]
mod exerciser;
#[cfg_attr(not(test), expect(dead_code, reason = "not in workflows yet"))]
mod exerciser_output;
#[cfg_attr(not(test), expect(dead_code, reason = "not in workflows yet"))]
mod metadata;
#[cfg_attr(not(test), expect(dead_code, reason = "not in workflows yet"))]
mod metadata_output;
mod pattern;
mod values;
mod workflow;

pub use pattern::{Pattern, PatternKind};
pub use workflow::Workflow;
