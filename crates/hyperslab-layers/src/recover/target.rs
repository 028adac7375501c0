//! The container that a replay writes to.

use super::left::Touched;
use super::whole_chunks::WholeChunks;
use crate::images::Images;
use crate::journal::Write;
use crate::pieces::each_piece;
use hyperslab_core::{
    Array, ArraySpec, Container, Datatype, Durability, Error, ErrorKind, MemoryView, Result, Selection, TransferMode,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Arrays that are kept open.
const OPEN: usize = 64;
/// Bytes of a write that are in memory at a time.
const PIECE: u64 = 64 << 20;

/// An open container and some of its arrays.
#[derive(Debug)]
pub(super) struct Target {
    container: Arc<dyn Container>,
    arrays: HashMap<String, Opened>,
    buffer: Vec<u8>,
    /// Whether chunks with filters have to be stored as a whole.
    relocates_chunks: bool,
    chunks: WholeChunks,
    /// Where they are kept meanwhile, if it matters.
    images: Option<Images>,
}

/// An array, and what it is.
type Opened = (Arc<dyn Array>, Arc<ArraySpec>);

impl Target {
    /// An open container, whose format may move chunks. `images`: for what a crash on the way must not cost.
    pub fn new(container: Arc<dyn Container>, relocates_chunks: bool, images: Option<Images>) -> Self {
        let (arrays, buffer, chunks) = Default::default();
        Self { container, arrays, buffer, relocates_chunks, chunks, images }
    }

    /// Creates arrays that can hold the writes.
    pub fn create(&self, arrays: &BTreeMap<String, Touched>) -> Result<()> {
        arrays.iter().try_for_each(|(name, touched)| {
            let array = self.container.create(name, &ArraySpec::new(touched.dtype.clone(), &touched.extents))?;
            array.close()
        })
    }

    /// Refuses arrays that are not there, or are not what the writes were meant for.
    pub fn check(&mut self, arrays: &BTreeMap<String, Touched>) -> Result<()> {
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

    /// Writes what a journal holds.
    pub fn apply(&mut self, write: &Write) -> Result<()> {
        let name = &write.array.name;
        let element = write.array.dtype.size();
        let (array, spec) = self.array(name)?;
        let whole_chunks = self.relocates_chunks && !spec.filters.is_empty();
        let mut at = 0;
        each_piece(&write.selection, PIECE / element.max(1), &mut |piece| {
            let len = piece.len() * element;
            self.buffer.clear();
            self.buffer
                .try_reserve(len as usize)
                .map_err(|_| Error::invalid("recover", format!("no memory for {len} bytes")))?;
            self.buffer.resize(len as usize, 0);
            match len == write.len() {
                true => write.read_into(&mut self.buffer)?,
                // The reader checked the whole.
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

    /// Makes everything durable and closes.
    pub fn finish(mut self) -> Result<()> {
        let arrays = self.store_chunks().and(self.close_arrays());
        let flushed = arrays.and_then(|()| self.container.flush(Durability::Durable));
        let closed = self.container.close();
        // Images go before the writes that are newer.
        flushed.and(closed).and_then(|()| self.images.as_ref().map_or(Ok(()), Images::finish))
    }

    /// Closes without having changed anything.
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
