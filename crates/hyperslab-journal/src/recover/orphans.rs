//! What lies in a directory.

use crate::{
    ArrayInfo, Damage, FoundJournal, Header, JournalStorage, Lock, LogFile, RecoveredWrite, Sighting, Stage, find,
};
use hyperslab_core::{Datatype, Dims, Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How it stands with a journal.
#[derive(Debug)]
pub enum JournalStatus {
    /// A process writes it, or another recovery reads it. It is left alone.
    InUse,
    /// It was written on another machine, and nobody here can know whether its job has ended. It is left alone.
    Elsewhere,
    /// There is nothing in it that is not in the container.
    Empty,
    /// All its writes can be replayed. The last record may not be finished; that write was never acknowledged.
    Whole(Option<Damage>),
    /// Its writes can be replayed up to here. What comes behind is lost.
    Damaged(Damage),
    /// Its writes up to a damage are in the container. It is kept for people to inspect at.
    SetAside,
    /// Its writes are in the container; only its files are left.
    Recovered,
    /// It cannot be used, for this reason.
    Refused(Error),
}

/// An array that writes of a journal name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TouchedArray {
    pub dtype: Datatype,
    /// Extents that hold all writes.
    pub extents: Dims,
}

/// A journal in a directory. The directory is locked against other recoveries as long as this exists.
#[derive(Debug)]
pub struct OrphanedJournal {
    pub(super) found: FoundJournal,
    /// Whose it is, where that can be read.
    pub header: Option<Header>,
    /// How it stands.
    pub state: JournalStatus,
    /// Writes that may not be in the container yet.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    pub(super) done_before: u64,
    pub(super) arrays: BTreeMap<String, TouchedArray>,
    /// Two types were used for these names.
    pub(super) torn_types: Option<String>,
    /// What its writer saw of the container last, where the head says so.
    pub(super) sighting: Option<Sighting>,
    /// When any of its files was changed last.
    pub(super) modified: Option<SystemTime>,
    /// Whether its head is a copy of the one that was written.
    pub(super) is_copy: bool,
    /// The lock of all of them.
    _lock: Option<Arc<dyn LogFile>>,
}

impl OrphanedJournal {
    /// What its files are called, without the ends of their names.
    pub fn name(&self) -> &str {
        &self.found.stem
    }

    /// Whether it holds writes for a replay.
    pub fn can_be_replayed(&self) -> bool {
        matches!(self.state, JournalStatus::Whole(_) | JournalStatus::Damaged(_))
    }

    /// Removes a head that was never finished, so that nobody knows whose it is. A writer that is about to finish it makes
    /// another one.
    pub fn remove_unfinished(&self, files: &Arc<dyn JournalStorage>) -> Result<()> {
        let unfinished = self.found.stage == Stage::Unfinished && matches!(self.state, JournalStatus::Empty);
        if unfinished { self.found.remove(&**files) } else { Ok(()) }
    }

    /// Removes all its files, whatever is in them. Refuses a journal that may be in use.
    pub fn discard(&self, files: &Arc<dyn JournalStorage>) -> Result<()> {
        match self.state {
            JournalStatus::InUse | JournalStatus::Elsewhere => {
                Err(Error::unsupported("discard", "it may be in use").target(&self.found.stem))
            }
            _ => self.found.remove(&**files),
        }
    }

    /// Whether only its files have to go.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, JournalStatus::Empty | JournalStatus::Recovered)
    }
}

/// All journals of a directory, checked byte by byte, by name. `elsewhere_ended`: jobs of other machines have ended.
pub fn survey(files: &Arc<dyn JournalStorage>, elsewhere_ended: bool) -> Result<Vec<OrphanedJournal>> {
    // One lock for all, so that no number of journals needs more descriptors.
    let lock = files.whole().ok();
    let others = match lock.as_ref().map(|whole| whole.lock()) {
        Some(Ok(Lock::Busy)) => true,
        Some(Err(cause)) => return Err(crate::failed("lock journal directory", files.place(), cause)),
        _ => false,
    };
    let at = Survey { files, elsewhere_ended, others, lock: lock.filter(|_| !others) };
    let each = stable_listing(&**files)?.into_iter().map(|found| inspect(&at, found));
    // What vanished meanwhile was removed by whoever used it.
    let is_stored = |left: &OrphanedJournal| match &left.state {
        JournalStatus::Refused(error) if error.kind() == ErrorKind::NotFound && left.found.stage != Stage::Headless => {
            !files.open(&left.found.head()).is_err_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
        }
        _ => true,
    };
    Ok(each.filter(is_stored).collect())
}

/// A list made while journals come and go may lack heads that are there: then it is made again.
fn stable_listing(files: &dyn JournalStorage) -> Result<Vec<FoundJournal>> {
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

/// Where journals are looked at.
struct Survey<'a> {
    files: &'a Arc<dyn JournalStorage>,
    elsewhere_ended: bool,
    /// Another recovery is at work.
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
        // Whose a journal in use is may be read; it is complete once it has its name.
        let header = self.found.header(&**files, &*head);
        self.header = header.as_ref().ok().cloned();
        if lock == Lock::Busy || at.others {
            return Ok(JournalStatus::InUse);
        }
        if self.found.stage == Stage::Unfinished && header.is_err() {
            // Being written this moment, or never finished: nothing was acknowledged.
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
            // Complete and unlocked: its process ended before it had a journal.
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

    /// Reads all of it, once for what is done, and once more for the rest, its elements included.
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
