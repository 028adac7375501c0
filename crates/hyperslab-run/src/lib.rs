//! Interpreter 1: executes a workload on a stack, measures every step, and verifies the data.

mod buffers;
mod busy;
mod case;
mod clock;
mod data_seed;
mod execute;
mod expected_data;
mod latency;
mod launch;
mod lookahead;
mod machine;
mod measure;
mod noise;
mod notes;
mod open_stack;
mod page_cache;
mod progress;
mod provenance;
mod rank_balance;
mod read_back;
mod recovery_format;
mod results;
mod snapshot;
mod statistics;

pub use busy::Busy;
pub use case::{Case, Outcome, run_case};
pub use execute::{RankRun, RunContext, run_rank};
pub use latency::{CallTimes, Latency, Operation};
pub use launch::{LaunchCommand, Ranks, ThreadRanks};
#[cfg(feature = "mpi")]
pub use launch::{Processes, World, rank_of_job, serve};
pub use machine::{Machine, memory_available, space_available};
pub use measure::RankMeasurement;
pub use open_stack::{on_threads, open_stack, single_rank};
pub use page_cache::page_cache_control;
pub use progress::Progress;
pub use provenance::{Build, Provenance, ResolvedElement, load_averages};
pub use rank_balance::RankBalance;
pub use recovery_format::{orphan_format, plain_format};
pub use results::{CaseResult, PredictedTime, RESULTS_VERSION, Repetition, Results, Status, Verified};
pub use statistics::Spread;
