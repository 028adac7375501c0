//! What the data plane knows of the places of chunks, and when it asks for all of them.

use crate::chunk_bitmap::ChunkBitmap;
use crate::counts::{Count, Counts};

/// Asking for one place is as much work as looking at this many chunks in a list of all.
const ONE_BY_ONE: u64 = 16;

/// Places of the chunks of an array.
#[derive(Debug)]
pub(crate) struct DirectIndex {
    /// Chunks of the array.
    total: u64,
    /// Chunks that are in the file.
    pub(crate) stored: ChunkBitmap,
    /// Those whose places are not known, though the library was asked once.
    somewhere: ChunkBitmap,
    loaded: bool,
    spent: u64,
}

impl DirectIndex {
    pub(crate) fn new(total: u64, made: bool) -> Self {
        let stored = if made { ChunkBitmap::default() } else { ChunkBitmap::all() };
        Self { total, stored, somewhere: ChunkBitmap::default(), loaded: false, spent: 0 }
    }

    /// Asks for the places of all chunks, if that is worth it for a transfer of `wanted` chunks.
    pub(crate) fn prepare(&mut self, wanted: u64, counts: &mut Counts) {
        let missing = self.somewhere.len(self.total);
        let worth = missing > 0 && self.spent + wanted.min(missing).saturating_mul(ONE_BY_ONE) >= self.total;
        if self.loaded && !worth {
            return;
        }
        counts.add(Count::IndexEntries, self.stored.len(self.total));
        self.somewhere = ChunkBitmap::default();
        (self.loaded, self.spent) = (true, 0);
    }

    /// Whether a chunk's place must be asked for.
    pub(crate) fn is_somewhere(&self, chunk: u64) -> bool {
        self.somewhere.contains(chunk)
    }

    /// Notes that a place was not known when it was needed.
    pub(crate) fn note_missed(&mut self) {
        self.spent += ONE_BY_ONE;
    }

    /// Notes that the library has stored a chunk; returns whether it is new.
    pub(crate) fn note_written(&mut self, chunk: u64) -> bool {
        self.somewhere.insert(chunk);
        self.stored.insert(chunk)
    }

    /// Forgets the places.
    pub(crate) fn forget(&mut self) {
        self.somewhere = ChunkBitmap::default();
        self.loaded = false;
    }

    /// After a change of shape to `total` chunks.
    pub(crate) fn resized(&mut self, stored: ChunkBitmap, total: u64) {
        self.forget();
        (self.stored, self.total) = (stored, total);
    }
}

/// How many chunks the smallest box around a selection touches.
pub(crate) fn chunks_around(selection: &hyperslab_core::Selection, grid: &hyperslab_core::ChunkGrid) -> u64 {
    let Some((low, high)) = selection.bounds() else { return 0 };
    let along = |d: usize| (high[d] - 1) / grid.chunk()[d] - low[d] / grid.chunk()[d] + 1;
    (0..low.len()).map(along).fold(1, u64::saturating_mul)
}
