//! Replaying the journals of a job.

use super::identity::check_kind;
use super::orphans::{JournalStatus, OrphanedJournal};
use super::target::Target;
use crate::chunk_images::ChunkImages;
use crate::{Damage, Header, Heartbeat, Id, JournalStorage, Pulse, Stage};
use hyperslab_core::{Communicator, Error, ErrorKind, Format, OpenMode, Result, Stack};
use hyperslab_rollback::FileIdentity;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Size limit of the journal of chunk images.
const LARGEST_LOG: u64 = 1 << 40;

/// The journals of one job, by rank.
#[derive(Debug)]
pub struct Job {
    /// Identifier of the job.
    pub id: Id,
    /// Its journals, at least one, all with heads.
    pub journals: Vec<OrphanedJournal>,
}

/// Groups journals by job, oldest first. Returns those without a head separately.
pub fn jobs(left: Vec<OrphanedJournal>) -> (Vec<Job>, Vec<OrphanedJournal>) {
    let (mut jobs, mut others) = (BTreeMap::<Id, Vec<OrphanedJournal>>::new(), Vec::new());
    for journal in left {
        match &journal.header {
            Some(header) => jobs.entry(header.job).or_default().push(journal),
            None => others.push(journal),
        }
    }
    let mut jobs: Vec<Job> = jobs
        .into_iter()
        .map(|(id, mut journals)| {
            journals.sort_by_key(|journal| journal.header.as_ref().map(|header| (header.rank, header.created)));
            Job { id, journals }
        })
        .collect();
    jobs.sort_by_key(|job| job.journals.iter().filter_map(|journal| Some(journal.header.as_ref()?.created)).min());
    (jobs, others)
}

impl Job {
    /// A head of the job. Fails if the journals disagree about the job.
    pub fn header(&self) -> Result<&Header> {
        let mut headers = self.journals.iter().filter_map(|journal| journal.header.as_ref());
        let first = headers.next().ok_or_else(|| Error::invalid("recover", "a job without journals"))?;
        let same = |other: &Header| {
            other.stack == first.stack && other.container == first.container && other.ranks == first.ranks
        };
        match headers.all(same) {
            true => Ok(first),
            false => Err(Error::new(ErrorKind::Corrupt, "recover", "its journals name different containers")
                .target(first.container.display())),
        }
    }

    /// Whether a journal is in use.
    pub fn is_in_use(&self) -> bool {
        self.journals.iter().any(|journal| matches!(journal.state, JournalStatus::InUse))
    }

    /// Whether a journal was written on another machine, where it may be in use.
    pub fn is_elsewhere(&self) -> bool {
        self.journals.iter().any(|journal| matches!(journal.state, JournalStatus::Elsewhere))
    }

    /// Number of writes to replay, and of their bytes.
    pub fn size(&self) -> (u64, u64) {
        let usable = self.journals.iter().filter(|journal| journal.can_be_replayed());
        usable.fold((0, 0), |(writes, bytes), journal| (writes + journal.writes, bytes + journal.bytes))
    }
}

/// Result of a replay.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Number of writes applied.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Names of damaged journals, with the damage.
    pub damages: Vec<(String, Damage)>,
}

/// The context of recovery.
pub struct Recovery<'a> {
    /// The directory of the journals.
    pub files: &'a Arc<dyn JournalStorage>,
    /// Builds the format of a stack.
    pub format: &'a dyn Fn(&Stack) -> Result<Arc<dyn Format>>,
    /// A communicator of one rank.
    pub alone: Arc<dyn Communicator>,
    /// Prepares a container for opening, such as clearing a stale lock flag.
    pub mend: &'a dyn Fn(&Path) -> Result<()>,
}

