//! The strategies of one container: synchronous I/O, and the ordinary layers. At most one at a time has buffered writes.

use super::choice::Choice;
use super::options::Options;
use super::shared_container::{SharedContainer, SharedFormat};
use crate::async_io::{self, AsyncContainer, AsyncFormat};
use crate::background::{FilteredArrays, OnLogFailure, StagingOptions, refuse_unrecovered};
use hyperslab_core::{Communicator, Container, Durability, Error, Format, OpenMode, Result, Stack, StackElement};
use hyperslab_journal::SyncMode;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Strategies {
    pub one: Arc<SharedContainer>,
    plain: Arc<dyn Container>,
    background: Option<Arc<AsyncContainer>>,
    log: Option<Arc<dyn Container>>,
}

/// Monotonic counters of a strategy.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// Bytes drained in the background.
    pub bytes: u64,
    pub busy: Duration,
    /// Peak memory.
    pub memory: u64,
}

impl Strategies {
    /// Opens the container once, and every strategy on it. Collective.
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
            // Before opening anything that might be truncated.
            refuse_unrecovered(&staging(directory, below), path, &**comm)?;
        }
        let shared = SharedFormat::new(format.clone());
        let over: Arc<dyn Format> = shared.clone();
        // The first open opens the container, with the communicator of background calls.
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
        let one = shared.container().ok_or_else(|| Error::invalid("open", "nothing was opened"))?.clone();
        Ok(Self { one, plain, background, log })
    }

    /// Whether the strategy is available.
    pub fn has(&self, choice: Choice) -> bool {
        match choice {
            Choice::Sync => true,
            Choice::Async => self.background.is_some(),
            Choice::Log => self.log.is_some(),
        }
    }

    /// The container of a strategy, or the plain one if it is not available.
    pub fn container(&self, choice: Choice) -> &dyn Container {
        match (choice, &self.background, &self.log) {
            (Choice::Async, Some(background), _) => &**background,
            (Choice::Log, _, Some(log)) => &**log,
            _ => &*self.plain,
        }
    }

    /// All available strategies.
    pub fn all(&self) -> impl Iterator<Item = Choice> {
        Choice::ALL.into_iter().filter(|choice| self.has(*choice))
    }

    /// Changes the strategy, after draining the old one. Collective. An error of a strategy stays with it and is reported
    /// by its next call; such errors are not returned here.
    pub fn change(&self, from: Choice, to: Choice) -> Result<bool> {
        let at_rest = match (from, &self.background, &self.log) {
            (Choice::Async, Some(background), _) => {
                background.come_to_rest();
                background.check().is_ok()
            }
            // A log reports its errors again at close.
            (Choice::Log, _, Some(log)) => log.flush(Durability::Visible).is_ok(),
            _ => true,
        };
        if at_rest && to == Choice::Log {
            // Recovery must find arrays created meanwhile.
            self.one.container().flush(Durability::Visible)?;
        }
        Ok(at_rest)
    }

    /// Whether a strategy's background failed.
    pub fn failed(&self, choice: Choice) -> bool {
        choice == Choice::Async && self.background.as_ref().is_some_and(|background| background.check().is_err())
    }

    /// Total time that callers waited for the background.
    pub fn waited(&self, choice: Choice) -> Duration {
        match choice {
            Choice::Sync => Duration::ZERO,
            _ => self.container(choice).background().waited,
        }
    }

    /// Background counters of a strategy.
    pub fn progress(&self, choice: Choice) -> Progress {
        match (choice, &self.background) {
            (Choice::Sync, _) => Progress::default(),
            (Choice::Async, Some(background)) => {
                let (bytes, busy) = background.done();
                Progress { bytes, busy, memory: background.telemetry().background().memory }
            }
            _ => {
                let background = self.container(choice).background();
                Progress { bytes: background.bytes, busy: background.busy, memory: background.memory }
            }
        }
    }

    /// Whether a strategy has nothing buffered.
    pub fn is_idle(&self, choice: Choice) -> bool {
        match (choice, &self.background) {
            (Choice::Async, Some(background)) => background.is_idle(),
            _ => choice == Choice::Sync,
        }
    }

    /// Closes all strategies, the log last, since it is removed once the container is closed. Collective.
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

/// Staging options of the log.
fn staging(directory: &Path, below: &Stack) -> StagingOptions {
    StagingOptions {
        directory: PathBuf::from(directory),
        limit: None,
        below: below.to_string(),
        layer: super::NAME,
        sync: SyncMode::OnFlush,
        direct: false,
        per_node: false,
        filtered: FilteredArrays::Usual,
        on_failure: OnLogFailure::Through,
        member: None,
    }
}
