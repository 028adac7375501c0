//! A file read from front to back through a buffer.

use super::storage::LogFile;
use std::io::Result;
use std::sync::Arc;

/// What is read at a time.
const AHEAD: usize = 256 << 10;

/// A part of a file that is in memory.
#[derive(Debug)]
pub(super) struct BufferedReader {
    file: Arc<dyn LogFile>,
    len: u64,
    buffer: Vec<u8>,
    /// Where the buffer begins in the file.
    begin: u64,
}

impl BufferedReader {
    pub fn new(file: Arc<dyn LogFile>) -> Result<Self> {
        Ok(Self { len: file.len()?, file, buffer: Vec::new(), begin: 0 })
    }

    /// Length of the file when it was opened.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn file(&self) -> &Arc<dyn LogFile> {
        &self.file
    }

    /// `len` bytes at `offset`, or `None` where the file ends before. Memory grows with `len`, if the file has so much.
    pub fn get(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        if offset.checked_add(len as u64).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        let has = self.begin..self.begin + self.buffer.len() as u64;
        if offset < has.start || offset + len as u64 > has.end {
            let wanted = len.max(AHEAD.min((self.len - offset) as usize));
            self.buffer.resize(wanted, 0);
            self.begin = offset;
            let read = self.file.read_at(&mut self.buffer, offset)?;
            self.buffer.truncate(read);
            if read < len {
                return Ok(None);
            }
        }
        let at = (offset - self.begin) as usize;
        Ok(Some(&self.buffer[at..at + len]))
    }
}
