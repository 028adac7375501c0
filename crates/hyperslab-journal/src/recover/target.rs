//! The container into which journals are replayed.

use super::chunk_buffer::ChunkBuffer;
use super::orphans::TouchedArray;
use crate::RecoveredWrite;
use crate::chunk_images::ChunkImages;
use hyperslab_core::{
    Array, ArraySpec, Container, Datatype, Durability, Error, ErrorKind, MemoryView, Result, Selection, TransferMode,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of open arrays.
const OPEN: usize = 64;
/// Maximum bytes of a write in memory.
const PIECE: u64 = 64 << 20;

/// An open container and some of its arrays.
#[derive(Debug)]
pub(super) struct Target {
    container: Arc<dyn Container>,
    arrays: HashMap<String, Opened>,
    buffer: Vec<u8>,
    /// Whether filtered chunks must be stored as a whole.
    relocates_chunks: bool,
    chunks: ChunkBuffer,
    /// The journal for them, if a crash must be survived.
    images: Option<ChunkImages>,
}

/// An open array and its specification.
type Opened = (Arc<dyn Array>, Arc<ArraySpec>);

impl Target {
    /// Wraps an open container. `relocates_chunks`: its format may move chunks. `images`: protects chunks against a crash.
    pub fn new(container: Arc<dyn Container>, relocates_chunks: bool, images: Option<ChunkImages>) -> Self {
        let (arrays, buffer, chunks) = Default::default();
        Self { container, arrays, buffer, relocates_chunks, chunks, images }
    }

    /// Creates arrays large enough for the writes.
    pub fn create(&self, arrays: &BTreeMap<String, TouchedArray>) -> Result<()> {
        arrays.iter().try_for_each(|(name, touched)| {
            let array = self.container.create(name, &ArraySpec::new(touched.dtype.clone(), &touched.extents))?;
            array.close()
        })
    }

    /// Refuses arrays that are missing, or differ in type or are too small for the writes.
    pub fn check(&mut self, arrays: &BTreeMap<String, TouchedArray>) -> Result<()> {
        for (name, touched) in arrays {
            let (_, spec) = self.array(name)?;
            check_type(name, &spec.dtype, &touched.dtype)?;
            let zero = vec![0; touched.extents.len()];
            let fits = Selection::dense(&zero, &touched.extents).and_then(|all| all.check_inside(&spec.shape));
            fits.map_err(|error| {
                let extents = hyperslab_core::dims::display(&touched.extents);
                let message = format!("writes reach {extents}, and the array is smaller now");
                Error::new(ErrorKind::Mismatch, "recover", message).target(name).source(error)
            })?;
        }
        Ok(())
    }

    fn array(&mut self, name: &str) -> Result<Opened> {
        if !self.arrays.contains_key(name) {
            if self.arrays.len() >= OPEN {
                self.store_chunks()?;
                self.close_arrays()?;
            }
            let array = self.container.array(name).map_err(|error| error.target(name))?;
            let spec = Arc::new(array.spec()?);
            self.arrays.insert(name.to_owned(), (array, spec));
        }
        let known = self.arrays.get(name).cloned();
        known.ok_or_else(|| Error::new(ErrorKind::NotFound, "recover", "no array").target(name))
    }

    fn close_arrays(&mut self) -> Result<()> {
        self.arrays.drain().try_for_each(|(_, (array, _))| array.close())
    }

    fn store_chunks(&mut self) -> Result<()> {
        self.chunks.store(&*self.container, self.images.as_ref())
    }

    /// Applies one write.
    pub fn apply(&mut self, write: &RecoveredWrite) -> Result<()> {
        let name = &write.array.name;
        let element = write.array.dtype.size();
        let (array, spec) = self.array(name)?;
        let whole_chunks = self.relocates_chunks && !spec.filters.is_empty();
        let mut at = 0;
        write
            .selection
            .for_each_part(PIECE / element.max(1), &mut |piece| {
                let len = piece.len() * element;
                self.buffer.clear();
                self.buffer
                    .try_reserve(len as usize)
                    .map_err(|_| Error::invalid("recover", format!("no memory for {len} bytes")))?;
                self.buffer.resize(len as usize, 0);
                match len == write.len() {
                    true => write.read_into(&mut self.buffer)?,
                    // The reader has verified the whole payload.
                    false => write.read_part(at, &mut self.buffer)?,
                }
                at += len;
                match whole_chunks {
                    false => array.write(piece, MemoryView::packed(&self.buffer), TransferMode::Independent),
                    true => self.chunks.put(name, &array, &spec, piece, &self.buffer),
                }?;
                if self.chunks.are_many() { self.store_chunks() } else { Ok(()) }
            })
            .map_err(|error| error.target(name))
    }

    /// Stores buffered chunks, makes the container durable, and closes it.
    pub fn finish(mut self) -> Result<()> {
        let arrays = self.store_chunks().and(self.close_arrays());
        let flushed = arrays.and_then(|()| self.container.flush(Durability::Durable));
        let closed = self.container.close();
        // Images are removed before the newer writes.
        flushed.and(closed).and_then(|()| self.images.as_ref().map_or(Ok(()), ChunkImages::finish))
    }

    /// Closes the container without changes.
    pub fn leave(mut self) -> Result<()> {
        let arrays = self.close_arrays();
        arrays.and(self.container.close())
    }
}

fn check_type(name: &str, is: &Datatype, was: &Datatype) -> Result<()> {
    match is == was {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Mismatch,
            "recover",
            format!("writes are of {was}, and the array is of {is} now"),
        )
        .target(name)),
    }
}
