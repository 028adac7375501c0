//! What a trial works on: the format under test, a directory of its own, and the oracle beside it.

use crate::{Memory, Ranks};
use hyperslab_comm::Solo;
use hyperslab_core::{ArraySpec, Caps, Container, Error, Format, OpenMode, Result, agree};
use libtest_mimic::Failed;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// What the options of a stack decide over the head of the array, so that it may come back otherwise than asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Overrides {
    /// Chunk extents.
    pub chunk: bool,
    /// Filters.
    pub filters: bool,
    /// Files beside the container, which outlive it.
    pub beside: bool,
}

/// A format under test with a fresh directory.
#[derive(Debug)]
pub struct Subject {
    /// The format.
    pub format: Arc<dyn Format>,
    /// What it says it can do.
    pub caps: Caps,
    /// What its options decide instead of the array.
    pub overrides: Overrides,
    /// What runs the ranks of its checks.
    pub ranks: Ranks,
    directory: PathBuf,
    /// Takes the directory away; one rank of a job has it.
    _owned: Option<TempDir>,
    oracles: Mutex<Vec<PathBuf>>,
}

/// A container under test and its twin in the oracle.
#[derive(Debug)]
pub struct Pair {
    /// In the format under test.
    pub subject: Arc<dyn Container>,
    /// In the oracle.
    pub oracle: Arc<dyn Container>,
}

impl Subject {
    /// A fresh directory for `format`, checked with thread ranks.
    pub fn new(format: Arc<dyn Format>, overrides: Overrides) -> Result<Self> {
        Self::on(Ranks::Threads, format, overrides)
    }

    /// A fresh directory for `format`, the same for all ranks of a job. Collective in a job.
    pub fn on(ranks: Ranks, format: Arc<dyn Format>, overrides: Overrides) -> Result<Self> {
        let make = || {
            let made = tempfile::Builder::new().prefix("hyperslab-test-").tempdir();
            made.map_err(|cause| Error::io("create temporary directory", cause))
        };
        let (directory, owned) = match &ranks {
            Ranks::Threads => {
                let made = make()?;
                (made.path().to_path_buf(), Some(made))
            }
            Ranks::Processes(job) => {
                let made = agree(&*job.verdicts, (job.verdicts.rank() == 0).then(make).transpose())?;
                let mut path =
                    made.as_ref().map(|made| made.path().as_os_str().as_bytes().to_vec()).unwrap_or_default();
                job.verdicts.broadcast(0, &mut path)?;
                (PathBuf::from(OsString::from_vec(path)), made)
            }
        };
        let caps = format.caps();
        Ok(Self { caps, format, overrides, ranks, directory, _owned: owned, oracles: Mutex::default() })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where a container called `name` goes.
    pub fn path(&self, name: &str) -> PathBuf {
        let extension = self.format.extension();
        let dot = if extension.is_empty() { "" } else { "." };
        self.directory.join(format!("{name}{dot}{extension}"))
    }

    /// Opens a container with one rank.
    pub fn open(&self, name: &str, how: OpenMode) -> Result<Arc<dyn Container>> {
        self.format.open(&self.path(name), how, &Solo::shared())
    }

    /// Where the oracle keeps the twin of `name`.
    pub(crate) fn twin_path(&self, name: &str) -> PathBuf {
        Path::new("oracle").join(self.directory.strip_prefix("/").unwrap_or(Path::new(""))).join(name)
    }

    /// Opens a container and its twin with one rank.
    pub fn pair(&self, name: &str, how: OpenMode) -> Result<Pair> {
        let subject = self.open(name, how)?;
        let twin = self.twin_path(name);
        let oracle = Memory.open(&twin, how, &Solo::shared())?;
        self.oracles.lock().unwrap_or_else(PoisonError::into_inner).push(twin);
        Ok(Pair { subject, oracle })
    }
}

impl Subject {
    /// Refuses a specification that lost something on its way through a container.
    pub(crate) fn same_spec(&self, found: &ArraySpec, asked: &ArraySpec) -> Result<(), Failed> {
        let lost = |what: &str, found: &dyn std::fmt::Debug, asked: &dyn std::fmt::Debug| {
            Err(Failed::from(format!("the {what} is {found:?}, asked for was {asked:?}")))
        };
        if found.dtype != asked.dtype {
            return lost("datatype", &found.dtype, &asked.dtype);
        }
        if found.shape != asked.shape {
            return lost("shape", &found.shape, &asked.shape);
        }
        if asked.chunk.is_some() && !self.overrides.chunk && found.chunk != asked.chunk {
            return lost("chunk shape", &found.chunk, &asked.chunk);
        }
        if !asked.filters.is_empty() && !self.overrides.filters && found.filters != asked.filters {
            return lost("filter list", &found.filters, &asked.filters);
        }
        // Zeros are what an array is filled with anyway.
        let said = |fill: &Option<Vec<u8>>| fill.clone().filter(|bytes| bytes.iter().any(|byte| *byte != 0));
        if said(&found.fill_value) != said(&asked.fill_value) {
            return lost("fill value", &found.fill_value, &asked.fill_value);
        }
        let growing = |max: &[Option<u64>]| max.iter().zip(&asked.shape).any(|(max, now)| *max != Some(*now));
        if asked.max_shape.as_deref().is_some_and(growing) && found.max_shape != asked.max_shape {
            return lost("maximum shape", &found.max_shape, &asked.max_shape);
        }
        Ok(())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        for twin in self.oracles.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = Memory.remove(&twin); // opened several times, removed once
        }
        if !self.caps.data.persistent && self.caps.data.readable {
            for name in ["a", "b"] {
                let _ = self.format.remove(&self.path(name));
            }
        }
    }
}

impl Pair {
    /// Closes both sides.
    pub fn close(&self) -> Result<()> {
        self.subject.close()?;
        self.oracle.close()
    }
}
