//! libhdf5's chunk cache: slots by a hash of the chunk's place, and chunks given up by its own rules.

use hyperslab_core::ChunkGrid;

/// How far the search for a chunk that is used up goes; libhdf5 looks at most of the list.
const LOOKED_AT: usize = 512;
const NONE: u32 = u32::MAX;

/// A chunk that had to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evicted {
    pub(crate) chunk: u64,
    pub(crate) dirty: bool,
}

#[derive(Debug, Clone)]
struct Entry {
    chunk: u64,
    slot: u32,
    dirty: bool,
    /// Bytes that nobody has read, and that nobody has written.
    unread: u64,
    unwritten: u64,
    before: u32,
    after: u32,
}

/// The chunks kept of one array. All have the same size.
#[derive(Debug, Clone)]
pub(crate) struct ChunkCache {
    chunk_bytes: u64,
    most: u64,
    w0: f64,
    /// Entry by slot.
    slots: Vec<u32>,
    /// How far each coordinate is shifted in the hash.
    bits: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// First to go, last to go.
    head: u32,
    tail: u32,
    used: u64,
    /// Entries that are used up: wholly read or wholly written.
    used_up: u64,
}

impl ChunkCache {
    /// Holds what fits into `bytes` and `slots`, of chunks of `chunk_bytes`.
    pub(crate) fn new(grid: &ChunkGrid, chunk_bytes: u64, bytes: u64, slots: u64, w0: f64) -> Self {
        let fits = chunk_bytes > 0 && chunk_bytes <= bytes;
        Self {
            chunk_bytes,
            most: if fits { bytes / chunk_bytes } else { 0 },
            w0,
            // More slots than chunks are of no use.
            slots: if fits { vec![NONE; slots.min(1 << 24) as usize] } else { Vec::new() },
            bits: grid.counts().iter().map(|&n| n.max(1).next_power_of_two().trailing_zeros()).collect(),
            entries: Vec::new(),
            free: Vec::new(),
            head: NONE,
            tail: NONE,
            used: 0,
            used_up: 0,
        }
    }

    /// Whether chunks fit at all.
    pub(crate) fn takes_chunks(&self) -> bool {
        self.most > 0 && !self.slots.is_empty()
    }

    fn slot(&self, at: &[u64]) -> usize {
        let mut value = at.first().copied().unwrap_or(0);
        for (coordinate, &bits) in at.iter().zip(&self.bits).skip(1) {
            value = value.wrapping_shl(bits) ^ coordinate;
        }
        (value % self.slots.len() as u64) as usize
    }

