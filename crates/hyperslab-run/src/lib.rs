//! Interpreter 1: executes a workload on a stack, measures every step, and verifies the data.

mod lookahead;
mod snapshot;
mod latency;
mod case;
mod clock;
mod expected_data;
mod buffers;
mod execute;
mod launch;
mod machine;
mod measure;
mod noise;
mod notes;
mod data_seed;
mod page_cache;
mod progress;
mod rank_balance;
mod read_back;
mod results;
mod open_stack;
mod statistics;

pub use latency::{CallTimes, Latency, Operation};
pub use case::{Cache, Case, Outcome, run_case};
pub use execute::{RankRun, RunContext, run_rank};
pub use launch::{LaunchCommand, Ranks, ThreadRanks};
#[cfg(feature = "mpi")]
pub use launch::{Processes, World, rank_of_job, serve};
pub use machine::{Machine, memory_available, space_available};
pub use measure::RankMeasurement;
pub use page_cache::page_cache_control;
pub use progress::Progress;
pub use rank_balance::RankBalance;
pub use results::{CaseResult, RESULTS_VERSION, Repetition, Results, Status, Verified};
pub use open_stack::{on_threads, open_stack, single_rank};
pub use statistics::Spread;
