//! The list of pending writes of one array.

mod wire;

use super::reorder::{Entry, Requests, selection_of};
use crate::background::StagedWrite;
use crate::interval_map::IntervalMap;
use hyperslab_core::{ArraySpec, Error, Result, Run, Selection};
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory counted for a write.
const EACH: u64 = 200;
/// Memory counted for a slab of a selection.
const SLAB: u64 = 128;
/// Limit of request numbers in reordering.
const MOST: usize = u32::MAX as usize - 1;

/// A pending write.
#[derive(Debug, Clone)]
pub(super) struct PendingWrite {
    /// Its first and last byte, in the row-major order of the array.
    first: u64,
    last: u64,
    pub record: StagedWrite,
    /// `None` for all bytes of the range.
    selection: Option<Arc<Selection>>,
}

impl PendingWrite {
    /// Memory counted for it, in bytes.
    fn memory(&self) -> u64 {
        self.selection.as_ref().map_or(EACH, |selection| memory_of(selection))
    }

    /// Its selection in an array of `spec`.
    pub fn selection(&self, spec: &ArraySpec) -> Result<Cow<'_, Selection>> {
        match &self.selection {
            Some(selection) => Ok(Cow::Borrowed(selection)),
            None => {
                selection_of(&spec.shape, spec.dtype.size(), self.first, self.last - self.first + 1).map(Cow::Owned)
            }
        }
    }
}

/// Pending writes of an array, oldest first. Only the first extent of the array may change meanwhile, and only grow.
#[derive(Debug)]
pub(super) struct PendingWrites {
    pub spec: Arc<ArraySpec>,
    pub writes: Vec<PendingWrite>,
    /// Total length of their elements.
    pub bytes: u64,
    /// Total memory counted for them.
    pub memory: u64,
    /// Whether the background may drain them.
    pub allows_background_io: bool,
    index: Mutex<Index>,
}

/// Built by the first read, so that programs that only write do not pay for it.
#[derive(Debug, Default)]
struct Index {
    spans: IntervalMap<u32>,
    /// Number of leading writes in it.
    known: usize,
}

/// Memory that a write of this selection will need.
pub(super) fn memory_of(selection: &Selection) -> u64 {
    EACH + SLAB * selection.slabs().len().saturating_sub(1) as u64
}

impl PendingWrites {
    pub fn new(spec: Arc<ArraySpec>, allows_background_io: bool) -> Self {
        Self { spec, writes: Vec::new(), bytes: 0, memory: 0, allows_background_io, index: Mutex::default() }
    }

    /// Notes a growth of the first dimension, which keeps all byte offsets.
    pub fn grow(&mut self, spec: Arc<ArraySpec>) {
        self.spec = spec;
    }

    pub fn is_full(&self) -> bool {
        self.writes.len() >= MOST
    }

    /// Adds a write.
    pub fn push(&mut self, selection: &Selection, record: StagedWrite) -> Result<()> {
        let (shape, size) = (&self.spec.shape, self.spec.dtype.size());
        let range = selection.first_byte(shape, size).zip(selection.last_byte(shape, size));
        let (first, last) = range.ok_or_else(|| Error::invalid("log write", "it has no elements"))?;
        self.bytes += record.len();
        self.memory += memory_of(selection);
        let contiguous = last - first + 1 == record.len();
        let selection = (!contiguous || selection.slabs().len() > 1).then(|| Arc::new(selection.clone()));
        self.writes.push(PendingWrite { first, last, record, selection });
        Ok(())
    }

    /// Splits off the writes that are not in the kernel, which are the last ones.
    pub fn split_off_unlogged(&mut self) -> Option<Self> {
        let at = self.writes.partition_point(|write| write.record.is_written_out());
        if at == self.writes.len() {
            return None;
        }
        let mut rest = Self::new(self.spec.clone(), self.allows_background_io);
        rest.writes = self.writes.split_off(at);
        rest.bytes = rest.writes.iter().map(|write| write.record.len()).sum();
        rest.memory = rest.writes.iter().map(PendingWrite::memory).sum();
        self.bytes -= rest.bytes;
        self.memory -= rest.memory;
        self.index = Mutex::default();
        Some(rest)
    }

    /// Writes that may overlap the selection, oldest first. `None` if there are more than `most`.
    pub fn overlapping(&self, selection: &Selection, most: usize) -> Option<Vec<PendingWrite>> {
        let numbers = self.numbers_overlapping(selection, most)?;
        Some(numbers.into_iter().map(|number| self.writes[number as usize].clone()).collect())
    }

    /// The same, as indices in the list.
    pub fn numbers_overlapping(&self, selection: &Selection, most: usize) -> Option<Vec<u32>> {
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
        let mut numbers: Vec<u32> =
            index.spans.overlapping(first, last).copied().take(most.saturating_add(1)).collect();
        if numbers.len() > most {
            return None;
        }
        numbers.sort_unstable();
        Some(numbers)
    }

    /// The entries for reordering.
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

impl Requests for PendingWrites {
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
