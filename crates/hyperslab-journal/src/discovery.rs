//! Discovery: finding the journals in a directory.

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

/// The stage of a journal, by the suffix of its head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// No head: remains of a removal, or foreign files.
    Headless,
    /// The head is incomplete; nothing was acknowledged.
    Unfinished,
    /// Writes may be missing in the container.
    Written,
    /// Recovered up to a damaged record; kept for inspection.
    Damaged,
    /// Recovered; only the files are left to be removed.
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
    /// Common prefix of the file names.
    pub stem: String,
    /// Stage by the name of the head.
    pub stage: Stage,
    /// Numbers of the metadata log segments.
    segments: Vec<u64>,
    /// Numbers of the data log segments.
    data: Vec<u64>,
    /// Live segments, if the head was read and says so.
    live: Option<LiveSegments>,
    /// Whether the machine was started anew since it was written.
    restarted: bool,
}

/// Lists the journals of a directory, by name. Ignores other files.
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
            FoundJournal { stem: stem.into(), stage: Stage::Headless, segments, data, live: None, restarted: false }
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
    /// File name of the head.
    pub fn head(&self) -> String {
        format!("{}{}", self.stem, self.stage.ending())
    }

    /// Whether there are metadata segments.
    pub fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Opens the head and tries to lock it, until the file is closed.
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

    /// Reads the writer's last sighting of the container, and enables the check for missing segments. `trusted`: the
    /// machine was not rebooted since, so that the head is current even if not durable.
    pub fn slots(&mut self, header: &Header, head: &dyn LogFile, trusted: bool) -> Option<Sighting> {
        self.restarted = header.process.before_restart();
        header.identity?;
        let mut bytes = [0; 2 * SLOT];
        let read = head.read_at(&mut bytes, head_slots::begin(header.encode().len())).ok()?;
        let (seen, live) = bytes[..read].split_at_checked(SLOT)?;
        self.live = LiveSegments::decode(live).filter(|live| trusted || live.durable);
        if let Some(live) = &mut self.live
            && !(trusted || live.each_write)
        {
            live.least = 0;
        }
        Sighting::decode(seen)
    }

    /// The heartbeat in the head, taken over by a recovery. `None` if the head has no slot.
    pub fn heartbeat(&self, files: &dyn JournalStorage, header: &Header) -> Option<Heartbeat> {
        header.identity?;
        let head = files.open(&self.head()).ok()?;
        Heartbeat::new(head, head_slots::begin(header.encode().len()), &header.container).ok()
    }

    /// Time of the last modification of any of its files.
    pub fn modified(&self, files: &dyn JournalStorage) -> Option<SystemTime> {
        let segments = self.segments.iter().map(|number| file_names::meta(&self.stem, *number));
        let data = self.data.iter().map(|number| file_names::data(&self.stem, *number));
        let head = (self.stage != Stage::Headless).then(|| self.head());
        let each = segments.chain(data).chain(head).filter_map(|name| files.open(&name).ok()?.modified().ok()?);
        each.max()
    }

    /// A reader of its writes, from the first.
    pub fn reader(&self, files: &Arc<dyn JournalStorage>, header: &Header) -> Reader {
        Reader::new(files.clone(), header.journal, &self.stem, self.segments.clone(), self.live, self.restarted)
    }

    /// Renames the head to another stage, durably.
    pub fn set_stage(&mut self, files: &dyn JournalStorage, stage: Stage) -> Result<()> {
        let (from, to) = (self.head(), format!("{}{}", self.stem, stage.ending()));
        let renamed = files.rename(&from, &to).and_then(|()| files.sync_directory());
        renamed.map_err(|cause| failed("finish journal", format!("{}/{from}", files.place()), cause))?;
        self.stage = stage;
        Ok(())
    }

    /// Removes all files, the head last. Missing files are no error.
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
