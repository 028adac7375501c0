//! The journals of a directory and their status.

use crate::{
    ArrayInfo, Damage, FoundJournal, Header, JournalStorage, Lock, LogFile, RecoveredWrite, Sighting, Stage, find,
};
use hyperslab_core::{Datatype, Dims, Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Status of a journal.
#[derive(Debug)]
pub enum JournalStatus {
    /// In use by its writer or another recovery.
    InUse,
    /// Written on another machine, where its job may be running.
    Elsewhere,
    /// All its writes are completed.
    Empty,
    /// All writes can be replayed, except possibly an unfinished last record, which was never acknowledged.
    Whole(Option<Damage>),
    /// Writes can be replayed up to here; later ones are lost.
    Damaged(Damage),
    /// Recovered up to a damaged record; kept for inspection.
    SetAside,
    /// Recovered; only its files are left.
    Recovered,
    /// Unusable, for this reason.
    Refused(Error),
}

/// An array to which a journal has writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TouchedArray {
    pub dtype: Datatype,
    /// The smallest shape that contains all writes.
    pub extents: Dims,
}

/// A journal in a directory, which stays locked against other recoveries as long as this exists.
#[derive(Debug)]
pub struct OrphanedJournal {
    pub(super) found: FoundJournal,
    /// The head, if readable.
    pub header: Option<Header>,
    /// The status.
    pub state: JournalStatus,
    /// Number of writes to replay.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    pub(super) done_before: u64,
    pub(super) arrays: BTreeMap<String, TouchedArray>,
    /// An array name with writes of two types.
    pub(super) torn_types: Option<String>,
    /// The writer's last sighting of the container, if recorded.
    pub(super) sighting: Option<Sighting>,
    /// Time of the last modification of any of its files.
    pub(super) modified: Option<SystemTime>,
    /// Whether the head is a copy of the original file.
    pub(super) is_copy: bool,
    /// The lock of the directory.
    _lock: Option<Arc<dyn LogFile>>,
}

impl OrphanedJournal {
    /// Common prefix of its file names.
    pub fn name(&self) -> &str {
        &self.found.stem
    }

    /// Whether it has writes to replay.
    pub fn can_be_replayed(&self) -> bool {
        matches!(self.state, JournalStatus::Whole(_) | JournalStatus::Damaged(_))
    }

    /// Removes an unfinished head, whose job is unknown. A writer that is about to finish it creates another.
    pub fn remove_unfinished(&self, files: &Arc<dyn JournalStorage>) -> Result<()> {
        let unfinished = self.found.stage == Stage::Unfinished && matches!(self.state, JournalStatus::Empty);
        if unfinished { self.found.remove(&**files) } else { Ok(()) }
    }

    /// Removes all its files with their writes. Refuses a journal that may be in use.
    pub fn discard(&self, files: &Arc<dyn JournalStorage>) -> Result<()> {
        match self.state {
            JournalStatus::InUse | JournalStatus::Elsewhere => {
                Err(Error::unsupported("discard", "it may be in use").target(&self.found.stem))
            }
            _ => self.found.remove(&**files),
        }
    }

    /// Whether only its files are left to be removed.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, JournalStatus::Empty | JournalStatus::Recovered)
    }
}

/// Lists and fully verifies the journals of a directory. `elsewhere_ended`: the caller asserts that jobs of other machines
/// have ended.
pub fn survey(files: &Arc<dyn JournalStorage>, elsewhere_ended: bool) -> Result<Vec<OrphanedJournal>> {
    // One lock for all, so that the number of descriptors does not grow with that of journals.
    let lock = files.whole().ok();
    let others = match lock.as_ref().map(|whole| whole.lock()) {
        Some(Ok(Lock::Busy)) => true,
        Some(Err(cause)) => return Err(crate::failed("lock journal directory", files.place(), cause)),
        _ => false,
    };
    let at = Survey { files, elsewhere_ended, others, lock: lock.filter(|_| !others) };
    let each = complete_listing(&**files)?.into_iter().map(|found| inspect(&at, found));
    // Journals that vanished meanwhile were removed by their users.
    let exists = |left: &OrphanedJournal| match &left.state {
        JournalStatus::Refused(error) if error.kind() == ErrorKind::NotFound && left.found.stage != Stage::Headless => {
            !files.open(&left.found.head()).is_err_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
        }
        _ => true,
    };
    Ok(each.filter(exists).collect())
}

