//! The index of one array: its entries, and resolution of selections.

use super::entry::{DataLocation, Entry, IndexUpdate};
use crate::interval_map::IntervalMap;
use hyperslab_core::{Result, Selection};
use std::sync::Arc;

/// Entries in order: those of the stored index, then this rank's since the last flush.
#[derive(Debug, Default)]
pub(super) struct Index {
    stored: Entries,
    waiting: Entries,
}

/// Entries by the range of their elements in row-major order.
#[derive(Debug, Default)]
struct Entries {
    all: Vec<Arc<Entry>>,
    spans: IntervalMap<usize>,
}

impl Entries {
    fn push(&mut self, entry: Arc<Entry>, shape: &[u64]) {
        if let Some((first, last)) = range(&entry.selection, shape) {
            self.spans.insert(first, last, self.all.len());
            self.all.push(entry);
        }
    }

    fn rebuild(&mut self, shape: &[u64]) {
        let all = std::mem::take(self).all;
        all.into_iter().for_each(|entry| self.push(entry, shape));
    }

    /// Entries that may overlap the range, newest first.
    fn overlapping(&self, (first, last): (u64, u64)) -> impl Iterator<Item = &Arc<Entry>> {
        let mut found: Vec<usize> = self.spans.overlapping(first, last).copied().collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|at| &self.all[at])
    }
}

fn range(selection: &Selection, shape: &[u64]) -> Option<(u64, u64)> {
    Some((selection.first_byte(shape, 1)?, selection.last_byte(shape, 1)?))
}

impl Index {
    pub fn is_empty(&self) -> bool {
        self.stored.all.is_empty() && self.waiting.all.is_empty()
    }

    pub fn has_stored(&self) -> bool {
        !self.stored.all.is_empty()
    }

    /// All entries.
    pub fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.stored.all.iter().chain(&self.waiting.all)
    }

    /// Entries that are not yet published.
    pub fn waiting(&self) -> &[Arc<Entry>] {
        &self.waiting.all
    }

    /// Adds a write of this rank.
    pub fn push(&mut self, entry: Entry, shape: &[u64]) {
        self.waiting.push(Arc::new(entry), shape);
    }

    /// Applies an index update of a rank.
    pub fn store(&mut self, said: IndexUpdate, shape: &[u64]) {
        if said.cleared {
            self.stored = Entries::default();
        }
        said.entries.into_iter().for_each(|entry| self.stored.push(Arc::new(entry), shape));
    }

    /// Notes that the first `count` unpublished entries are stored.
    pub fn no_longer_waiting(&mut self, count: usize, shape: &[u64]) {
        let rest = std::mem::take(&mut self.waiting).all.split_off(count);
        rest.into_iter().for_each(|entry| self.waiting.push(entry, shape));
    }

    /// Rebuilds the ranges after a change of shape.
    pub fn reshape(&mut self, shape: &[u64]) {
        self.stored.rebuild(shape);
        self.waiting.rebuild(shape);
    }

    /// Entries that may overlap the selection, newest first.
    pub fn overlapping(&self, selection: &Selection, shape: &[u64]) -> Vec<Arc<Entry>> {
        let Some(range) = range(selection, shape) else { return Vec::new() };
        self.waiting.overlapping(range).chain(self.stored.overlapping(range)).cloned().collect()
    }

    /// Whether an entry overlaps the selection.
    pub fn overlaps(&self, selection: &Selection, shape: &[u64]) -> bool {
        self.overlapping(selection, shape).iter().any(|entry| entry.selection.overlaps(selection))
    }
}

/// Elements whose newest version is in one entry.
#[derive(Debug)]
pub(super) struct Part {
    pub elements: Selection,
    pub entry: Arc<Entry>,
}

/// The resolved locations of a selection.
#[derive(Debug)]
pub(super) struct Resolved {
    /// Disjoint parts of whole elements.
    pub whole: Vec<Part>,
    /// Partial elements, to be overlaid in this order.
    pub over: Vec<Part>,
    /// Elements without entries: they are in the array.
    pub rest: Selection,
}

