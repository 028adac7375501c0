//! Journals that lie in a directory.

use super::file_names::{self, DAMAGED, FINISHED, HEAD, UNFINISHED};
use super::head_slots::{self, LiveSegments, SLOT, Sighting};
use super::header::{self, Header};
use super::heartbeat::Heartbeat;
use super::reader::Reader;
use super::storage::{JournalStorage, Lock, LogFile};
use super::{corrupt, failed};
use hyperslab_core::Result;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::SystemTime;

/// How far a journal has come, by the name of its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// There is no head: files that a removal left, or nobody knows what.
    Headless,
    /// The head is not complete; nothing was acknowledged.
    Unfinished,
    /// Its writes may not be in the container.
    Written,
    /// Its writes up to a damage are in the container; kept for people to look at.
    Damaged,
    /// Its writes are in the container; the files are still to be removed.
    Recovered,
}

impl Stage {
    fn ending(self) -> &'static str {
        match self {
            Self::Headless => "",
            Self::Unfinished => UNFINISHED,
            Self::Written => HEAD,
            Self::Damaged => DAMAGED,
            Self::Recovered => FINISHED,
        }
    }
}

/// The files of one journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundJournal {
    /// What their names begin with.
    pub stem: String,
    /// How far it has come.
    pub stage: Stage,
    /// Segments with records.
    segments: Vec<u64>,
    /// Segments with data.
    data: Vec<u64>,
    /// Which segments should be there, where the head says so and was read.
    live: Option<LiveSegments>,
}

/// All journals of a directory, by name. Other files are not looked at.
pub fn find(files: &dyn JournalStorage) -> Result<Vec<FoundJournal>> {
    let names = files.list().map_err(|cause| failed("look for journals", files.place(), cause))?;
    let mut found: BTreeMap<&str, FoundJournal> = BTreeMap::new();
    for name in &names {
        let stages = [Stage::Unfinished, Stage::Written, Stage::Damaged, Stage::Recovered];
        let head = stages.iter().find_map(|stage| Some((file_names::stem_of(name, stage.ending())?, *stage)));
        let part = || {
            let stem = &name[..name.find('.')?];
            Some((file_names::stem_of(stem, "")?, file_names::segment_of(name, stem)?))
        };
        let new = |stem: &str| {
            let (segments, data) = Default::default();
            FoundJournal { stem: stem.into(), stage: Stage::Headless, segments, data, live: None }
        };
        if let Some((stem, stage)) = head {
            let journal = found.entry(stem).or_insert_with(|| new(stem));
            journal.stage = journal.stage.max(stage);
        } else if let Some((stem, (number, is_meta))) = part() {
            let journal = found.entry(stem).or_insert_with(|| new(stem));
            match is_meta {
                true => journal.segments.push(number),
                false => journal.data.push(number),
            }
        }
    }
    Ok(found.into_values().collect())
}

impl FoundJournal {
    /// The name of its head.
    pub fn head(&self) -> String {
        format!("{}{}", self.stem, self.stage.ending())
    }

    /// Whether it has any records.
    pub fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Opens the head and tries to lock it. The lock is held as long as the file.
    pub fn open(&self, files: &dyn JournalStorage) -> Result<(Arc<dyn LogFile>, Lock)> {
        let failed = |cause| failed("open journal", format!("{}/{}", files.place(), self.head()), cause);
        let head = files.open(&self.head()).map_err(failed)?;
        let lock = head.lock().map_err(failed)?;
        Ok((head, lock))
    }

    /// Reads the head.
    pub fn header(&self, files: &dyn JournalStorage, head: &dyn LogFile) -> Result<Header> {
        let failed = |cause| failed("read journal", format!("{}/{}", files.place(), self.head()), cause);
        let mut bytes = vec![0; header::LONGEST + 1];
        let read = head.read_at(&mut bytes, 0).map_err(failed)?;
        let header = Header::decode(&bytes[..read]).map_err(|error| error.target(self.head()))?;
        match file_names::stem(&header) == self.stem {
            true => Ok(header),
            false => Err(corrupt("it is the head of another journal").target(self.head())),
        }
    }

    /// Reads what its writer saw of the container last, and has missing segments noticed from now on. `trusted`: the
    /// machine has not been started since, so that the head is as it was written.
    pub fn slots(&mut self, header: &Header, head: &dyn LogFile, trusted: bool) -> Option<Sighting> {
        header.identity?;
        let mut bytes = [0; 2 * SLOT];
        let read = head.read_at(&mut bytes, head_slots::begin(header.encode().len())).ok()?;
        let (seen, live) = bytes[..read].split_at_checked(SLOT)?;
        self.live = LiveSegments::decode(live).filter(|live| trusted || live.durable);
        Sighting::decode(seen)
    }

    /// The sign of life in its head, given by whoever recovers it. `None` where there is none.
    pub fn heartbeat(&self, files: &dyn JournalStorage, header: &Header) -> Option<Heartbeat> {
        header.identity?;
        let head = files.open(&self.head()).ok()?;
        Heartbeat::new(head, head_slots::begin(header.encode().len()), &header.container).ok()
    }

    /// When any of its files was changed last.
    pub fn modified(&self, files: &dyn JournalStorage) -> Option<SystemTime> {
        let segments = self.segments.iter().map(|number| file_names::meta(&self.stem, *number));
        let data = self.data.iter().map(|number| file_names::data(&self.stem, *number));
        let head = (self.stage != Stage::Headless).then(|| self.head());
        let each = segments.chain(data).chain(head).filter_map(|name| files.open(&name).ok()?.modified().ok()?);
        each.max()
    }

    /// Reads its writes from the first one.
    pub fn reader(&self, files: &Arc<dyn JournalStorage>, header: &Header) -> Reader {
        Reader::new(files.clone(), header.journal, &self.stem, self.segments.clone(), self.live)
    }

    /// Gives the head the name of another stage, for good.
    pub fn set_stage(&mut self, files: &dyn JournalStorage, stage: Stage) -> Result<()> {
        let (from, to) = (self.head(), format!("{}{}", self.stem, stage.ending()));
        let renamed = files.rename(&from, &to).and_then(|()| files.sync_directory());
        renamed.map_err(|cause| failed("finish journal", format!("{}/{from}", files.place()), cause))?;
        self.stage = stage;
        Ok(())
    }

    /// Removes all files, the head last. Files that are gone already are fine.
    pub fn remove(&self, files: &dyn JournalStorage) -> Result<()> {
        let segments = self.segments.iter().map(|number| file_names::meta(&self.stem, *number));
        let data = self.data.iter().map(|number| file_names::data(&self.stem, *number));
        let head = (self.stage != Stage::Headless).then(|| self.head());
        for name in segments.chain(data).chain(head) {
            match files.remove(&name) {
                Err(cause) if cause.kind() != ErrorKind::NotFound => {
                    return Err(failed("remove journal", format!("{}/{name}", files.place()), cause));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
