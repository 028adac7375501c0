//! Interpreter 1: executes a workload on a stack, measures every step, and verifies the data.

mod ahead;
mod aside;
mod calls;
mod case;
mod clock;
mod content;
mod data;
mod execute;
mod launch;
mod machine;
mod measure;
mod noise;
mod notes;
mod origin;
mod page_cache;
mod progress;
mod ranks;
mod read_back;
mod results;
mod stack;
mod statistics;

pub use calls::{CallTimes, Latency, Operation};
pub use case::{Cache, Case, Outcome, run_case};
pub use execute::{RankRun, RunContext, run_rank};
pub use launch::{LaunchCommand, Ranks, ThreadRanks};
#[cfg(feature = "mpi")]
pub use launch::{Processes, World, rank_of_job, serve};
pub use machine::{Machine, memory_available, space_available};
pub use measure::RankMeasurement;
pub use page_cache::page_cache_control;
pub use progress::Progress;
pub use ranks::RankFigures;
pub use results::{CaseResult, RESULTS_VERSION, Repetition, Results, Status, Verified};
pub use stack::{alone, on_threads, resolve};
pub use statistics::Spread;
