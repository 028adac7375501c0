//! Extent locks of one object: who holds which bytes, and how often they change hands.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Locks as a striped file system grants them: from the first byte asked for up to where another client's begins. Whoever is in
/// the way keeps what lies before, and has to ask again for what comes after.
#[derive(Debug, Default)]
pub struct ExtentLocks {
    /// By first byte: one past the last, and the client.
    held: BTreeMap<u64, (u64, usize)>,
}

impl ExtentLocks {
    /// Asks for bytes; returns how many locks of others had to be called back.
    pub fn ask(&mut self, client: usize, from: u64, to: u64) -> usize {
        let before = self.held.range(..=from).next_back().map(|(start, lock)| (*start, *lock));
        if let Some((_, (end, holder))) = before
            && holder == client
            && end >= to
        {
            return 0;
        }
        let mut gone: Vec<(u64, usize)> = Vec::new();
        if let Some((start, (_, holder))) = before.filter(|(_, (end, _))| *end > from) {
            gone.push((start, holder));
        }
        gone.extend(self.held.range(from.saturating_add(1)..to.max(from + 1)).map(|(start, lock)| (*start, lock.1)));
        let others = gone.iter().filter(|(_, holder)| *holder != client).count();
        for (start, holder) in gone {
            self.held.remove(&start);
            // What lies before is still asked for by its holder, and granted at once.
            if start < from {
                self.held.insert(start, (from, holder));
            }
        }
        let end = self.held.range(to..).next().map_or(u64::MAX, |(start, _)| *start);
        self.held.insert(from, (end, client));
        others
    }
}

/// Bytes of a page of a client's cache.
pub const PAGE: u64 = 4096;
/// Ranges of one object that are remembered; older ones matter no more.
const MOST_HELD: usize = 4096;

/// The locks of all objects of a phase.
#[derive(Debug, Default)]
pub struct LockTables {
    by_object: HashMap<(u64, (u64, u64)), ExtentLocks>,
    known: HashSet<(u64, (u64, u64), usize)>,
}

impl LockTables {
    /// Asks for bytes of an object at a target; returns how many locks of others had to be called back, which the first time
    /// is what every client goes through once.
    pub fn ask(&mut self, target: u64, object: (u64, u64), client: usize, from: u64, to: u64) -> usize {
        let locks = self.by_object.entry((target, object)).or_default();
        if locks.held.len() > MOST_HELD {
            locks.held.clear();
        }
        // Locks are of whole pages.
        let others = locks.ask(client, from / PAGE * PAGE, to.next_multiple_of(PAGE));
        if self.known.insert((target, object, client)) { 0 } else { others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_alone_asks_once() {
        let mut locks = ExtentLocks::default();
        assert_eq!((0..9).map(|at| locks.ask(1, at * 10, at * 10 + 10)).sum::<usize>(), 0);
        assert_eq!(locks.held.len(), 1);
    }

    #[test]
    fn clients_in_turn_take_the_lock_from_each_other() {
        let mut locks = ExtentLocks::default();
        let taken: Vec<usize> = (0..8).map(|at| locks.ask(at % 2, at as u64 * 10, at as u64 * 10 + 10)).collect();
        assert_eq!(taken, [0, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn clients_in_regions_of_their_own_meet_once_at_most() {
        let mut locks = ExtentLocks::default();
        let mut taken = 0;
        for at in 0..50 {
            taken += (0..10)
                .map(|client| locks.ask(client, client as u64 * 1000 + at, client as u64 * 1000 + at + 1))
                .sum::<usize>();
        }
        assert!(taken < 20, "{taken}");
    }
}
