//! Parts of writes, which are needed in turns with parts of others: a window of each is in memory.

use super::reorder::Part;
use crate::background::Record;
use hyperslab_core::{Error, Result};
use std::collections::{HashMap, HashSet, VecDeque};

const LARGEST: u64 = 2 << 20;
const SMALLEST: u64 = 4 << 10;

/// Windows of writes, oldest first. Parts of a write are asked for from its first byte to its last.
pub(super) struct Windows {
    memory: u64,
    held: u64,
    /// Bytes of a window. The more writes take turns, the less each has.
    len: u64,
    order: VecDeque<u32>,
    windows: HashMap<u32, Window>,
    /// Memory of windows that nobody needs any more.
    spare: Vec<Vec<u8>>,
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
        let (held, len) = (0, LARGEST.min(memory / 4).max(SMALLEST.min(memory)).max(1));
        let (order, windows, spare, verified) = Default::default();
        Self { memory, held, len, order, windows, spare, verified }
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
        let window = self.windows.get(&part.request).filter(|window| window.has(part));
        let window = window.ok_or_else(|| Error::invalid("drain log", "a part behind the end of its write"))?;
        let from = (part.at - window.at) as usize;
        into.copy_from_slice(&window.bytes[from..from + part.len as usize]);
        if part.at + part.len == record.len() {
            self.forget(part.request);
        }
        Ok(())
    }

    /// Returns whether it was there.
    fn forget(&mut self, request: u32) -> bool {
        let Some(window) = self.windows.remove(&request) else { return false };
        self.held -= window.bytes.len() as u64;
        if self.spare.is_empty() {
            self.spare.push(window.bytes);
        }
        true
    }

    fn fetch(&mut self, part: &Part, record: &Record) -> Result<()> {
        let mut bytes = match self.windows.remove(&part.request) {
            Some(before) => {
                self.held -= before.bytes.len() as u64;
                before.bytes
            }
            None => {
                self.order.push_back(part.request);
                self.spare.pop().unwrap_or_default()
            }
        };
        let whole = record.len() <= self.len;
        let at = if whole { 0 } else { part.at };
        bytes.resize((record.len() - at).min(self.len) as usize, 0);
        match whole {
            true => record.read_into(&mut bytes)?,
            false => record.read_part(at, &mut bytes)?,
        }
        self.held += bytes.len() as u64;
        self.windows.insert(part.request, Window { at, bytes });
        while self.held > self.memory
            && let Some(oldest) = self.order.iter().position(|request| *request != part.request)
            && let Some(oldest) = self.order.remove(oldest)
        {
            if self.forget(oldest) {
                self.len = (self.len / 2).max(SMALLEST.min(self.memory));
            }
        }
        Ok(())
    }
}

impl Window {
    fn has(&self, part: &Part) -> bool {
        part.at >= self.at && part.at + part.len <= self.at + self.bytes.len() as u64
    }
}
