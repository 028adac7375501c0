//! Reads: every element from where the index says that it is.

use super::array::LogArray;
use super::entry::{Entry, Place};
use super::index::{Part, Resolved, resolve};
use super::log_window::{Window, copy_pieces};
use crate::pairing::pair;
use crate::pieces::each_piece;
use hyperslab_core::{ArraySpec, Error, ErrorKind, MemoryViewMut, Result, Scatter, Selection, TransferMode};
use std::sync::Arc;

/// Bytes of elements that are put together at a time.
const STAGE: u64 = 16 << 20;

/// An array being read.
pub(super) struct Reading<'a> {
    array: &'a LogArray,
    spec: Arc<ArraySpec>,
}

impl<'a> Reading<'a> {
    pub fn new(array: &'a LogArray) -> Result<Self> {
        let spec = array.named.lock().spec.clone();
        let spec = spec.ok_or_else(|| Error::new(ErrorKind::Io, "read", "the array is not known"))?;
        Ok(Self { array, spec })
    }

    fn size(&self) -> u64 {
        self.spec.dtype.size()
    }

    /// Whether the index says nothing of the selected elements.
    fn is_plain(&self, selection: &Selection) -> bool {
        !self.array.named.lock().index.overlaps(selection, &self.spec.shape)
    }

    pub fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
        let check = || {
            selection.check_inside(&self.spec.shape)?;
            memory.check(&self.spec.dtype, selection.len())
        };
        check().map_err(|error| error.backend(super::NAME).target(&self.array.named.name))?;
        if selection.is_empty() {
            return Ok(());
        }
        if self.is_plain(selection) {
            return self.array.inner.read(selection, memory, TransferMode::Independent);
        }
        if memory.layout.is_packed() {
            return self.packed(selection, memory.data);
        }
        let mut scatter = Scatter::new(memory, &self.spec.dtype, selection.len())?;
        let mut stage = Vec::new();
        each_piece(selection, STAGE / self.size(), &mut |piece| {
            stage.resize((piece.len() * self.size()) as usize, 0);
            self.piece(piece, &mut stage)?;
            scatter.next_from(&stage);
            Ok(())
        })
    }

    /// Reads whole elements, packed.
    pub fn packed(&self, selection: &Selection, into: &mut [u8]) -> Result<()> {
        let mut rest = into;
        each_piece(selection, STAGE / self.size(), &mut |piece| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut((piece.len() * self.size()) as usize);
            rest = later;
            self.piece(piece, now)
        })
    }

    /// Where the elements are.
    pub fn resolve(&self, selection: &Selection) -> Result<Resolved> {
        let entries = self.array.named.lock().index.touching(selection, &self.spec.shape);
        resolve(entries, selection)
    }

    fn piece(&self, selection: &Selection, into: &mut [u8]) -> Result<()> {
        match self.resolve(selection) {
            Ok(found) => self.put_together(&found, selection, into),
            // Too many pieces for one step; fewer elements have fewer.
            Err(error) if error.kind() == ErrorKind::Unsupported && selection.len() > 1 => {
                let mut rest = into;
                each_piece(selection, selection.len() / 2, &mut |half| {
                    let (now, later) = std::mem::take(&mut rest).split_at_mut((half.len() * self.size()) as usize);
                    rest = later;
                    self.piece(half, now)
                })
            }
            Err(error) => Err(error),
        }
    }

    fn put_together(&self, found: &Resolved, selection: &Selection, into: &mut [u8]) -> Result<()> {
        if found.nothing_logged() {
            return self.array.inner.read(selection, MemoryViewMut::packed(into), TransferMode::Independent);
        }
        // Everything that is in the array by one call.
        let plain = found.whole.iter().filter(|part| part.entry.place == Place::Array);
        let slabs = plain.flat_map(|part| part.elements.slabs()).chain(found.rest.slabs()).cloned();
        let plain = Selection::union(selection.rank(), slabs)?;
        if !plain.is_empty() {
            self.take_from_array(&plain, selection, into)?;
        }
        for part in found.whole.iter().chain(&found.over) {
            match part.entry.place {
                Place::Log { volume, offset } => self.take_from_log(part, volume, offset, selection, into)?,
                Place::Array if part.entry.pieces.is_empty() => {}
                Place::Array => self.take_pieces_from_array(part, selection, into)?,
            }
        }
        Ok(())
    }

    fn array_elements(&self, elements: &Selection) -> Result<Vec<u8>> {
        let mut stage = vec![0; (elements.len() * self.size()) as usize];
        self.array.inner.read(elements, MemoryViewMut::packed(&mut stage), TransferMode::Independent)?;
        Ok(stage)
    }

    fn take_from_array(&self, elements: &Selection, selection: &Selection, into: &mut [u8]) -> Result<()> {
        let (stage, size) = (self.array_elements(elements)?, self.size());
        pair(elements, elements, selection, &self.spec.shape, |from, to, count| {
            let [from, to, len] = [from, to, count].map(|n| (n * size) as usize);
            into[to..to + len].copy_from_slice(&stage[from..from + len]);
            Ok(())
        })
    }

    /// Some bytes of elements that were written to the array after what the log has of them.
    fn take_pieces_from_array(&self, part: &Part, selection: &Selection, into: &mut [u8]) -> Result<()> {
        let (stage, size) = (self.array_elements(&part.elements)?, self.size() as usize);
        pair(&part.elements, &part.elements, selection, &self.spec.shape, |from, to, count| {
            for n in 0..count as usize {
                let (from, to) = ((from as usize + n) * size, (to as usize + n) * size);
                for piece in &part.entry.pieces {
                    let (at, len) = (piece.offset as usize, piece.len as usize);
                    into[to + at..to + at + len].copy_from_slice(&stage[from + at..from + at + len]);
                }
            }
            Ok(())
        })
    }

    fn take_from_log(
        &self,
        part: &Part,
        volume: u32,
        offset: u64,
        selection: &Selection,
        into: &mut [u8],
    ) -> Result<()> {
        let entry: &Entry = &part.entry;
        let log = self.array.named.lock().log.volume(volume).and_then(|volume| volume.open.clone());
        let log = log.ok_or_else(|| Error::new(ErrorKind::Io, "read", "the log of the array is not open"))?;
        let stride = entry.stride(&self.spec.dtype);
        let mut window = Window::new(&*log.bytes, offset, stride, self.size());
        let put =
            |bytes: &[u8], to: u64, into: &mut [u8]| copy_pieces(bytes, &entry.pieces, stride, self.size(), to, into);
        pair(&part.elements, &entry.selection, selection, &self.spec.shape, |from, to, count| {
            window.want(from, to, count, into, &put)
        })?;
        window.finish(into, &put)
    }
}
