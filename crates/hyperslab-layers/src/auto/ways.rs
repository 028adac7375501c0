//! The ways to one container: the plain one, and the ordinary layers above it. Only one at a time has anything that the
//! container lacks.

use super::choice::Choice;
use super::one::{One, OneFormat};
use super::options::Options;
use crate::async_io::{self, AsyncContainer, AsyncFormat};
use crate::background::{Filtered, OnLogFailure, StagingOptions, refuse_left_over};
use crate::journal::SyncMode;
use hyperslab_core::{Communicator, Container, Durability, Error, Format, OpenMode, Result, Stack, StackElement};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Ways {
    pub one: Arc<One>,
    plain: Arc<dyn Container>,
    background: Option<Arc<AsyncContainer>>,
    log: Option<Arc<dyn Container>>,
}

/// Numbers of a way that only grow.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Bytes that came to their place in the background.
    pub bytes: u64,
    pub busy: Duration,
    /// The most memory so far.
    pub memory: u64,
}

impl Ways {
    /// Opens the container once, and every way to it. Collective.
    pub fn open(
        format: &Arc<dyn Format>,
        below: &Stack,
        options: &Options,
        path: &Path,
        how: OpenMode,
        comm: &Arc<dyn Communicator>,
    ) -> Result<Self> {
        let log = options.directory.as_ref().filter(|_| how != OpenMode::Read);
        if let Some(directory) = log {
            // Before anything is opened that might be replaced.
            refuse_left_over(&staging(directory, below), path, &**comm)?;
        }
        let shared = OneFormat::new(format.clone());
        let over: Arc<dyn Format> = shared.clone();
        // The first opens the container, in the group in which the background makes its calls.
        let background = (options.choices.contains(&Choice::Async) && comm.many_threads()).then(|| {
            let mut element = StackElement { name: "async".into(), options: size("memory", options.memory) };
            element.options.extend(options.lag.iter().map(|lag| ("lag".to_owned(), lag.clone())));
            let options = async_io::Options::parse(&element)?;
            AsyncFormat { inner: over.clone(), options, staging: None }.open_container(path, how, comm).map(Arc::new)
        });
        let background = background.transpose()?;
        let log = log.map(|directory| {
            let directory = ("dir".to_owned(), directory.display().to_string());
            let element = StackElement { name: "log".into(), options: vec![directory] };
            (crate::log::ENTRY.wrap)(&element, over.clone(), below)?.open(path, how, comm)
        });
        let log = log.transpose()?;
        let plain = over.open(path, how, comm)?;
        let one = shared.one().ok_or_else(|| Error::invalid("open", "nothing was opened"))?.clone();
        Ok(Self { one, plain, background, log })
    }

    /// Whether there is such a way.
    pub fn has(&self, choice: Choice) -> bool {
        match choice {
            Choice::Sync => true,
            Choice::Async => self.background.is_some(),
            Choice::Log => self.log.is_some(),
        }
    }

    /// The container by a way; the plain one where there is no such way.
    pub fn container(&self, choice: Choice) -> &dyn Container {
        match (choice, &self.background, &self.log) {
            (Choice::Async, Some(background), _) => &**background,
            (Choice::Log, _, Some(log)) => &**log,
            _ => &*self.plain,
        }
    }

    /// The ways there are.
    pub fn all(&self) -> impl Iterator<Item = Choice> {
        Choice::ALL.into_iter().filter(|choice| self.has(*choice))
    }

    /// Makes a way the one that is used from now on. Collective. An error stays with the way that has it, and is told by what
    /// is called next; what is returned is none of these.
    pub fn change(&self, from: Choice, to: Choice) -> Result<bool> {
        let at_rest = match (from, &self.background, &self.log) {
            (Choice::Async, Some(background), _) => {
                background.come_to_rest();
                background.check().is_ok()
            }
            // Errors of a log are told again when it is closed.
            (Choice::Log, _, Some(log)) => log.flush(Durability::Visible).is_ok(),
            _ => true,
        };
        if at_rest && to == Choice::Log {
            // A recovery must find the arrays that were made meanwhile.
            self.one.container().flush(Durability::Visible)?;
        }
        Ok(at_rest)
    }

    /// Whether something failed in the background.
    pub fn failed(&self, choice: Choice) -> bool {
        choice == Choice::Async && self.background.as_ref().is_some_and(|background| background.check().is_err())
    }

    /// How long callers have waited for the background so far.
    pub fn waited(&self, choice: Choice) -> Duration {
        match choice {
            Choice::Sync => Duration::ZERO,
            _ => self.container(choice).background().waited,
        }
    }

    /// What a way has done in the background.
    pub fn progress(&self, choice: Choice) -> Progress {
        match (choice, &self.background) {
            (Choice::Sync, _) => Progress::default(),
            (Choice::Async, Some(background)) => {
                let (bytes, busy) = background.done();
                Progress { bytes, busy, memory: background.background().memory }
            }
            _ => {
                let background = self.container(choice).background();
                Progress { bytes: background.bytes, busy: background.busy, memory: background.memory }
            }
        }
    }

    /// Whether a way has nothing to do.
    pub fn is_idle(&self, choice: Choice) -> bool {
        match (choice, &self.background) {
            (Choice::Async, Some(background)) => background.is_idle(),
            _ => choice == Choice::Sync,
        }
    }

    /// Closes every way, the log last: it goes when the container is closed. Collective.
    pub fn close(&self) -> Result<()> {
        let plain = self.plain.close();
        let background = self.background.as_ref().map_or(Ok(()), |background| background.close());
        let log = self.log.as_ref().map_or(Ok(()), |log| log.close());
        background.and(log).and(plain)
    }
}

fn size(name: &str, bytes: Option<u64>) -> Vec<(String, String)> {
    bytes.iter().map(|bytes| (name.to_owned(), bytes.to_string())).collect()
}

/// What the log will use.
fn staging(directory: &Path, below: &Stack) -> StagingOptions {
    StagingOptions {
        directory: PathBuf::from(directory),
        limit: None,
        below: below.to_string(),
        layer: super::NAME,
        sync: SyncMode::OnFlush,
        direct: false,
        per_node: false,
        filtered: Filtered::Usual,
        on_failure: OnLogFailure::Through,
    }
}
