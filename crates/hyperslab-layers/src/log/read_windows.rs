//! Buffered reads of many writes whose parts are needed alternately: a window of each is in memory.

use super::reorder::ExtentPart;
use crate::background::{CHECKSUM_STEP, StagedWrite};
use hyperslab_core::{Error, Result};
use std::collections::{HashMap, HashSet, VecDeque};

const LARGEST: u64 = 2 << 20;
const SMALLEST: u64 = 4 << 10;

/// Windows of writes, oldest first. Parts of a write must be requested in increasing order.
pub(super) struct ReadWindows {
    memory: u64,
    held: u64,
    /// Length of a window: the more writes alternate, the smaller.
    len: u64,
    order: VecDeque<u32>,
    windows: HashMap<u32, Window>,
    /// Buffers of finished windows, for reuse.
    spare: Vec<Vec<u8>>,
    /// Writes verified as a whole, because their windows are shorter than a checksum step.
    verified: HashSet<u32>,
}

struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl ReadWindows {
    /// Windows of at most `memory` bytes in total.
    pub fn new(memory: u64) -> Self {
        let (held, len) = (0, LARGEST.min(memory / 4).max(SMALLEST.min(memory)).max(1));
        let (order, windows, spare, verified) = Default::default();
        Self { memory, held, len, order, windows, spare, verified }
    }

    /// Copies a part of a write.
    pub fn copy(&mut self, part: &ExtentPart, record: &StagedWrite, into: &mut [u8]) -> Result<()> {
        if !self.copy_held(part, into) {
            // Whole reads and steps are verified when read.
            let checked = self.is_whole(record) || self.is_in_steps(part);
            if !checked && self.verified.insert(part.request) {
                record.verify()?;
            }
            if !checked && part.len >= self.len {
                return record.read_part(part.at, into);
            }
            self.fetch(part, record)?;
            if !self.copy_held(part, into) {
                return Err(Error::invalid("drain log", "a part behind the end of its write"));
            }
        }
        if part.at + part.len == record.len() {
            self.forget(part.request);
        }
        Ok(())
    }

    /// Whether its window has it.
    fn copy_held(&self, part: &ExtentPart, into: &mut [u8]) -> bool {
        let Some(window) = self.windows.get(&part.request).filter(|window| window.has(part)) else { return false };
        let from = (part.at - window.at) as usize;
        into.copy_from_slice(&window.bytes[from..from + part.len as usize]);
        true
    }

    fn is_whole(&self, record: &StagedWrite) -> bool {
        record.len() <= self.len
    }

    /// Whether windows have at least one checksum step.
    fn is_in_steps(&self, part: &ExtentPart) -> bool {
        self.len >= CHECKSUM_STEP && part.len < self.len && !self.verified.contains(&part.request)
    }

    /// Copies a part from its window; returns whether it was there.
    fn forget(&mut self, request: u32) -> bool {
        let Some(window) = self.windows.remove(&request) else { return false };
        self.held -= window.bytes.len() as u64;
        if self.spare.is_empty() {
            self.spare.push(window.bytes);
        }
        true
    }

    fn fetch(&mut self, part: &ExtentPart, record: &StagedWrite) -> Result<()> {
        let (old, mut bytes) = match self.windows.remove(&part.request) {
            Some(before) => {
                self.held -= before.bytes.len() as u64;
                (before.at..before.at + before.bytes.len() as u64, before.bytes)
            }
            None => {
                self.order.push_back(part.request);
                (0..0, self.spare.pop().unwrap_or_default())
            }
        };
        let at = if self.is_whole(record) {
            bytes.resize(record.len() as usize, 0);
            record.read_into(&mut bytes)?;
            0
        } else if self.is_in_steps(part) {
            // The rest of the last step may be needed next.
            let kept = if old.contains(&part.at) { part.at..old.end } else { 0..0 };
            let from = if kept.is_empty() { part.at / CHECKSUM_STEP * CHECKSUM_STEP } else { old.end };
            let fits = self.len.saturating_sub(kept.end - kept.start) / CHECKSUM_STEP * CHECKSUM_STEP;
            let steps = fits.max((part.at + part.len).saturating_sub(from));
            let to = (from + steps).next_multiple_of(CHECKSUM_STEP).min(record.len());
            if !kept.is_empty() {
                bytes.copy_within((kept.start - old.start) as usize.., 0);
            }
            let kept = (kept.end - kept.start) as usize;
            bytes.resize(kept + to.saturating_sub(from) as usize, 0);
            record.read_checked(from, &mut bytes[kept..])?;
            from - kept as u64
        } else {
            bytes.resize((record.len() - part.at).min(self.len) as usize, 0);
            record.read_part(part.at, &mut bytes)?;
            part.at
        };
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
    fn has(&self, part: &ExtentPart) -> bool {
        part.at >= self.at && part.at + part.len <= self.at + self.bytes.len() as u64
    }
}
