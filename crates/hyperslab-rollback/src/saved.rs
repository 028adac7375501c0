//! Set of pages whose old bytes are in the journal.

use std::collections::HashMap;
use std::ops::Range;

/// Granularity of saving, in bytes.
pub(crate) const PAGE: u64 = 4096;
const WORDS: u64 = 512;
const LEAF_PAGES: u64 = WORDS * 64;

/// One bit per page, in leaves of 4 KiB that exist where pages were saved: at most 1/32768 of the file's length, and
/// never more than the journal itself takes.
#[derive(Debug, Default)]
pub(crate) struct SavedPages {
    leaves: HashMap<u64, Box<[u64; WORDS as usize]>>,
}

impl SavedPages {
    fn has(&self, page: u64) -> bool {
        let within = page % LEAF_PAGES;
        self.leaves.get(&(page / LEAF_PAGES)).is_some_and(|leaf| leaf[(within / 64) as usize] & 1 << (within % 64) != 0)
    }

    /// Adds pages.
    pub(crate) fn add(&mut self, pages: Range<u64>) {
        for page in pages {
            let within = page % LEAF_PAGES;
            let leaf = self.leaves.entry(page / LEAF_PAGES).or_insert_with(|| Box::new([0; WORDS as usize]));
            leaf[(within / 64) as usize] |= 1 << (within % 64);
        }
    }

    /// The first run of pages of `pages` that are not in the set.
    pub(crate) fn first_missing(&self, pages: Range<u64>) -> Option<Range<u64>> {
        self.first_run(pages, false)
    }

    /// The first run of pages of `pages` that are in the set.
    pub(crate) fn first_saved(&self, pages: Range<u64>) -> Option<Range<u64>> {
        if self.leaves.is_empty() { None } else { self.first_run(pages, true) }
    }

    fn first_run(&self, pages: Range<u64>, saved: bool) -> Option<Range<u64>> {
        let first = pages.clone().find(|page| self.has(*page) == saved)?;
        let end = (first + 1..pages.end).find(|page| self.has(*page) != saved).unwrap_or(pages.end);
        Some(first..end)
    }

    pub(crate) fn clear(&mut self) {
        self.leaves.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_between_saved_pages_are_found() {
        let mut saved = SavedPages::default();
        assert_eq!(saved.first_missing(3..3), None);
        assert_eq!(saved.first_missing(3..9), Some(3..9));
        saved.add(4..6);
        saved.add(LEAF_PAGES - 1..LEAF_PAGES + 1);
        assert_eq!(saved.first_missing(3..9), Some(3..4));
        assert_eq!(saved.first_missing(4..9), Some(6..9));
        assert_eq!(saved.first_missing(4..6), None);
        assert_eq!((saved.first_saved(0..9), saved.first_saved(6..9)), (Some(4..6), None));
        assert_eq!(saved.first_missing(LEAF_PAGES - 1..LEAF_PAGES + 1), None);
        saved.clear();
        assert_eq!(saved.first_missing(4..6), Some(4..6));
    }
}
