//! This program as part of an MPI job.

use anyhow::Result;
use hyperslab_core::Communicator;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether this build can use MPI.
pub const COMPILED_IN: bool = cfg!(feature = "mpi");
/// How to get a build that can.
pub const HOW_TO_BUILD: &str = "build one with cargo xtask build --mpi";

/// What launchers tell the programs they start.
const SIGNS: [&str; 6] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK", "ALPS_APP_PE", "JSM_NAMESPACE_RANK"];

/// An MPI job that this program was started in.
pub struct InsideJob {
    // Before the job, which must outlive it.
    comm: Arc<dyn Communicator>,
    #[cfg(feature = "mpi")]
    _job: hyperslab_comm::MpiJob,
}

impl InsideJob {
    /// The job, if there is one.
    pub fn join() -> Result<Option<Self>> {
        if !SIGNS.iter().any(|sign| std::env::var_os(sign).is_some()) {
            return Ok(None);
        }
        Self::start().map(Some)
    }

    #[cfg(feature = "mpi")]
    fn start() -> Result<Self> {
        let job = hyperslab_comm::MpiJob::start()?;
        Ok(Self { comm: job.world(), _job: job })
    }

    #[cfg(not(feature = "mpi"))]
    fn start() -> Result<Self> {
        anyhow::bail!(
            "started inside an MPI job, but this build has no MPI, and its ranks would all do the same; {HOW_TO_BUILD}"
        )
    }

    /// All ranks.
    pub fn comm(&self) -> &Arc<dyn Communicator> {
        &self.comm
    }

    /// Whether this is a rank that only takes part in runs; it has then done so, and the program is over.
    #[cfg(feature = "mpi")]
    pub fn served(&self) -> Result<bool> {
        if self.comm.rank() == 0 {
            return Ok(false);
        }
        hyperslab_run::serve(&self.comm)?;
        Ok(true)
    }

    /// Without MPI there are no such ranks.
    #[cfg(not(feature = "mpi"))]
    pub fn served(&self) -> Result<bool> {
        Ok(false)
    }
}

#[cfg(feature = "mpi")]
impl Drop for InsideJob {
    fn drop(&mut self) {
        if self.comm.rank() == 0 && !std::thread::panicking() {
            // Fails only if the others are gone already.
            let _ = hyperslab_run::World::dismiss(&*self.comm);
        }
    }
}

/// One rank of a run that another process of this program handed over.
#[cfg(feature = "mpi")]
pub fn run_rank(folder: &Path) -> Result<()> {
    Ok(hyperslab_run::rank_of_job(folder)?)
}

/// Without MPI there are no such ranks.
#[cfg(not(feature = "mpi"))]
pub fn run_rank(_: &Path) -> Result<()> {
    anyhow::bail!("this build has no MPI; {HOW_TO_BUILD}")
}

/// Meets the other ranks. The first one says how many there are and what MPI they run on, in words for `doctor`.
#[cfg(feature = "mpi")]
pub fn hello() -> Result<Option<String>> {
    let job = hyperslab_comm::MpiJob::start()?;
    let comm = job.world();
    let mut count = [1];
    comm.all_reduce(&mut count, hyperslab_core::Reduce::Sum)?;
    let words =
        || format!("{} ranks met; {}, threads: {}", count[0], hyperslab_comm::MpiJob::library(), job.thread_level());
    Ok((comm.rank() == 0).then(words))
}

/// Without MPI there are no ranks to meet.
#[cfg(not(feature = "mpi"))]
pub fn hello() -> Result<Option<String>> {
    anyhow::bail!("this build has no MPI; {HOW_TO_BUILD}")
}

/// Where a program lies that a command line begins with.
pub fn find_program(command: &str) -> Option<PathBuf> {
    let name = command.split_whitespace().next()?;
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
