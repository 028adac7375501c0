//! Where the ranks of a check come from: threads of this process, or the processes of a job.

use hyperslab_comm::Threads;
use hyperslab_core::{Communicator, Error, ErrorKind, Result};
use libtest_mimic::{Completion, Failed};
use std::io::Write;
use std::sync::Arc;

/// What runs the ranks of a check.
#[derive(Debug, Clone)]
pub enum Ranks {
    /// Threads, as many as a check asks for.
    Threads,
    /// The processes of a job. Each of them runs every check, in the same order.
    Processes(Processes),
}

/// The processes of a job, seen from one of them.
#[derive(Debug, Clone)]
pub struct Processes {
    /// What the checks use.
    pub world: Arc<dyn Communicator>,
    /// The same ranks, for what they found: a rank that leaves a check early must not disturb those still in it.
    pub verdicts: Arc<dyn Communicator>,
}

/// Every kind, so that a number can stand for it between processes.
const KINDS: [ErrorKind; 10] = [
    ErrorKind::InvalidInput,
    ErrorKind::NotFound,
    ErrorKind::AlreadyExists,
    ErrorKind::Unsupported,
    ErrorKind::Corrupt,
    ErrorKind::Mismatch,
    ErrorKind::NoSpace,
    ErrorKind::Interrupted,
    ErrorKind::Peer,
    ErrorKind::Io,
];

impl Ranks {
    /// The numbers of ranks to check with: those `usual` with threads, that of the job otherwise.
    pub fn sizes(&self, usual: &[usize]) -> Vec<usize> {
        match self {
            Self::Threads => usual.to_vec(),
            Self::Processes(job) => vec![job.world.size()],
        }
    }

    /// Whether ranks are threads, which outlive the failure of another rank.
    pub fn are_threads(&self) -> bool {
        matches!(self, Self::Threads)
    }

    /// Runs `body` once per rank and returns what each rank returned. In a job, the errors of the other ranks come
    /// back as kind and text.
    pub fn run_each(
        &self,
        size: usize,
        body: impl Fn(Arc<dyn Communicator>) -> Result<()> + Sync,
    ) -> Result<Vec<Result<()>>> {
        match self {
            Self::Threads => Ok(Threads::run_each(size, body)),
            Self::Processes(job) if job.world.size() != size => {
                Err(Error::invalid("run ranks", format!("{size} ranks in a job of {}", job.world.size())))
            }
            Self::Processes(job) => job.results(body(job.world.clone())),
        }
    }

    /// Like [`Ranks::run_each`], but one error, the lowest rank's that is no echo of another's, stands for all.
    pub fn run(&self, size: usize, body: impl Fn(Arc<dyn Communicator>) -> Result<()> + Sync) -> Result<()> {
        let mut failure: Option<Error> = None;
        for error in self.run_each(size, body)?.into_iter().filter_map(Result::err) {
            match &failure {
                Some(first) if first.kind() != ErrorKind::Peer || error.kind() == ErrorKind::Peer => {}
                _ => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Does `work` on one rank; everyone gets its verdict.
    pub fn on_one(&self, work: impl FnOnce() -> Result<(), Failed>) -> Result<(), Failed> {
        match self {
            Self::Threads => work(),
            Self::Processes(job) => {
                let mine = if job.world.rank() == 0 { work() } else { Ok(()) };
                job.verdict(mine.map(|()| Completion::Completed)).map(drop)
            }
        }
    }
}

impl Processes {
    /// The results of all ranks, by rank.
    fn results(&self, mine: Result<()>) -> Result<Vec<Result<()>>> {
        let said = match &mine {
            Ok(()) => Vec::new(),
            Err(error) => {
                // Should the others wait for this rank for ever, this is what is left of it.
                let _ = writeln!(std::io::stderr(), "rank {}: {error:?}", self.world.rank());
                let kind = KINDS.iter().position(|kind| *kind == error.kind()).unwrap_or(KINDS.len() - 1);
                let mut said = vec![kind as u8];
                said.extend(error.to_string().bytes());
                said
            }
        };
        let all = self.verdicts.all_gather(&said)?;
        let heard = |(rank, said): (usize, Vec<u8>)| match said.split_first() {
            None => Ok(()),
            Some((&kind, text)) => {
                Err(Error::new(KINDS[usize::from(kind)], "check", String::from_utf8_lossy(text)).rank(rank))
            }
        };
        let mut results: Vec<_> = all.into_iter().enumerate().map(heard).collect();
        results[self.world.rank()] = mine;
        Ok(results)
    }

    /// The verdict of all ranks on a check: failed if it failed on any of them, then ignored, then passed.
    pub(crate) fn verdict(&self, mine: Result<Completion, Failed>) -> Result<Completion, Failed> {
        let said = match &mine {
            Ok(Completion::Completed) => Vec::new(),
            Ok(Completion::Ignored { reason }) => format!("i{}", reason.as_deref().unwrap_or("")).into_bytes(),
            Err(failed) => format!("f{}", failed.message().unwrap_or("no message")).into_bytes(),
        };
        let all = self.verdicts.all_gather(&said)?;
        for tag in [b'f', b'i'] {
            let first = all.iter().enumerate().find(|(_, said)| said.first() == Some(&tag));
            if let Some((rank, said)) = first {
                let text = String::from_utf8_lossy(&said[1..]).into_owned();
                return if tag == b'f' {
                    Err(format!("rank {rank}: {text}").into())
                } else {
                    Ok(Completion::ignored_with(text))
                };
            }
        }
        Ok(Completion::Completed)
    }
}