    fn find(&self, chunk: u64, at: &[u64]) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let entry = self.slots[self.slot(at)];
        (entry != NONE && self.entries[entry as usize].chunk == chunk).then_some(entry)
    }

    /// Uses a chunk that is here; false if it is not.
    pub(crate) fn hit(&mut self, chunk: u64, at: &[u64], bytes: u64, writes: bool) -> bool {
        let Some(entry) = self.find(chunk, at) else { return false };
        self.move_back(entry);
        self.note_use(entry, bytes, writes);
        true
    }

    /// Puts a chunk in that is not here. Returns what had to go for it.
    pub(crate) fn put(&mut self, chunk: u64, at: &[u64], bytes: u64, writes: bool, gone: &mut Vec<Evicted>) {
        let slot = self.slot(at);
        if self.slots[slot] != NONE {
            gone.push(self.evict(self.slots[slot]));
        }
        self.prune(gone);
        let whole = self.chunk_bytes;
        let new = Entry {
            chunk,
            slot: slot as u32,
            dirty: false,
            unread: whole,
            unwritten: whole,
            before: self.tail,
            after: NONE,
        };
        let entry = match self.free.pop() {
            Some(place) => {
                self.entries[place as usize] = new;
                place
            }
            None => {
                self.entries.push(new);
                (self.entries.len() - 1) as u32
            }
        };
        match self.tail {
            NONE => self.head = entry,
            tail => self.entries[tail as usize].after = entry,
        }
        self.tail = entry;
        self.slots[slot] = entry;
        self.used += 1;
        self.note_use(entry, bytes, writes);
    }

    fn note_use(&mut self, entry: u32, bytes: u64, writes: bool) {
        let before = self.is_used_up(entry);
        let used = &mut self.entries[entry as usize];
        if writes {
            used.dirty = true;
            used.unwritten -= used.unwritten.min(bytes);
        } else {
            used.unread -= used.unread.min(bytes);
        }
        let after = self.is_used_up(entry);
        self.used_up = self.used_up + u64::from(after) - u64::from(before);
    }

    fn is_used_up(&self, entry: u32) -> bool {
        let Entry { unread, unwritten, .. } = self.entries[entry as usize];
        let whole = self.chunk_bytes;
        (unread == 0 && (unwritten == 0 || unwritten == whole)) || (unread == whole && unwritten == 0)
    }

    /// A chunk that is used goes one place back, no further.
    fn move_back(&mut self, entry: u32) {
        let Entry { before, after, .. } = self.entries[entry as usize];
        if after == NONE {
            return;
        }
        let next = self.entries[after as usize].after;
        match next {
            NONE => self.tail = entry,
            next => self.entries[next as usize].before = entry,
        }
        match before {
            NONE => self.head = after,
            before => self.entries[before as usize].after = after,
        }
        self.entries[after as usize].before = before;
        self.entries[after as usize].after = entry;
        let moved = &mut self.entries[entry as usize];
        (moved.before, moved.after) = (after, next);
    }

    /// Makes room for one more: chunks that are used up go first, if they are among the first part of the list.
    fn prune(&mut self, gone: &mut Vec<Evicted>) {
        while self.used + 1 > self.most && self.head != NONE {
            let mut victim = self.head;
            if self.used_up > 0 {
                let reach = ((self.used as f64 * self.w0) as usize + 1).min(LOOKED_AT);
                let mut at = self.head;
                for _ in 0..reach {
                    if at == NONE {
                        break;
                    }
                    if self.is_used_up(at) {
                        victim = at;
                        break;
                    }
                    at = self.entries[at as usize].after;
                }
            }
            gone.push(self.evict(victim));
        }
    }

    fn evict(&mut self, entry: u32) -> Evicted {
        self.used_up -= u64::from(self.is_used_up(entry));
        let Entry { chunk, slot, dirty, before, after, .. } = self.entries[entry as usize];
        match before {
            NONE => self.head = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.tail = before,
            after => self.entries[after as usize].before = before,
        }
        self.slots[slot as usize] = NONE;
        self.free.push(entry);
        self.used -= 1;
        Evicted { chunk, dirty }
    }

    /// Chunks that are stored by a flush, which keeps all.
    pub(crate) fn flush(&mut self) -> Vec<u64> {
        let mut stored = Vec::new();
        let mut at = self.head;
        while at != NONE {
            let entry = &mut self.entries[at as usize];
            if std::mem::replace(&mut entry.dirty, false) {
                stored.push(entry.chunk);
            }
            at = entry.after;
        }
        stored
    }

    /// Forgets all; what was changed must have been flushed.
    pub(crate) fn clear(&mut self) {
        self.slots.fill(NONE);
        self.entries.clear();
        self.free.clear();
        (self.head, self.tail, self.used, self.used_up) = (NONE, NONE, 0, 0);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn cache(chunks: u64, kept: u64) -> ChunkCache {
        let grid = ChunkGrid::new(&[chunks], &[1]).unwrap();
        ChunkCache::new(&grid, 10, kept * 10, 521, 0.75)
    }

    fn put(cache: &mut ChunkCache, chunk: u64, bytes: u64, writes: bool) -> Vec<u64> {
        let mut gone = Vec::new();
        if !cache.hit(chunk, &[chunk], bytes, writes) {
            cache.put(chunk, &[chunk], bytes, writes, &mut gone);
        }
        gone.iter().map(|evicted| evicted.chunk).collect()
    }

    #[test]
    fn used_up_chunks_go_before_older_ones() {
        let mut cache = cache(100, 3);
        assert!(put(&mut cache, 1, 4, false).is_empty());
        assert!(put(&mut cache, 2, 10, false).is_empty());
        assert!(put(&mut cache, 3, 4, false).is_empty());
        assert_eq!(put(&mut cache, 4, 4, false), [2]);
        assert_eq!(put(&mut cache, 5, 4, false), [1]);
        // Using a chunk moves it one place back only: 4 stays behind 3.
        assert!(put(&mut cache, 3, 4, false).is_empty());
        assert_eq!(put(&mut cache, 6, 4, false), [4]);
        assert_eq!(put(&mut cache, 7, 4, false), [3]);
    }

    #[test]
    fn chunks_of_one_slot_replace_each_other() {
        let mut cache = cache(2000, 1000);
        assert!(put(&mut cache, 0, 4, true).is_empty());
        assert_eq!(put(&mut cache, 521, 4, false), [0]);
        assert_eq!(cache.flush(), [] as [u64; 0]);
        assert_eq!(put(&mut cache, 0, 4, true), [521]);
        assert_eq!((cache.flush(), cache.flush()), (vec![0], vec![]));
        cache.clear();
        assert!(!cache.hit(0, &[0], 1, false));
    }

    #[test]
    fn chunks_that_do_not_fit_are_not_taken() {
        assert!(!cache(10, 0).takes_chunks() && cache(10, 1).takes_chunks());
    }
}
