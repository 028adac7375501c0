//! Ranks of an MPI job: as a program that a launcher started for one run, or as one that was started under it.

use super::Ranks;
use super::job::{JobFolder, leave_word, play_job};
use crate::execute::{RankRun, RunContext};
use hyperslab_comm::MpiJob;
use hyperslab_core::{Communicator, Error, ErrorKind, Result, Stack};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a rank that only follows another's failure leaves that one time to say why.
const AFTER_YOU: Duration = Duration::from_secs(2);

/// One rank of the job in `folder`: starts MPI, does its part, and ends. What it prints goes to files of its own.
pub fn rank_of_job(folder: &Path) -> Result<()> {
    let job = MpiJob::start()?;
    let comm = job.world();
    let rank = comm.rank();
    let done = print_to(folder, rank).and_then(|()| play_job(folder, &comm));
    if let Err(error) = done {
        give_up(folder, &*comm, &error);
    }
    Ok(())
}

/// Ends the whole job, after leaving word.
fn give_up(folder: &Path, comm: &dyn Communicator, error: &Error) {
    leave_word(folder, comm.rank(), error);
    if error.kind() == ErrorKind::Peer {
        std::thread::sleep(AFTER_YOU);
    }
    comm.abort(error);
}

/// Lets standard output and error of this process end in files named after its rank.
fn print_to(folder: &Path, rank: usize) -> Result<()> {
    let open = |kind: &str| {
        let path = folder.join(format!("rank-{rank}.{kind}"));
        File::create(&path).map_err(|e| Error::io("redirect output", e).target(path.display()))
    };
    let failed = |e: rustix::io::Errno| Error::io("redirect output", e.into());
    rustix::stdio::dup2_stdout(open("stdout")?).map_err(failed)?;
    rustix::stdio::dup2_stderr(open("stderr")?).map_err(failed)
}

/// The MPI job that this process is the first rank of; the others are in [`serve`]. Dropping it lets them go.
#[derive(Debug)]
pub struct World {
    comm: Arc<dyn Communicator>,
    stack: Stack,
    folder: PathBuf,
}

impl World {
    /// All ranks of `comm`, each building `stack` for itself. Runs are handed over in `folder`, which all machines see.
    pub fn new(comm: &Arc<dyn Communicator>, stack: &Stack, folder: &Path) -> Self {
        Self { comm: comm.clone(), stack: stack.clone(), folder: folder.into() }
    }

    /// Lets the ranks that serve come to their end.
    pub fn dismiss(comm: &dyn Communicator) -> Result<()> {
        comm.broadcast(0, &mut Vec::new())
    }
}

impl Ranks for World {
    fn name(&self) -> &'static str {
        "mpi"
    }

    fn one_process(&self) -> bool {
        self.comm.one_process()
    }

    fn run(&self, context: &RunContext<'_>) -> Result<Vec<RankRun>> {
        let job = JobFolder::create(&self.folder, context, &self.stack)?;
        self.comm.broadcast(0, &mut job.path().as_os_str().as_bytes().to_vec())?;
        if let Err(error) = play_job(job.path(), &self.comm) {
            if self.comm.size() == 1 {
                return Err(error);
            }
            give_up(job.path(), &*self.comm, &error);
        }
        job.result().unwrap_or_else(|| Err(Error::new(ErrorKind::Io, "run ranks", "the ranks left no result")))
    }
}

/// A rank other than the first: takes part in every run until it is dismissed.
pub fn serve(comm: &Arc<dyn Communicator>) -> Result<()> {
    loop {
        let mut folder = Vec::new();
        comm.broadcast(0, &mut folder)?;
        if folder.is_empty() {
            return Ok(());
        }
        let folder = PathBuf::from(std::ffi::OsString::from_vec(folder));
        if let Err(error) = play_job(&folder, comm) {
            give_up(&folder, &**comm, &error);
        }
    }
}
