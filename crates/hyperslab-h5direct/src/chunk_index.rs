//! Where the chunks of an array lie, as far as it is known.

use crate::metadata_backend::{ChunkAddress, MetadataBackend};
use hyperslab_core::{ChunkGrid, Dims, Error, ErrorKind, Result, Selection};
use std::collections::HashMap;

/// What is known of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// It was never written.
    Absent,
    /// It lies here.
    At(ChunkAddress),
    /// It was written since the library was asked last; with its mask, if that is known.
    AddressUnknown(Option<u32>),
}

/// Asking for one place is as much work as looking at this many chunks in a list of all.
const ONE_BY_ONE: u64 = 16;
/// Grids of up to this many chunks are kept as a list, 32 bytes for each; of larger ones only chunks that exist.
const LISTED: u64 = 1 << 20;

/// How many chunks the smallest box around a selection touches.
pub(crate) fn chunks_in_bounds(selection: &Selection, grid: &ChunkGrid) -> u64 {
    let (low, high) = selection.bounds().unwrap_or_default();
    let along = |d: usize| (high[d] - 1) / grid.chunk()[d] - low[d] / grid.chunk()[d] + 1;
    (0..low.len()).map(along).fold(1, u64::saturating_mul)
}

/// The places of the chunks of an array. Made by one walk of the library over all of them.
#[derive(Debug, Default)]
pub(crate) struct ChunkIndex {
    chunks: Option<Chunks>,
    /// How many are somewhere.
    unknown: u64,
    /// Whether every chunk of the array was found.
    complete: bool,
    /// What was spent on chunks that are somewhere, in chunks of a walk.
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

    /// Returns what was known before.
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
    /// What is known of a chunk. Ask [`Self::is_loaded`] first.
    pub(crate) fn get(&self, chunk: u64) -> ChunkState {
        self.chunks.as_ref().map_or(ChunkState::AddressUnknown(None), |chunks| chunks.get(chunk))
    }

    /// Whether the library was asked at all.
    pub(crate) fn is_loaded(&self) -> bool {
        self.chunks.is_some()
    }

    /// Whether asking the library for all places is worth it, to find some of `wanted` chunks.
    pub(crate) fn is_worth_loading(&self, wanted: u64) -> bool {
        match &self.chunks {
            None => true,
            Some(chunks) => self.unknown > 0 && self.spent + wanted.min(self.unknown) * ONE_BY_ONE >= chunks.len(),
        }
    }

    /// Notes that a place was not known when it was needed.
    pub(crate) fn note_lookup_failed(&mut self) {
        self.spent += ONE_BY_ONE;
    }

    /// Notes that the library has written a chunk.
    pub(crate) fn note_written(&mut self, chunk: u64, mask: Option<u32>) {
        if let Some(chunks) = &mut self.chunks
            && !matches!(chunks.set(chunk, ChunkState::AddressUnknown(mask)), ChunkState::AddressUnknown(_))
        {
            self.unknown += 1;
        }
    }

    /// Whether every chunk has a place that is known.
    pub(crate) fn is_full(&self) -> bool {
        self.complete && self.unknown == 0
    }

    /// Forgets everything.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The array has grown along its first dimension: chunks keep their numbers and places, and `len` is how many there are now.
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

    /// Asks the library for all places.
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
