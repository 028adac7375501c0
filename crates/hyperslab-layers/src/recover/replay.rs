//! Replaying the journals of a job.

use super::identity::check_kind;
use super::left::{Left, State};
use super::target::Target;
use crate::images::Images;
use crate::journal::{Damage, Files, Header, Heartbeat, Id, Pulse, Stage};
use hyperslab_core::{Communicator, Error, ErrorKind, Format, OpenMode, Result, Stack};
use hyperslab_rollback::FileIdentity;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the journal that keeps a chunk while it is stored.
const LARGEST_LOG: u64 = 1 << 40;

/// The journals of one job that lie in the directory, by rank.
#[derive(Debug)]
pub struct Job {
    /// Its identity.
    pub id: Id,
    /// Its journals, at least one. All have heads.
    pub journals: Vec<Left>,
}

/// Sorts journals with heads into jobs, oldest first. The others are given back.
pub fn jobs(left: Vec<Left>) -> (Vec<Job>, Vec<Left>) {
    let (mut jobs, mut others) = (BTreeMap::<Id, Vec<Left>>::new(), Vec::new());
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
    /// What its journals say about it. They agree, or it is an error.
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

    /// Whether one of its ranks, or another recovery, is at work.
    pub fn is_in_use(&self) -> bool {
        self.journals.iter().any(|journal| matches!(journal.state, State::InUse))
    }

    /// Whether one of its journals was written on another machine, where it may be in use.
    pub fn is_elsewhere(&self) -> bool {
        self.journals.iter().any(|journal| matches!(journal.state, State::Elsewhere))
    }

    /// Writes and bytes that a replay would bring into the container.
    pub fn size(&self) -> (u64, u64) {
        let usable = self.journals.iter().filter(|journal| journal.can_be_replayed());
        usable.fold((0, 0), |(writes, bytes), journal| (writes + journal.writes, bytes + journal.bytes))
    }
}

/// What a replay did.
#[derive(Debug, Default)]
pub struct Replayed {
    /// Writes that are in the container now.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// For every journal that ended early: its name, and where and why.
    pub damages: Vec<(String, Damage)>,
}

/// How to bring journals into containers.
pub struct Recovery<'a> {
    /// Where the journals are.
    pub files: &'a Arc<dyn Files>,
    /// From a stack to a format.
    pub format: &'a dyn Fn(&Stack) -> Result<Arc<dyn Format>>,
    /// A group of one rank.
    pub alone: Arc<dyn Communicator>,
    /// Puts a container into a state in which it can be opened, before it is.
    pub mend: &'a dyn Fn(&Path) -> Result<()>,
}

impl Recovery<'_> {
    /// Replays all journals of a job into their container, makes it durable, and removes the journals. Nothing of a job in
    /// use may be replayed. On an error the journals stay as they are.
    pub fn replay(&self, job: &mut Job) -> Result<Replayed> {
        let replayed = self.bring(job)?;
        self.finish(job)?;
        Ok(replayed)
    }

    /// Replays all journals of a job into their container and makes it durable. The journals stay until [`Recovery::finish`].
    pub fn bring(&self, job: &Job) -> Result<Replayed> {
        let header = job.header()?;
        let container = header.container.clone();
        check_kind(&container)?;
        // A recovery that is interrupted must not look like somebody else's changes.
        let _pulse = self.pulse(job).map(Pulse::new);
        (self.mend)(&container)?;
        let replayed = match job.journals.iter().any(Left::can_be_replayed) {
            false => {
                // A file that was open when its program died may say so, and be refused by others. Nothing is lost if it stays so.
                let format = job.journals.iter().any(|journal| matches!(journal.state, State::Empty));
                let is_same = || header.identity.is_none_or(|was| now(&container).is_some_and(|now| was.matches(&now)));
                let format = (format && is_same()).then(|| self.format_of(header).ok()).flatten();
                let _ = format
                    .map(|format| self.open(&*format, &container, OpenMode::Update, None).and_then(Target::leave));
                Replayed::default()
            }
            true => {
                let format = self.format_of(header)?;
                let images = match format.caps().relocates_chunks {
                    true => Some(Images::new(self.files.clone(), &self.header_of_images(header)?, LARGEST_LOG, true)?),
                    false => None,
                };
                let mut target = self.open(&*format, &container, OpenMode::Update, images)?;
                check(job, &mut target)?;
                self.apply(job, target)?
            }
        };
        Ok(replayed)
    }

    /// Removes the journals of a job, whose writes are in the container.
    pub fn finish(&self, job: &mut Job) -> Result<()> {
        let container = job.header()?.container.clone();
        for journal in &mut job.journals {
            let stage = match journal.state {
                State::Whole(_) => Stage::Recovered,
                State::Damaged(_) => Stage::Damaged,
                State::Empty | State::Recovered => {
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

    /// The sign of life of one of the journals, which is this recovery's from now on.
    fn pulse(&self, job: &Job) -> Option<Arc<Heartbeat>> {
        let journal =
            job.journals.iter().find(|journal| journal.can_be_replayed() || matches!(journal.state, State::Empty))?;
        let header = journal.header.as_ref()?;
        journal.found.heartbeat(&**self.files, header).map(Arc::new)
    }

    /// Whether a replay would go through, as far as can be said without writing.
    pub fn check(&self, job: &Job) -> Result<()> {
        let header = job.header()?;
        if !job.journals.iter().any(Left::can_be_replayed) {
            return Ok(());
        }
        check_kind(&header.container)?;
        let format = self.format_of(header)?;
        let mut target = self.open(&*format, &header.container, OpenMode::Read, None)?;
        let checked = check(job, &mut target);
        checked.and(target.leave())
    }

    /// Replays all journals of a job into another container of the same format, and keeps the journals. Where there is none
    /// it is created, with arrays just large enough.
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
                    let known: &mut super::left::Touched = all.entry(name.clone()).or_insert_with(|| touched.clone());
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
        match format.caps().readable {
            true => Ok(format),
            false => Err(Error::unsupported("recover", "the format keeps nothing").target(&header.stack)),
        }
    }

    /// The journals of a job are those of one container; images of this process are, too.
    fn header_of_images(&self, header: &Header) -> Result<Header> {
        let own = Header::new(header.job, 0, header.ranks as usize, &header.stack, header.container.clone())?;
        Ok(Header { created: header.created, ..own })
    }

    fn open(&self, format: &dyn Format, path: &Path, how: OpenMode, images: Option<Images>) -> Result<Target> {
        let container = format.open(path, how, &self.alone).map_err(|error| {
            error.target(path.display()).hint("bring the container back, or recover into another file with --to FILE")
        })?;
        Ok(Target::new(container, format.caps().relocates_chunks, images))
    }

    /// Writes everything, rank by rank, and makes it durable.
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

/// The identity of what is at a path now.
fn now(path: &Path) -> Option<FileIdentity> {
    std::fs::File::open(path).and_then(|file| FileIdentity::of(&file)).ok()
}

/// Refuses before anything is written.
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