impl Recovery<'_> {
    /// Replays all journals of a job into their container, makes it durable, and removes the journals. The job must not be
    /// in use. On error the journals stay unchanged.
    pub fn replay(&self, job: &mut Job) -> Result<Replayed> {
        let replayed = self.replay_and_keep(job)?;
        self.finish(job)?;
        Ok(replayed)
    }

    /// Replays all journals of a job into their container and makes it durable. The journals stay until
    /// [`Recovery::finish`].
    pub fn replay_and_keep(&self, job: &Job) -> Result<Replayed> {
        let header = job.header()?;
        let container = header.container.clone();
        check_kind(&container)?;
        // An interrupted recovery must not look like changes by another program.
        let _pulse = self.pulse(job).map(Pulse::new);
        (self.mend)(&container)?;
        let replayed = match job.journals.iter().any(OrphanedJournal::can_be_replayed) {
            false => {
                // Best effort: clears the open flag that a crashed program left in the file.
                let format = job.journals.iter().any(|journal| matches!(journal.state, JournalStatus::Empty));
                let is_same = || header.identity.is_none_or(|was| now(&container).is_some_and(|now| was.matches(&now)));
                let format = (format && is_same()).then(|| self.format_of(header).ok()).flatten();
                let _ = format
                    .map(|format| self.open(&*format, &container, OpenMode::Update, None).and_then(Target::leave));
                Replayed::default()
            }
            true => {
                let format = self.format_of(header)?;
                let images = match format.caps().execution.relocates_chunks {
                    true => {
                        Some(ChunkImages::new(self.files.clone(), &self.header_of_images(header)?, LARGEST_LOG, true)?)
                    }
                    false => None,
                };
                let mut target = self.open(&*format, &container, OpenMode::Update, images)?;
                check(job, &mut target)?;
                self.apply(job, target)?
            }
        };
        Ok(replayed)
    }

    /// Removes the journals of a replayed job.
    pub fn finish(&self, job: &mut Job) -> Result<()> {
        let container = job.header()?.container.clone();
        for journal in &mut job.journals {
            let stage = match journal.state {
                JournalStatus::Whole(_) => Stage::Recovered,
                JournalStatus::Damaged(_) => Stage::Damaged,
                JournalStatus::Empty | JournalStatus::Recovered => {
                    journal.found.remove(&**self.files)?;
                    continue;
                }
                _ => continue,
            };
            journal.found.set_stage(&**self.files, stage)?;
            if stage == Stage::Recovered {
                journal.found.remove(&**self.files)?;
            }
        }
        crate::marker::remove_of(&container, job.id);
        Ok(())
    }

    /// Takes over the heartbeat of one of the journals.
    fn pulse(&self, job: &Job) -> Option<Arc<Heartbeat>> {
        let journal = job
            .journals
            .iter()
            .find(|journal| journal.can_be_replayed() || matches!(journal.state, JournalStatus::Empty))?;
        let header = journal.header.as_ref()?;
        journal.found.heartbeat(&**self.files, header).map(Arc::new)
    }

    /// Checks without writing whether a replay would succeed.
    pub fn check(&self, job: &Job) -> Result<()> {
        let header = job.header()?;
        if !job.journals.iter().any(OrphanedJournal::can_be_replayed) {
            return Ok(());
        }
        check_kind(&header.container)?;
        let format = self.format_of(header)?;
        let mut target = self.open(&*format, &header.container, OpenMode::Read, None)?;
        let checked = check(job, &mut target);
        checked.and(target.leave())
    }

    /// Replays all journals of a job into another container of the same format, and keeps the journals. Creates the
    /// container, with arrays just large enough, if it does not exist.
    pub fn replay_to(&self, job: &Job, path: &Path) -> Result<Replayed> {
        let header = job.header()?;
        let format = self.format_of(header)?;
        check_kind(path)?;
        let exists = format.exists(path)?;
        let mut target = self.open(&*format, path, if exists { OpenMode::Update } else { OpenMode::Create }, None)?;
        match exists {
            true => check(job, &mut target)?,
            false => {
                let mut all = BTreeMap::new();
                for (name, touched) in job.journals.iter().flat_map(|journal| &journal.arrays) {
                    let known: &mut super::orphans::TouchedArray =
                        all.entry(name.clone()).or_insert_with(|| touched.clone());
                    known
                        .extents
                        .iter_mut()
                        .zip(&touched.extents)
                        .for_each(|(extent, reached)| *extent = (*extent).max(*reached));
                }
                target.create(&all)?;
                check(job, &mut target)?;
            }
        }
        self.apply(job, target)
    }

    pub(super) fn format_of(&self, header: &Header) -> Result<Arc<dyn Format>> {
        let stack: Stack = header.stack.parse()?;
        let format = (self.format)(&stack)?;
        match format.caps().data.readable {
            true => Ok(format),
            false => Err(Error::unsupported("recover", "the format keeps nothing").target(&header.stack)),
        }
    }

    /// The head for chunk images of this recovery.
    fn header_of_images(&self, header: &Header) -> Result<Header> {
        let own = Header::new(header.job, 0, header.ranks as usize, &header.stack, header.container.clone())?;
        Ok(Header { created: header.created, ..own })
    }

    fn open(&self, format: &dyn Format, path: &Path, how: OpenMode, images: Option<ChunkImages>) -> Result<Target> {
        let container = format.open(path, how, &self.alone).map_err(|error| {
            error.target(path.display()).hint("bring the container back, or recover into another file with --to FILE")
        })?;
        Ok(Target::new(container, format.caps().execution.relocates_chunks, images))
    }

    /// Applies all journals, rank by rank, and makes the container durable.
    fn apply(&self, job: &Job, mut target: Target) -> Result<Replayed> {
        let mut replayed = Replayed::default();
        for journal in job.journals.iter().filter(|journal| journal.can_be_replayed()) {
            let Some(header) = &journal.header else { continue };
            let mut reader = journal.found.reader(self.files, header);
            let mut writes = 0;
            while let Some(write) = reader.next_write(journal.done_before)? {
                if write.sequence >= journal.done_before {
                    target.apply(&write)?;
                    writes += 1;
                    replayed.bytes += write.len();
                }
            }
            if writes != journal.writes {
                let message = format!("{writes} writes can be read now, and {} a moment ago", journal.writes);
                return Err(Error::new(ErrorKind::Corrupt, "recover", message).target(journal.name()));
            }
            replayed.writes += writes;
            if let Some(damage) = reader.damage() {
                replayed.damages.push((journal.name().to_owned(), damage.clone()));
            }
        }
        target.finish()?;
        Ok(replayed)
    }
}

/// The present identity of the file at a path.
fn now(path: &Path) -> Option<FileIdentity> {
    std::fs::File::open(path).and_then(|file| FileIdentity::of(&file)).ok()
}

/// Checks all arrays before anything is written.
fn check(job: &Job, target: &mut Target) -> Result<()> {
    for journal in job.journals.iter().filter(|journal| journal.can_be_replayed()) {
        if let Some(name) = &journal.torn_types {
            let message = "its writes are of two types or numbers of dimensions, so the array was replaced on the way";
            return Err(Error::unsupported("recover", message).target(name));
        }
        target.check(&journal.arrays)?;
    }
    Ok(())
}