/// Lists the journals; retries while a head is missing, which a list made during changes may lack.
fn complete_listing(files: &dyn JournalStorage) -> Result<Vec<FoundJournal>> {
    let mut found = find(files)?;
    for _ in 0..3 {
        if found.iter().all(|found| found.stage != Stage::Headless) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        found = find(files)?;
    }
    Ok(found)
}

/// The directory being surveyed.
struct Survey<'a> {
    files: &'a Arc<dyn JournalStorage>,
    elsewhere_ended: bool,
    /// Another recovery is running.
    others: bool,
    lock: Option<Arc<dyn LogFile>>,
}

fn inspect(at: &Survey<'_>, found: FoundJournal) -> OrphanedJournal {
    let mut left = OrphanedJournal {
        found,
        header: None,
        state: JournalStatus::Empty,
        writes: 0,
        bytes: 0,
        done_before: 0,
        arrays: BTreeMap::new(),
        torn_types: None,
        sighting: None,
        modified: None,
        is_copy: false,
        _lock: at.lock.clone(),
    };
    left.state = left.classify(at).unwrap_or_else(JournalStatus::Refused);
    left
}

impl OrphanedJournal {
    fn classify(&mut self, at: &Survey<'_>) -> Result<JournalStatus> {
        let files = at.files;
        if self.found.stage == Stage::Headless {
            let error =
                Error::new(ErrorKind::NotFound, "read journal", "its head is missing, so nobody knows whose it is");
            return Err(error.target(&self.found.stem).hint("remove its files if nobody needs them"));
        }
        let (head, lock) = self.found.open(&**files)?;
        // The head of a journal in use can be read: it was complete when it got its name.
        let header = self.found.header(&**files, &*head);
        self.header = header.as_ref().ok().cloned();
        if lock == Lock::Busy || at.others {
            return Ok(JournalStatus::InUse);
        }
        if self.found.stage == Stage::Unfinished && header.is_err() {
            // Being created, or never finished: nothing was acknowledged.
            return Ok(JournalStatus::Empty);
        }
        let header = header?;
        match (header.process.was_here(), lock) {
            (true, Lock::Unsupported) if header.process.runs() => return Ok(JournalStatus::InUse),
            (false, _) if !at.elsewhere_ended => return Ok(JournalStatus::Elsewhere),
            _ => {}
        }
        match self.found.stage {
            Stage::Damaged => Ok(JournalStatus::SetAside),
            Stage::Recovered => Ok(JournalStatus::Recovered),
            // Complete and unlocked: its process ended during creation.
            Stage::Unfinished | Stage::Headless => Ok(JournalStatus::Empty),
            Stage::Written => {
                self.sighting = self.found.slots(&header, &*head, header.process.same_boot());
                let own = head.inode().ok().flatten();
                self.is_copy = self.sighting.is_some_and(|seen| own.is_some_and(|own| own != seen.head));
                self.modified = self.found.modified(&**files);
                drop(head);
                self.read(files, &header)
            }
        }
    }

    /// Reads the journal twice: first for checkpoints, then for pending writes, verifying their elements.
    fn read(&mut self, files: &Arc<dyn JournalStorage>, header: &Header) -> Result<JournalStatus> {
        let mut first = self.found.reader(files, header);
        while first.next_write(u64::MAX)?.is_some() {}
        self.done_before = first.done_before();
        let mut reader = self.found.reader(files, header);
        while let Some(write) = reader.next_write(self.done_before)? {
            if write.sequence >= self.done_before {
                self.writes += 1;
                self.bytes += write.len();
                self.touch(&write);
            }
        }
        Ok(match reader.damage().cloned() {
            Some(damage) if !damage.unfinished => JournalStatus::Damaged(damage),
            None if self.writes == 0 => JournalStatus::Empty,
            damage => JournalStatus::Whole(damage),
        })
    }

    fn touch(&mut self, write: &RecoveredWrite) {
        let ArrayInfo { name, dtype } = &*write.array;
        let reached = write.selection.bounds().map(|(_, high)| high);
        let reached = reached.unwrap_or_else(|| Dims::from_elem(0, write.selection.rank()));
        match self.arrays.get_mut(name) {
            None => drop(self.arrays.insert(name.clone(), TouchedArray { dtype: dtype.clone(), extents: reached })),
            Some(known) if known.dtype == *dtype && known.extents.len() == reached.len() => {
                known.extents.iter_mut().zip(&reached).for_each(|(extent, reached)| *extent = (*extent).max(*reached));
            }
            Some(_) => drop(self.torn_types.get_or_insert_with(|| name.clone())),
        }
    }
}
