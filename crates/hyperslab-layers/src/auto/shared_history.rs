//! Process-wide histories by storage key, so that containers opened in sequence learn from each other.

use super::history::History;
use super::history_file;
use super::storage_key::StorageKey;
use hyperslab_core::lock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum number of storage keys in memory.
const MOST: usize = 64;
/// Minimum interval between writes of the file.
const BETWEEN_SAVES: Duration = Duration::from_secs(1);
/// Delay before the first write, which takes 0.3 ms: shorter runs have hardly anything to gain from it.
const BEFORE_SAVING: Duration = Duration::from_millis(50);

/// The history of one storage key.
#[derive(Debug)]
pub(super) struct SharedHistory {
    place: StorageKey,
    folder: Option<PathBuf>,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    history: History,
    /// Number of open containers, and the time when the last was closed.
    open: usize,
    left: Option<Instant>,
    /// Earliest time of the next write of the file.
    save: Instant,
}

type Records = BTreeMap<(PathBuf, StorageKey), Arc<SharedHistory>>;

static RECORDS: Mutex<Records> = Mutex::new(BTreeMap::new());

/// Lock of all histories.
pub(crate) struct HistoriesGuard(MutexGuard<'static, Records>);

impl HistoriesGuard {
    /// Drops all histories; they are loaded again.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Blocks lookups until the result is dropped.
pub(crate) fn lock_histories() -> HistoriesGuard {
    HistoriesGuard(lock(&RECORDS))
}

impl SharedHistory {
    /// The history of a storage key, loaded from `folder`, and a diagnostic if loading failed. Without a folder, an empty
    /// history for this container alone.
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

    /// Accesses the history.
    pub fn with<T>(&self, look: impl FnOnce(&mut History) -> T) -> T {
        look(&mut lock(&self.inside).history)
    }

    /// Notes that a container is opened; returns the seconds since the last was closed, if no other is open.
    pub fn opened(&self) -> f64 {
        let mut inside = lock(&self.inside);
        inside.open += 1;
        let alone = inside.open == 1;
        inside.left.filter(|_| alone).map_or(0.0, |left| left.elapsed().as_secs_f64())
    }

    /// Notes that it is closed, and saves the history if something was `learnt`. Returns a diagnostic if saving failed.
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
