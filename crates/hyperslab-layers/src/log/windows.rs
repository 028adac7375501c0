//! Parts of writes, which are needed in turns with parts of others: a window of each is in memory.

use super::reorder::Part;
use crate::background::Record;
use hyperslab_core::Result;
use std::collections::{HashMap, HashSet, VecDeque};

const LARGEST: u64 = 64 << 10;
const SMALLEST: u64 = 4 << 10;

/// Windows of writes, oldest first. Parts of a write are asked for from its first byte to its last.
pub(super) struct Windows {
    memory: u64,
    held: u64,
    /// Bytes of a window. The more writes take turns, the less each has.
    len: u64,
    order: VecDeque<u32>,
    windows: HashMap<u32, Window>,
    /// Writes that are as they were appended.
    verified: HashSet<u32>,
}

struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Windows {
    /// With at most `memory` bytes of elements.
    pub fn new(memory: u64) -> Self {
        let (held, len) = (0, LARGEST.min(memory).max(1));
        Self { memory, held, len, order: VecDeque::new(), windows: HashMap::new(), verified: HashSet::new() }
    }

    /// Copies a part of a write.
    pub fn copy(&mut self, part: &Part, record: &Record, into: &mut [u8]) -> Result<()> {
        let whole = record.len() <= self.len;
        // What is read whole is checked then.
        if !whole && self.verified.insert(part.request) {
            record.verify()?;
        }
        if !whole && part.len >= self.len {
            return record.read_part(part.at, into);
        }
        let there = self.windows.get(&part.request).is_some_and(|window| window.has(part));
        if !there {
            self.fetch(part, record)?;
        }
        let Some(window) = self.windows.get(&part.request) else {
            // It had to make room for itself.
            return record.verify().and_then(|()| record.read_part(part.at, into));
        };
        let from = (part.at - window.at) as usize;
        into.copy_from_slice(&window.bytes[from..from + part.len as usize]);
        Ok(())
    }

    fn fetch(&mut self, part: &Part, record: &Record) -> Result<()> {
        let mut window = self.windows.remove(&part.request).unwrap_or_else(|| {
            self.order.push_back(part.request);
            Window { at: 0, bytes: Vec::new() }
        });
        self.held -= window.bytes.len() as u64;
        let whole = record.len() <= self.len;
        window.at = if whole { 0 } else { part.at };
        window.bytes.resize((record.len() - window.at).min(self.len) as usize, 0);
        match whole {
            true => record.read_into(&mut window.bytes)?,
            false => record.read_part(window.at, &mut window.bytes)?,
        }
        self.held += window.bytes.len() as u64;
        self.windows.insert(part.request, window);
        while self.held > self.memory
            && self.order.len() > 1
            && let Some(oldest) = self.order.pop_front()
        {
            self.held -= self.windows.remove(&oldest).map_or(0, |window| window.bytes.len() as u64);
            self.len = (self.len / 2).max(SMALLEST.min(self.memory));
        }
        Ok(())
    }
}

impl Window {
    fn has(&self, part: &Part) -> bool {
        part.at >= self.at && part.at + part.len <= self.at + self.bytes.len() as u64
    }
}
