//! The history of a place while the process runs: containers opened one after the other learn from each other.

use super::history::History;
use super::history_file;
use super::storage_key::StorageKey;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Places that a process remembers.
const MOST: usize = 64;
/// The file is not written more often than this.
const BETWEEN_SAVES: Duration = Duration::from_secs(1);
/// Nor for the first time before this: it takes 0.3 ms, and a run that is over sooner has hardly anything to gain the next time.
const BEFORE_SAVING: Duration = Duration::from_millis(50);

/// What is known of a place.
#[derive(Debug)]
pub(super) struct SharedHistory {
    place: StorageKey,
    folder: Option<PathBuf>,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    history: History,
    /// Containers that are open, and when the last one was closed.
    open: usize,
    left: Option<Instant>,
    /// When the file may be written next.
    save: Instant,
}

type Records = BTreeMap<(PathBuf, StorageKey), Arc<SharedHistory>>;

static RECORDS: Mutex<Records> = Mutex::new(BTreeMap::new());

/// The lock of all records.
pub(crate) struct HistoriesGuard(MutexGuard<'static, Records>);

impl HistoriesGuard {
    /// Forgets all: they are read from their files again.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Has nobody look for a record until the result is dropped.
pub(crate) fn lock_histories() -> HistoriesGuard {
    HistoriesGuard(lock(&RECORDS))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedHistory {
    /// That of a place, with what earlier runs left in the folder, and what was wrong with that. Without a folder it begins
    /// anew, for this container alone.
    pub fn of(folder: Option<&Path>, place: StorageKey) -> (Arc<Self>, Option<String>) {
        let Some(folder) = folder else { return (Self::new(None, place, History::default()), None) };
        let key = (folder.to_path_buf(), place.clone());
        let mut records = lock(&RECORDS);
        if let Some(record) = records.get(&key) {
            return (record.clone(), None);
        }
        let (history, wrong) = match history_file::load(folder, &place) {
            Ok(history) => (history, None),
            Err(why) => (History::default(), Some(why)),
        };
        let record = Self::new(Some(folder.to_path_buf()), place, history);
        if records.len() >= MOST {
            records.clear();
        }
        records.insert(key, record.clone());
        (record, wrong)
    }

    fn new(folder: Option<PathBuf>, place: StorageKey, history: History) -> Arc<Self> {
        let inside = Inside { history, open: 0, left: None, save: Instant::now() + BEFORE_SAVING };
        Arc::new(Self { place, folder, inside: Mutex::new(inside) })
    }

    /// Looks at the history, or adds to it.
    pub fn with<T>(&self, look: impl FnOnce(&mut History) -> T) -> T {
        look(&mut lock(&self.inside).history)
    }

    /// A container is opened; returns the seconds since the last one was closed, if none is open.
    pub fn opened(&self) -> f64 {
        let mut inside = lock(&self.inside);
        inside.open += 1;
        let alone = inside.open == 1;
        inside.left.filter(|_| alone).map_or(0.0, |left| left.elapsed().as_secs_f64())
    }

    /// It is closed. `learnt`: there is something new to keep. Returns what was wrong with keeping it.
    pub fn closed(&self, learnt: bool) -> Option<String> {
        let mut inside = lock(&self.inside);
        inside.open = inside.open.saturating_sub(1);
        let now = Instant::now();
        inside.left = Some(now);
        let folder = self.folder.as_ref().filter(|_| learnt && now >= inside.save)?;
        inside.save = now + BETWEEN_SAVES;
        let history = inside.history.clone();
        drop(inside);
        history_file::save(folder, &self.place, &history).err()
    }
}
