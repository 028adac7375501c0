//! From what a user asks for to measured cases: h5bench's workflows, application kernels and recorded workloads become
//! case templates (workloads without a stack), these become planned cases on stacks, and those run into `results.json`.
//!
//! [`Plan::new`] plans and refuses, [`execute`] runs a plan, [`measure`] does both.

mod case_template;
#[cfg(test)]
mod fuzz;
mod interrupt;
mod kernels;
mod launch;
mod map_files;
mod measure;
pub mod mpi_job;
mod options;
mod plan;
mod prepare;
mod progress_bar;
pub mod provenance;
mod replay;
mod requirement;
mod run_directory;
mod schedule;
mod sweep;

pub use case_template::{CaseReport, Effect, KeepFile};
pub use interrupt::{EXIT_INTERRUPTED, stop_on_ctrl_c};
pub use kernels::{help_asked, list as kernel_list};
pub use launch::Launch;
pub use map_files::MapFiles;
pub use measure::{execute, measure};
pub use options::{BenchOptions, Compute, Launcher, Transfers};
pub use plan::{Plan, PlannedCase, Work};
pub use schedule::{Estimate, Schedule};
