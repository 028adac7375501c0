//! Buffered sequential reading of a file.

use super::storage::LogFile;
use std::io::Result;
use std::sync::Arc;

/// Bytes read at a time.
const AHEAD: usize = 256 << 10;

/// A file and its buffered part.
#[derive(Debug)]
pub(super) struct BufferedReader {
    file: Arc<dyn LogFile>,
    len: u64,
    buffer: Vec<u8>,
    /// File offset of the buffer.
    begin: u64,
}

impl BufferedReader {
    pub fn new(file: Arc<dyn LogFile>) -> Result<Self> {
        Ok(Self { len: file.len()?, file, buffer: Vec::new(), begin: 0 })
    }

    /// Length of the file at open.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn file(&self) -> &Arc<dyn LogFile> {
        &self.file
    }

    /// Returns `len` bytes at `offset`, or `None` if the file ends before. Allocates no more than the file has.
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
