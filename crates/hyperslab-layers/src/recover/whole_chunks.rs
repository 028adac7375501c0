//! Chunks that a replay changes, in memory until they are stored as a whole: see [`images`](crate::images).

use crate::images::Images;
use hyperslab_core::{
    Array, ArraySpec, ChunkGrid, ChunkSubset, Container, Durability, Error, MemoryView, MemoryViewMut, Result,
    Selection, TransferMode, dims,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of chunks in memory.
const MOST: u64 = 64 << 20;

/// Chunks of all arrays that are not stored yet, by array and number.
#[derive(Debug, Default)]
pub(super) struct WholeChunks {
    chunks: BTreeMap<(String, u64), Chunk>,
    bytes: u64,
}

/// A chunk with everything that was replayed into it.
#[derive(Debug)]
struct Chunk {
    array: Arc<dyn Array>,
    spec: Arc<ArraySpec>,
    /// Its elements inside the array, and how they lie in it.
    elements: Selection,
    part: ChunkSubset,
    bytes: Vec<u8>,
}

impl WholeChunks {
    /// Puts packed elements of an array into their chunks. What is in a chunk already is read only if some of it stays.
    pub fn put(
        &mut self,
        name: &str,
        array: &Arc<dyn Array>,
        spec: &Arc<ArraySpec>,
        selection: &Selection,
        packed: &[u8],
    ) -> Result<()> {
        let chunk = spec.chunk.as_ref().ok_or_else(|| Error::invalid("recover", "filters without chunks"))?;
        let grid = ChunkGrid::new(&spec.shape, chunk)?;
        let element = spec.dtype.size();
        for part in selection.split_by_chunk(&grid)? {
            let part = part?;
            let key = (name.to_owned(), grid.linear(&part.chunk)?);
            let chunk = match self.chunks.entry(key) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    let chunk = Chunk::load(array, spec, &grid, &part)?;
                    self.bytes += chunk.bytes.len() as u64;
                    new.insert(chunk)
                }
            };
            part.copy_to_chunk(packed, &mut chunk.bytes, element)?;
        }
        Ok(())
    }

    /// Whether they should be stored by now.
    pub fn are_many(&self) -> bool {
        self.bytes > MOST
    }

    /// Stores all of them: one at a time and kept in `images` meanwhile, unless nobody will miss the container.
    pub fn store(&mut self, container: &dyn Container, images: Option<&Images>) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        if images.is_some() {
            container.flush(Durability::Durable)?;
        }
        for ((name, _), chunk) in std::mem::take(&mut self.chunks) {
            let mut packed = vec![0; (chunk.elements.len() * chunk.spec.dtype.size()) as usize];
            chunk.part.copy_from_chunk(&chunk.bytes, &mut packed, chunk.spec.dtype.size())?;
            let write = || chunk.array.write(&chunk.elements, MemoryView::packed(&packed), TransferMode::Independent);
            let stored = match images {
                None => write(),
                Some(images) => images.store(&name, &chunk.spec.dtype, &chunk.elements, &packed, || {
                    write().and_then(|()| container.flush(Durability::Durable))
                }),
            };
            stored.map_err(|error| error.target(name))?;
        }
        self.bytes = 0;
        Ok(())
    }
}

impl Chunk {
    fn load(array: &Arc<dyn Array>, spec: &Arc<ArraySpec>, grid: &ChunkGrid, part: &ChunkSubset) -> Result<Self> {
        let elements = Selection::dense(&grid.origin(&part.chunk)?, &grid.extent(&part.chunk)?)?;
        let whole = elements.split_by_chunk(grid)?.next();
        let whole = whole.ok_or_else(|| Error::invalid("recover", "a chunk without elements"))??;
        let element = spec.dtype.size();
        let mut bytes = vec![0; dims::byte_count(grid.chunk(), element)? as usize];
        if !part.covers_chunk {
            let mut packed = vec![0; (elements.len() * element) as usize];
            array.read(&elements, MemoryViewMut::packed(&mut packed), TransferMode::Independent)?;
            whole.copy_to_chunk(&packed, &mut bytes, element)?;
        }
        Ok(Self { array: array.clone(), spec: spec.clone(), elements, part: whole, bytes })
    }
}
