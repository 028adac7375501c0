//! Results files as pages, pictures and tables for people. Reads results (docs/results-format.md) and recordings
//! (docs/workload-format.md); runs nothing.
//!
//! [`Input::load`] reads a file, [`Report::of`] works out everything that is shown, and the functions of [`Form`] only set
//! it: whatever number a page shows is in the report, which [`Form::Json`] prints whole. [`table`] and [`terminal`] set text for
//! terminals, of all commands.

mod activity;
mod cases;
mod changes;
mod curves;
mod escape;
mod figures;
mod form;
mod groups;
mod input;
mod page;
mod provenance;
pub mod ratio;
mod record;
mod report;
mod svg;
pub mod table;
pub mod terminal;
mod verdict;
mod words;

pub use form::Form;
pub use input::{Input, InputError, Recording};
pub use page::SCRIPT_HASH;
pub use record::{CaseRecord, RunRecord};
pub use report::{Claim, Report};