/// Resolves the locations of a selection. `entries` may overlap it, newest first.
pub(super) fn resolve(entries: Vec<Arc<Entry>>, selection: &Selection) -> Result<Resolved> {
    let (mut rest, mut whole, mut over) = (selection.clone(), Vec::new(), Vec::new());
    for entry in entries {
        if rest.is_empty() {
            break;
        }
        let elements = rest.intersect(&entry.selection)?;
        if elements.is_empty() {
            continue;
        }
        if entry.pieces.is_empty() {
            rest = rest.subtract(&elements)?;
            whole.push(Part { elements, entry });
        } else {
            // Earlier entries count for the other bytes.
            over.push(Part { elements, entry });
        }
    }
    over.reverse();
    Ok(Resolved { whole, over, rest })
}

impl Resolved {
    /// Whether all elements are in the array.
    pub fn nothing_logged(&self) -> bool {
        self.whole.iter().chain(&self.over).all(|part| part.entry.place == DataLocation::Array)
    }

    /// The elements of which some bytes are in the log.
    pub fn logged(&self, rank: usize) -> Result<Selection> {
        let parts = self.whole.iter().chain(&self.over).filter(|part| part.entry.place != DataLocation::Array);
        Selection::union(rank, parts.flat_map(|part| part.elements.slabs().iter().cloned()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::entry::Piece;
    use super::*;

    fn entry(first: u64, count: u64, pieces: &[Piece], place: DataLocation) -> Entry {
        Entry { selection: Selection::dense(&[first], &[count]).unwrap(), pieces: pieces.to_vec(), place }
    }

    const LOG: DataLocation = DataLocation::Log { volume: 0, offset: 0 };

    #[test]
    fn the_newest_entry_of_an_element_counts() {
        let (shape, mut index) = ([100], Index::default());
        let said = |entries| IndexUpdate { array: "a".into(), cleared: false, entries };
        index.store(said(vec![entry(0, 50, &[], LOG), entry(10, 10, &[], DataLocation::Array)]), &shape);
        index.push(entry(15, 10, &[], LOG), &shape);
        index.push(entry(0, 100, &[Piece { offset: 0, len: 1 }], LOG), &shape);
        let all = Selection::all(&shape).unwrap();
        let resolved = resolve(index.overlapping(&all, &shape), &all).unwrap();
        let of = |part: &Part| (part.elements.clone(), part.entry.place);
        let dense = |first, count| Selection::dense(&[first], &[count]).unwrap();
        assert_eq!(of(&resolved.whole[0]), (dense(15, 10), LOG));
        assert_eq!(of(&resolved.whole[1]), (dense(10, 5), DataLocation::Array));
        assert_eq!(resolved.whole[2].elements, dense(0, 10).union_with(&dense(25, 25)).unwrap());
        assert_eq!(resolved.rest, dense(50, 50));
        assert_eq!((resolved.over.len(), resolved.over[0].elements.len()), (1, 100));
        assert_eq!(resolved.logged(1).unwrap(), all);
        assert!(index.overlapping(&dense(60, 1), &[100]).len() == 1);
        index.no_longer_waiting(2, &shape);
        assert!(index.waiting().is_empty() && !index.overlaps(&dense(60, 1), &shape));
        index.store(IndexUpdate { array: "a".into(), cleared: true, entries: Vec::new() }, &shape);
        assert!(index.is_empty());
    }

    /// However many writes there are, only those near a read are looked at.
    #[test]
    fn few_entries_are_looked_at() {
        let (shape, mut index) = ([100_000, 8], Index::default());
        for row in 0..100_000 {
            let selection = Selection::dense(&[row * 77_777 % 100_000, 0], &[1, 8]).unwrap();
            index.push(Entry { selection, pieces: Vec::new(), place: LOG }, &shape);
        }
        for row in [0, 1, 4711, 99_997] {
            let found = index.overlapping(&Selection::dense(&[row, 2], &[3, 4]).unwrap(), &shape);
            assert!((3..=4).contains(&found.len()), "{}", found.len());
        }
    }
}
