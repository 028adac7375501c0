//! All filters of an array, one after the other.

use crate::Stated;
use hyperslab_core::{Error, Result};

/// The filters of an array, in the order of writing.
#[derive(Debug, Clone)]
pub struct Pipeline {
    chunk_bytes: usize,
}

/// Memory and coder states of one thread, kept from chunk to chunk.
#[derive(Debug, Default)]
pub struct Workspace {}

/// The stored form of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// What goes to the file.
    pub bytes: &'a [u8],
    /// A bit for every filter that was left out, the first filter being the lowest.
    pub mask: u32,
}

impl Pipeline {
    /// For chunks of `chunk_bytes` bytes. Refuses, with kind `Unsupported`, filters and parameters unknown here, naming
    /// the filter; whoever asks then leaves the array to libhdf5.
    pub fn new(filters: &[Stated], chunk_bytes: usize) -> Result<Self> {
        match filters.first() {
            Some(filter) => Err(Error::unsupported("set up filters", format!("filter {} is unknown here", filter.id))),
            None => Ok(Self { chunk_bytes }),
        }
    }

    /// Whether chunks are stored as they are.
    pub fn is_plain(&self) -> bool {
        true
    }

    /// The most bytes that a stored chunk may have; larger ones are damaged.
    pub fn stored_limit(&self) -> usize {
        self.chunk_bytes
    }

    /// The stored form of a chunk.
    pub fn encode<'a>(&self, chunk: &'a [u8], _workspace: &'a mut Workspace) -> Result<Encoded<'a>> {
        Ok(Encoded { bytes: chunk, mask: 0 })
    }

    /// The chunk of a stored form, into exactly as many bytes as a chunk has. `mask` names the filters that were left
    /// out. What is damaged is an error of kind `Corrupt`; `chunk` then holds anything.
    pub fn decode(&self, stored: &[u8], _mask: u32, chunk: &mut [u8], _workspace: &mut Workspace) -> Result<()> {
        chunk.copy_from_slice(stored);
        Ok(())
    }
}
