//! Cached chunk addresses of a dataset.

use crate::metadata_backend::{ChunkAddress, MetadataBackend};
use hyperslab_core::{ChunkGrid, Dims, Error, ErrorKind, Result, Selection};
use std::collections::HashMap;

/// The state of a chunk in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// Not allocated: it reads as fill values.
    Absent,
    /// Stored at this address.
    At(ChunkAddress),
    /// Stored by the library since the index was loaded; with its filter mask, if known.
    AddressUnknown(Option<u32>),
}

/// Cost of looking up one address, in chunks visited by a load of the whole index.
const ONE_BY_ONE: u64 = 16;
/// Grids of up to this many chunks are a list, 32 bytes for each; larger ones a map of the allocated chunks.
const LISTED: u64 = 1 << 20;

/// Number of chunks that the bounding box of a selection touches.
pub(crate) fn chunks_in_bounds(selection: &Selection, grid: &ChunkGrid) -> u64 {
    let (low, high) = selection.bounds().unwrap_or_default();
    let along = |d: usize| (high[d] - 1) / grid.chunk()[d] - low[d] / grid.chunk()[d] + 1;
    (0..low.len()).map(along).fold(1, u64::saturating_mul)
}

/// Chunk addresses, loaded by one iteration of the library over all chunks.
#[derive(Debug, Default)]
pub(crate) struct ChunkIndex {
    chunks: Option<Chunks>,
    /// Number of chunks whose address is unknown.
    unknown: u64,
    /// Whether every chunk of the grid was allocated when the index was loaded.
    complete: bool,
    /// Cost of the lookups since the last load, in chunks visited by a load.
    spent: u64,
}

#[derive(Debug)]
enum Chunks {
    List(Vec<ChunkState>),
    Map(HashMap<u64, ChunkState>),
}

impl Chunks {
    fn get(&self, chunk: u64) -> ChunkState {
        match self {
            Self::List(list) => list.get(chunk as usize).copied().unwrap_or(ChunkState::Absent),
            Self::Map(map) => map.get(&chunk).copied().unwrap_or(ChunkState::Absent),
        }
    }

    /// Returns the previous state.
    fn set(&mut self, chunk: u64, known: ChunkState) -> ChunkState {
        match self {
            Self::List(list) => match list.get_mut(chunk as usize) {
                Some(entry) => std::mem::replace(entry, known),
                None => ChunkState::Absent,
            },
            Self::Map(map) => map.insert(chunk, known).unwrap_or(ChunkState::Absent),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
        }
    }
}

impl ChunkIndex {
    /// The state of a chunk. Meaningful only if [`Self::is_loaded`].
    pub(crate) fn get(&self, chunk: u64) -> ChunkState {
        self.chunks.as_ref().map_or(ChunkState::AddressUnknown(None), |chunks| chunks.get(chunk))
    }

    /// Whether the index was ever loaded.
    pub(crate) fn is_loaded(&self) -> bool {
        self.chunks.is_some()
    }

    /// Whether loading the index is cheaper than looking up the unknown ones among `wanted` chunks.
    pub(crate) fn is_worth_loading(&self, wanted: u64) -> bool {
        match &self.chunks {
            None => true,
            Some(chunks) => self.unknown > 0 && self.spent + wanted.min(self.unknown) * ONE_BY_ONE >= chunks.len(),
        }
    }

    /// Adds the cost of a lookup for which the address was unknown.
    pub(crate) fn note_lookup_failed(&mut self) {
        self.spent += ONE_BY_ONE;
    }

    /// Records that the library stored a chunk: its address is unknown now.
    pub(crate) fn note_written(&mut self, chunk: u64, mask: Option<u32>) {
        if let Some(chunks) = &mut self.chunks
            && !matches!(chunks.set(chunk, ChunkState::AddressUnknown(mask)), ChunkState::AddressUnknown(_))
        {
            self.unknown += 1;
        }
    }

    /// Whether the address of every chunk is known.
    pub(crate) fn is_full(&self) -> bool {
        self.complete && self.unknown == 0
    }

    /// Invalidates the index.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Extends the index to `len` chunks after growth along the first dimension, which keeps chunk numbers and
    /// addresses.
    pub(crate) fn grow(&mut self, len: u64) {
        let Some(chunks) = &mut self.chunks else { return };
        match chunks {
            Chunks::List(_) if len > LISTED => self.forget(),
            Chunks::List(list) => {
                self.complete &= list.len() as u64 == len;
                list.resize(len as usize, ChunkState::Absent);
            }
            Chunks::Map(_) => self.complete = false,
        }
    }

    /// Loads all chunk addresses from the library.
    pub(crate) fn load(&mut self, control: &dyn MetadataBackend, grid: &ChunkGrid) -> Result<()> {
        let mut chunks = if grid.len() <= LISTED {
            Chunks::List(vec![ChunkState::Absent; grid.len() as usize])
        } else {
            Chunks::Map(HashMap::new())
        };
        let (mut wrong, mut found) = (None, 0);
        control.for_each_chunk(&mut |origin, place| {
            let chunk: Dims = origin.iter().zip(grid.chunk()).map(|(first, extent)| first / extent).collect();
            match grid.linear(&chunk) {
                Ok(number) => {
                    found += u64::from(chunks.set(number, ChunkState::At(place)) == ChunkState::Absent);
                }
                Err(error) => wrong = Some(error),
            }
        })?;
        if let Some(error) = wrong {
            return Err(
                Error::new(ErrorKind::Corrupt, "find chunks", "the file has a chunk outside its array").source(error)
            );
        }
        *self = Self { chunks: Some(chunks), complete: found == grid.len(), ..Self::default() };
        Ok(())
    }
}
