//! Writes of one array that are in the log.

mod told;

use super::reorder::{Entry, Requests, selection_of};
use crate::background::Record;
use crate::spans::Spans;
use hyperslab_core::{ArraySpec, Error, Result, Run, Selection};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// What a write takes beside its bytes in the log.
const EACH: u64 = 200;
/// What a slab of a selection takes.
const SLAB: u64 = 128;
/// More do not fit into the numbers of reordering.
const MOST: usize = u32::MAX as usize - 1;

/// A write in the log.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// The range of bytes it touches, in the row-major order of the array.
    first: u64,
    last: u64,
    pub record: Record,
    /// `None`: all bytes of the range.
    selection: Option<Arc<Selection>>,
}

impl Waiting {
    /// Bytes of memory it takes.
    fn memory(&self) -> u64 {
        self.selection.as_ref().map_or(EACH, |selection| memory_of(selection))
    }

    /// What it writes, in an array of `spec`.
    pub fn selection(&self, spec: &ArraySpec) -> Result<Cow<'_, Selection>> {
        match &self.selection {
            Some(selection) => Ok(Cow::Borrowed(selection)),
            None => {
                selection_of(&spec.shape, spec.dtype.size(), self.first, self.last - self.first + 1).map(Cow::Owned)
            }
        }
    }
}

/// Writes of an array, oldest first. Of its shape only the first extent may change meanwhile, and only grow.
#[derive(Debug)]
pub(super) struct Batch {
    pub spec: Arc<ArraySpec>,
    pub writes: Vec<Waiting>,
    /// Bytes of their elements.
    pub bytes: u64,
    /// Bytes of memory they take.
    pub memory: u64,
    /// Whether the background may move them.
    pub allows_background_io: bool,
    index: Mutex<Index>,
}

/// Made when someone reads: who only writes does not pay for it.
#[derive(Debug, Default)]
struct Index {
    spans: Spans<u32>,
    /// The first so many writes are in it.
    known: usize,
}

/// Bytes of memory that such a write will take.
pub(super) fn memory_of(selection: &Selection) -> u64 {
    EACH + SLAB * selection.slabs().len().saturating_sub(1) as u64
}

impl Batch {
    pub fn new(spec: Arc<ArraySpec>, allows_background_io: bool) -> Self {
        Self { spec, writes: Vec::new(), bytes: 0, memory: 0, allows_background_io, index: Mutex::default() }
    }

    /// The array has grown along its first dimension: where its bytes lie among those of the array is as before.
    pub fn grow(&mut self, spec: Arc<ArraySpec>) {
        self.spec = spec;
    }

    pub fn is_full(&self) -> bool {
        self.writes.len() >= MOST
    }

    /// Adds a write of some elements.
    pub fn push(&mut self, selection: &Selection, record: Record) -> Result<()> {
        let (shape, size) = (&self.spec.shape, self.spec.dtype.size());
        let range = selection.first_byte(shape, size).zip(selection.last_byte(shape, size));
        let (first, last) = range.ok_or_else(|| Error::invalid("log write", "it has no elements"))?;
        self.bytes += record.len();
        self.memory += memory_of(selection);
        let contiguous = last - first + 1 == record.len();
        let selection = (!contiguous || selection.slabs().len() > 1).then(|| Arc::new(selection.clone()));
        self.writes.push(Waiting { first, last, record, selection });
        Ok(())
    }

    /// Takes away the writes that are in memory alone, if there are any. They are the last ones.
    pub fn split_off_unsafe(&mut self) -> Option<Self> {
        let at = self.writes.partition_point(|write| write.record.is_handed_over());
        if at == self.writes.len() {
            return None;
        }
        let mut rest = Self::new(self.spec.clone(), self.allows_background_io);
        rest.writes = self.writes.split_off(at);
        rest.bytes = rest.writes.iter().map(|write| write.record.len()).sum();
        rest.memory = rest.writes.iter().map(Waiting::memory).sum();
        self.bytes -= rest.bytes;
        self.memory -= rest.memory;
        self.index = Mutex::default();
        Some(rest)
    }

    /// The writes that may have any of these elements, oldest first. `None`: more than `most`.
    pub fn touching(&self, selection: &Selection, most: usize) -> Option<Vec<Waiting>> {
        let numbers = self.numbers_touching(selection, most)?;
        Some(numbers.into_iter().map(|number| self.writes[number as usize].clone()).collect())
    }

    /// The same, as places in the list.
    pub fn numbers_touching(&self, selection: &Selection, most: usize) -> Option<Vec<u32>> {
        let (shape, size) = (&self.spec.shape, self.spec.dtype.size());
        let Some((first, last)) = selection.first_byte(shape, size).zip(selection.last_byte(shape, size)) else {
            return Some(Vec::new());
        };
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        for number in index.known..self.writes.len() {
            let write = &self.writes[number];
            index.spans.insert(write.first, write.last, number as u32);
        }
        index.known = self.writes.len();
        let mut numbers: Vec<u32> = index.spans.touching(first, last).copied().take(most.saturating_add(1)).collect();
        if numbers.len() > most {
            return None;
        }
        numbers.sort_unstable();
        Some(numbers)
    }

    /// What reordering needs to know of each.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        let (shape, size) = (&self.spec.shape, self.spec.dtype.size());
        let mut entries = Vec::with_capacity(self.writes.len());
        for (number, write) in self.writes.iter().enumerate() {
            match &write.selection {
                None => entries.push(Entry::contiguous(number as u32, write.first, write.last)),
                Some(selection) => entries.extend(Entry::new(number as u32, selection, shape, size)?),
            }
        }
        Ok(entries)
    }
}

impl Requests for Batch {
    fn runs(&self, number: u32) -> Result<Box<dyn Iterator<Item = Run> + '_>> {
        let write = &self.writes[number as usize];
        match &write.selection {
            None => {
                let run = Run { offset: write.first, len: write.last - write.first + 1 };
                Ok(Box::new(std::iter::once(run)))
            }
            Some(selection) => Ok(Box::new(selection.runs(&self.spec.shape, self.spec.dtype.size())?)),
        }
    }
}
