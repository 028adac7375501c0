//! What the ranks of a run are: threads of this process, processes that a launcher starts, or the MPI job that this
//! process is part of.

mod command;
#[cfg(feature = "mpi")]
mod job;
#[cfg(feature = "mpi")]
mod processes;
#[cfg(feature = "mpi")]
mod world;

pub use command::LaunchCommand;
#[cfg(feature = "mpi")]
pub use processes::Processes;
#[cfg(feature = "mpi")]
pub use world::{World, rank_of_job, serve};

use crate::execute::{RankRun, RunContext, run_rank};
use crate::read_back::read_back;
use hyperslab_comm::Threads;
use hyperslab_core::{Communicator, Reduce, Result};
use std::fmt::Debug;
use std::sync::Arc;

/// A way to make ranks.
pub trait Ranks: Debug {
    /// The word for it in results.
    fn name(&self) -> &'static str;
    /// Whether all ranks share this process.
    fn one_process(&self) -> bool;
    /// Plays the workload once on all its ranks, and verifies if that is asked. Returns what each rank brings home.
    fn run(&self, context: &RunContext<'_>) -> Result<Vec<RankRun>>;
}

/// Ranks that are threads of this process.
#[derive(Debug, Clone, Copy)]
pub struct ThreadRanks;

impl Ranks for ThreadRanks {
    fn name(&self) -> &'static str {
        "threads"
    }

    fn one_process(&self) -> bool {
        true
    }

    fn run(&self, context: &RunContext<'_>) -> Result<Vec<RankRun>> {
        Threads::run(context.workload.header.ranks, |comm| play(context, &comm))
    }
}

/// One rank's part of a run: all its steps, then reading back if anything was written. Collective.
fn play(context: &RunContext<'_>, comm: &Arc<dyn Communicator>) -> Result<RankRun> {
    let done = run_rank(context, comm)?;
    if context.verify {
        // All ranks read back or none.
        let mut written = [done.measured.bytes_written];
        comm.all_reduce(&mut written, Reduce::Max)?;
        if written[0] > 0 {
            read_back(context, comm).map_err(|error| error.rank(comm.rank()))?;
        }
    }
    Ok(done)
}
