//! Reads, resolved through the index.

use super::array::LogLayoutArray;
use super::entry::{DataLocation, Entry};
use super::index::{Part, Resolved, resolve};
use super::log_window::{Window, copy_pieces};
use hyperslab_core::{
    ArraySpec, Error, ErrorKind, MemoryViewMut, Result, Scatter, Selection, TransferMode, packed_intersection,
};
use std::sync::Arc;

/// Size of the staging buffer.
const STAGE: u64 = 16 << 20;

/// A running read.
pub(super) struct Reading<'a> {
    array: &'a LogLayoutArray,
    spec: Arc<ArraySpec>,
}

impl<'a> Reading<'a> {
    pub fn new(array: &'a LogLayoutArray) -> Result<Self> {
        let spec = array.named.lock().spec.clone();
        let spec = spec.ok_or_else(|| Error::new(ErrorKind::Io, "read", "the array is not known"))?;
        Ok(Self { array, spec })
    }

    fn size(&self) -> u64 {
        self.spec.dtype.size()
    }

    /// Whether the index has no entries for the selection.
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
        selection.for_each_part(STAGE / self.size(), &mut |piece| {
            stage.resize((piece.len() * self.size()) as usize, 0);
            self.piece(piece, &mut stage)?;
            scatter.next_from(&stage);
            Ok(())
        })
    }

    /// Reads whole packed elements.
    pub fn packed(&self, selection: &Selection, into: &mut [u8]) -> Result<()> {
        let mut rest = into;
        selection.for_each_part(STAGE / self.size(), &mut |piece| {
            let (now, later) = std::mem::take(&mut rest).split_at_mut((piece.len() * self.size()) as usize);
            rest = later;
            self.piece(piece, now)
        })
    }

    /// Resolves the locations of a selection.
    pub fn resolve(&self, selection: &Selection) -> Result<Resolved> {
        let entries = self.array.named.lock().index.overlapping(selection, &self.spec.shape);
        resolve(entries, selection)
    }

    fn piece(&self, selection: &Selection, into: &mut [u8]) -> Result<()> {
        match self.resolve(selection) {
            Ok(found) => self.assemble(&found, selection, into),
            // Too many slabs for one step: split.
            Err(error) if error.kind() == ErrorKind::Unsupported && selection.len() > 1 => {
                let mut rest = into;
                selection.for_each_part(selection.len() / 2, &mut |half| {
                    let (now, later) = std::mem::take(&mut rest).split_at_mut((half.len() * self.size()) as usize);
                    rest = later;
                    self.piece(half, now)
                })
            }
            Err(error) => Err(error),
        }
    }

    fn assemble(&self, found: &Resolved, selection: &Selection, into: &mut [u8]) -> Result<()> {
        if found.nothing_logged() {
            return self.array.inner.read(selection, MemoryViewMut::packed(into), TransferMode::Independent);
        }
        // One call for everything that is in the array.
        let plain = found.whole.iter().filter(|part| part.entry.place == DataLocation::Array);
        let slabs = plain.flat_map(|part| part.elements.slabs()).chain(found.rest.slabs()).cloned();
        let plain = Selection::union(selection.rank(), slabs)?;
        if !plain.is_empty() {
            self.take_from_array(&plain, selection, into)?;
        }
        for part in found.whole.iter().chain(&found.over) {
            match part.entry.place {
                DataLocation::Log { volume, offset } => self.take_from_log(part, volume, offset, selection, into)?,
                DataLocation::Array if part.entry.pieces.is_empty() => {}
                DataLocation::Array => self.take_pieces_from_array(part, selection, into)?,
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
        packed_intersection(elements, elements, selection, &self.spec.shape, |from, to, count| {
            let [from, to, len] = [from, to, count].map(|n| (n * size) as usize);
            into[to..to + len].copy_from_slice(&stage[from..from + len]);
            Ok(())
        })
    }

    /// Overlays bytes that were written to the array after the logged ones.
    fn take_pieces_from_array(&self, part: &Part, selection: &Selection, into: &mut [u8]) -> Result<()> {
        let (stage, size) = (self.array_elements(&part.elements)?, self.size() as usize);
        packed_intersection(&part.elements, &part.elements, selection, &self.spec.shape, |from, to, count| {
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
        packed_intersection(&part.elements, &entry.selection, selection, &self.spec.shape, |from, to, count| {
            window.want(from, to, count, into, &put)
        })?;
        window.finish(into, &put)
    }
}
