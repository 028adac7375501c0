//! What the ranks of a `bench` run are, chosen from the command line, the workflow and where the program was started.

use crate::mpi_job::{self, InsideJob};
use crate::options::{BenchOptions, Launcher};
use anyhow::{Result, bail};
use hyperslab_core::{Communicator, Stack};
use hyperslab_h5bench::Workflow;
use hyperslab_run::{LaunchCommand, Ranks, ThreadRanks};
use std::path::Path;
use std::sync::Arc;

/// The most ranks that are threads of one process.
const MAX_THREADS: usize = 4096;
/// What starts MPI programs unless someone says otherwise.
const USUAL_COMMAND: &str = "mpirun";

/// The ranks of a run.
#[derive(Debug)]
pub enum Launch {
    /// Threads of this process.
    Threads,
    /// Processes that this command starts.
    Processes(LaunchCommand),
    /// The MPI job that this process is the first rank of.
    World(Arc<dyn Communicator>),
}

impl Launch {
    /// Decides, and says how many ranks there are.
    pub fn choose(
        options: &BenchOptions,
        workflow: &Workflow,
        inside: Option<&InsideJob>,
        notes: &mut Vec<String>,
    ) -> Result<(Self, usize)> {
        let asked = options.ranks.map(|n| n as usize);
        if let Some(job) = inside {
            let size = job.comm().size();
            if options.launcher == Launcher::Threads && size > 1 {
                bail!(
                    "--launcher threads inside an MPI job of {size} ranks; start the program without the MPI launcher"
                );
            }
            if let Some(n) = asked.filter(|n| *n != size) {
                bail!("--ranks {n}, but the MPI job that this program runs in has {size} ranks");
            }
            if let Some(n) = workflow.ranks.filter(|n| *n != size) {
                notes
                    .push(format!("the workflow asks for {n} ranks; the MPI job that this program runs in has {size}"));
            }
            return Ok((Self::World(job.comm().clone()), size));
        }
        let ranks = asked.or(workflow.ranks).unwrap_or(1);
        let named = workflow.launcher.as_ref().filter(|launcher| !launcher.command.trim().is_empty());
        let processes = match options.launcher {
            Launcher::Mpi => true,
            Launcher::Threads => false,
            Launcher::Auto => {
                let there = |command: &str| mpi_job::find_program(command).is_some();
                options.mpi_command.is_some()
                    || mpi_job::COMPILED_IN && named.is_some_and(|launcher| there(&launcher.command))
            }
        };
        if !processes {
            if ranks > MAX_THREADS {
                bail!("{ranks} ranks; at most {MAX_THREADS} thread ranks are possible");
            }
            if let Some(launcher) = named {
                let why = match (options.launcher, mpi_job::COMPILED_IN) {
                    (Launcher::Threads, _) => "--launcher threads",
                    (_, false) => "this build has no MPI",
                    (_, true) => "it is not installed",
                };
                notes.push(format!("{} is not used ({why}): ranks are threads of this process", launcher.command));
            }
            return Ok((Self::Threads, ranks));
        }
        if !mpi_job::COMPILED_IN {
            bail!("this build has no MPI; {}", mpi_job::HOW_TO_BUILD);
        }
        let command = match (&options.mpi_command, named) {
            (Some(command), _) => LaunchCommand::new(command, None, ranks)?,
            (None, Some(launcher)) => {
                // The workflow's options say its own number of ranks.
                let configuration = launcher.configuration.as_deref();
                let fits = asked.is_none_or(|n| Some(n) == workflow.ranks);
                if configuration.is_some() && !fits {
                    notes.push("mpi.configuration is not used: --ranks says otherwise".into());
                }
                LaunchCommand::new(&launcher.command, configuration.filter(|_| fits), ranks)?
            }
            (None, None) => LaunchCommand::new(USUAL_COMMAND, None, ranks)?,
        };
        Ok((Self::Processes(command), ranks))
    }

    /// Processes that the usual command starts on this machine.
    pub fn usual_processes(ranks: usize) -> Result<Self> {
        if !mpi_job::COMPILED_IN {
            bail!("this build has no MPI; {}", mpi_job::HOW_TO_BUILD);
        }
        Ok(Self::Processes(LaunchCommand::new(USUAL_COMMAND, None, ranks)?))
    }

    /// The word for it in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Threads => ThreadRanks.name(),
            Self::Processes(_) | Self::World(_) => "mpi",
        }
    }

    /// The command that starts the ranks, if one does.
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Processes(command) => Some(command.to_string()),
            Self::Threads | Self::World(_) => None,
        }
    }

    /// Whether the ranks share a process.
    pub fn one_process(&self) -> bool {
        match self {
            Self::Threads => true,
            Self::Processes(_) => false,
            Self::World(comm) => comm.one_process(),
        }
    }

    /// The ranks for case number `case` on `stack`. What is handed over or printed lies in `out`.
    #[cfg(feature = "mpi")]
    pub fn ranks(&self, stack: &Stack, out: &Path, case: usize) -> Box<dyn Ranks> {
        use hyperslab_run::{Processes, World};
        match self {
            Self::Threads => Box::new(ThreadRanks),
            Self::Processes(command) => {
                let logs = out.join("ranks").join(format!("case-{case}"));
                Box::new(Processes::new(command.clone(), stack, out, &logs))
            }
            Self::World(comm) => Box::new(World::new(comm, stack, out)),
        }
    }

    /// The ranks for a case: without MPI there are only threads.
    #[cfg(not(feature = "mpi"))]
    pub fn ranks(&self, _: &Stack, _: &Path, _: usize) -> Box<dyn Ranks> {
        Box::new(ThreadRanks)
    }
}
