//! A cache of chunks of equal size that gives up the least recently used one first.

use std::collections::HashMap;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Entry {
    chunk: u64,
    dirty: bool,
    older: u32,
    newer: u32,
}

/// Chunks by last use.
#[derive(Debug, Clone)]
pub(crate) struct Lru {
    most: u64,
    places: HashMap<u64, u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Lru {
    /// Holds at most `most` chunks.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, places: HashMap::new(), entries: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// Uses a chunk; false if it is not here.
    pub(crate) fn hit(&mut self, chunk: u64, dirties: bool) -> bool {
        let Some(&place) = self.places.get(&chunk) else { return false };
        self.unlink(place);
        self.link(place);
        self.entries[place as usize].dirty |= dirties;
        true
    }

    /// Puts a chunk in that is not here. Returns the chunk that had to go, and whether it was changed.
    pub(crate) fn put(&mut self, chunk: u64, dirty: bool) -> Option<(u64, bool)> {
        if self.most == 0 {
            return Some((chunk, dirty));
        }
        let gone = if self.places.len() as u64 >= self.most { self.take_oldest() } else { None };
        let entry = Entry { chunk, dirty, older: NONE, newer: NONE };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.places.insert(chunk, place);
        self.link(place);
        gone
    }

    /// Forgets a chunk; returns whether it was changed.
    pub(crate) fn remove(&mut self, chunk: u64) -> bool {
        let Some(place) = self.places.remove(&chunk) else { return false };
        self.unlink(place);
        self.free.push(place);
        self.entries[place as usize].dirty
    }

    /// The changed chunks, which are so no longer.
    pub(crate) fn flush(&mut self) -> Vec<u64> {
        let mut changed = Vec::new();
        for &place in self.places.values() {
            let entry = &mut self.entries[place as usize];
            if std::mem::replace(&mut entry.dirty, false) {
                changed.push(entry.chunk);
            }
        }
        changed.sort_unstable();
        changed
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.most);
    }

    fn take_oldest(&mut self) -> Option<(u64, bool)> {
        let place = self.oldest;
        if place == NONE {
            return None;
        }
        self.unlink(place);
        let Entry { chunk, dirty, .. } = self.entries[place as usize];
        self.places.remove(&chunk);
        self.free.push(place);
        Some((chunk, dirty))
    }

    fn unlink(&mut self, place: u32) {
        let Entry { older, newer, .. } = self.entries[place as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
    }

    fn link(&mut self, place: u32) {
        let newest = self.newest;
        let entry = &mut self.entries[place as usize];
        (entry.older, entry.newer) = (newest, NONE);
        match newest {
            NONE => self.oldest = place,
            newest => self.entries[newest as usize].newer = place,
        }
        self.newest = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut cache = Lru::new(2);
        assert_eq!((cache.put(1, true), cache.put(2, false)), (None, None));
        assert!(cache.hit(1, false) && !cache.hit(3, false));
        assert_eq!(cache.put(3, false), Some((2, false)));
        assert_eq!((cache.flush(), cache.flush()), (vec![1], vec![]));
        assert!(cache.hit(3, true) && cache.remove(3) && !cache.remove(3));
        cache.clear();
        assert!(!cache.hit(1, false));
        assert_eq!(Lru::new(0).put(9, true), Some((9, true)));
    }
}
