//! Which chunks of an array are there, in little memory.

use std::collections::HashMap;

const WORDS: usize = 64;
const PAGE: u64 = WORDS as u64 * 64;

/// A set of chunks by number: a bit for each that is near another, nothing for the rest.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkBitmap {
    /// Every chunk is there.
    all: bool,
    /// Every chunk below this number is there.
    first: u64,
    pages: HashMap<u64, Box<[u64; WORDS]>>,
    /// How many are there besides.
    len: u64,
}

impl ChunkBitmap {
    pub(crate) fn all() -> Self {
        Self { all: true, ..Self::default() }
    }

    pub(crate) fn contains(&self, chunk: u64) -> bool {
        let (page, at) = (chunk / PAGE, chunk % PAGE);
        self.all
            || chunk < self.first
            || self.pages.get(&page).is_some_and(|words| words[(at / 64) as usize] >> (at % 64) & 1 == 1)
    }

    /// Adds a chunk; returns whether it was not there.
    pub(crate) fn insert(&mut self, chunk: u64) -> bool {
        if self.all || chunk < self.first {
            return false;
        }
        let (page, at) = (chunk / PAGE, chunk % PAGE);
        let words = self.pages.entry(page).or_insert_with(|| Box::new([0; WORDS]));
        let (word, bit) = (&mut words[(at / 64) as usize], 1u64 << (at % 64));
        let new = *word & bit == 0;
        *word |= bit;
        self.len += u64::from(new);
        new
    }

    /// Adds the chunks from the first to before the last number; returns how many were not there, and how many runs of
    /// such that begin elsewhere than at `next`. In steps of 64.
    pub(crate) fn insert_range(&mut self, from: u64, to: u64, next: u64) -> (u64, u64) {
        let from = if self.all { to } else { from.max(self.first.min(to)) };
        let (mut new, mut runs, mut at, mut next) = (0, 0, from, next);
        while at < to {
            let (page, word, bit) = (at / PAGE, (at % PAGE / 64) as usize, at % 64);
            let many = (64 - bit).min(to - at);
            let wanted = (u64::MAX >> (64 - many)) << bit;
            let words = self.pages.entry(page).or_insert_with(|| Box::new([0; WORDS]));
            let missing = wanted & !words[word];
            words[word] |= wanted;
            // A run begins where the chunk before is not missing too.
            let begins = missing & !(missing << 1);
            let goes_on = next / 64 == at / 64 && begins >> (next % 64) & 1 == 1;
            runs += u64::from(begins.count_ones()) - u64::from(goes_on);
            new += u64::from(missing.count_ones());
            if missing != 0 {
                next = at - bit + 64 - u64::from(missing.leading_zeros());
            }
            at += many;
        }
        self.len += new;
        (new, runs)
    }

    /// The same after the array grew from `total` chunks: all of those are there, no others.
    pub(crate) fn without_all(mut self, total: u64) -> Self {
        if self.all {
            self.first = self.first.max(total);
            self.all = false;
        }
        self
    }

    /// How many there are of `total`.
    pub(crate) fn len(&self, total: u64) -> u64 {
        if self.all { total } else { (self.first + self.len).min(total) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_known_once_inserted() {
        let mut known = ChunkBitmap::default();
        assert!(known.insert(5) && known.insert(1 << 40) && !known.insert(5));
        assert!(known.contains(5) && known.contains(1 << 40) && !known.contains(6));
        assert_eq!((known.len(99), ChunkBitmap::all().len(99)), (2, 99));
        assert!(ChunkBitmap::all().contains(7));
        let mut grown = ChunkBitmap::all().without_all(10);
        assert!(grown.contains(9) && !grown.contains(10) && grown.insert(10) && !grown.insert(3));
        assert_eq!(grown.len(100), 11);
    }

    #[test]
    fn ranges_are_inserted_like_single_chunks() {
        let mut known = ChunkBitmap::default();
        assert_eq!(known.insert_range(10, 300, u64::MAX), (290, 1));
        assert_eq!(known.insert_range(10, 300, 300), (0, 0));
        assert_eq!(known.insert_range(0, 310, 300), (20, 2));
        assert_eq!(known.insert_range(299, 312, 310), (2, 0));
        assert_eq!(known.insert_range(312, 330, 312), (18, 0));
        let (mut ranges, mut single) = (ChunkBitmap::default(), ChunkBitmap::default());
        for i in 0u64..200 {
            let from = i * i * 37 % 9000;
            let to = from + i % 150;
            let new = (from..to).filter(|&chunk| single.insert(chunk)).count() as u64;
            assert_eq!(ranges.insert_range(from, to, u64::MAX).0, new);
        }
        assert_eq!(ChunkBitmap::all().insert_range(0, 9, 0), (0, 0));
    }
}
