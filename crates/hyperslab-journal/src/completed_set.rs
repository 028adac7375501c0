//! The set of completed records of a segment.

/// A bit per record, indexed by consecutive sequence numbers.
#[derive(Debug, Default)]
pub(super) struct CompletedSet {
    first: u64,
    len: u64,
    done: Vec<u64>,
    pending: u64,
    /// All earlier records are completed.
    low: u64,
}

impl CompletedSet {
    /// An empty set whose first record has this number.
    pub fn new(first: u64) -> Self {
        Self { first, low: first, ..Self::default() }
    }

    /// Adds the next record. Descriptive records are completed from the start.
    pub fn push(&mut self, is_pending: bool) {
        let (word, bit) = ((self.len / 64) as usize, self.len % 64);
        if word == self.done.len() {
            self.done.push(0);
        }
        match is_pending {
            true => self.pending += 1,
            false => self.done[word] |= 1 << bit,
        }
        self.len += 1;
    }

    /// Marks a record as completed. Idempotent.
    pub fn finish(&mut self, sequence: u64) {
        let Some(at) = sequence.checked_sub(self.first).filter(|at| *at < self.len) else { return };
        let bit = 1 << (at % 64);
        let word = &mut self.done[(at / 64) as usize];
        if *word & bit == 0 {
            *word |= bit;
            self.pending -= 1;
        }
    }

    /// Number of records that are not completed.
    pub fn pending(&self) -> u64 {
        self.pending
    }

    /// The first record that is not completed, or the number after the last.
    pub fn first_pending(&mut self) -> u64 {
        while self.low < self.first + self.len {
            let at = self.low - self.first;
            let word = self.done[(at / 64) as usize] >> (at % 64);
            if word & 1 == 0 {
                break;
            }
            self.low += u64::from(word.trailing_ones());
        }
        self.low.min(self.first + self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pending_record_is_found_across_words() {
        let mut set = CompletedSet::new(7);
        (0..300).for_each(|n| set.push(n % 50 != 0));
        assert_eq!((set.pending(), set.first_pending()), (294, 8));
        (7..200).rev().for_each(|n| set.finish(n));
        set.finish(100);
        set.finish(10_000);
        assert_eq!((set.pending(), set.first_pending()), (294 - 189, 200));
        (200..307).for_each(|n| set.finish(n));
        assert_eq!((set.pending(), set.first_pending()), (0, 307));
    }
}
