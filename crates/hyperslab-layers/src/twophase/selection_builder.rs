//! Building few selections from increasing runs in storage order, with consecutive packed bytes.

use super::message::continues;
use super::range_to_slabs::{range_to_slabs, regular};
use super::storage_order::{Frame, StorageOrder};
use hyperslab_core::{Array, ArraySpec, MemoryView, Result, Row, Run, Selection, Slab, TransferMode, dims};

/// Minimum length of a run that is accessed by itself: libraries handle boxes faster than unions.
const LONG: u64 = 64 << 10;
/// Maximum slabs of a union: joining more takes longer than another access.
const MOST_SLABS: usize = 4096;

/// A selection that is accessed by one request.
#[derive(Debug)]
pub(super) struct Part {
    pub selection: Selection,
    pub bytes: usize,
}

/// The selections for runs. Each chunk is in a single one, so that a chunk covered by several runs is accessed whole.
pub(super) fn parts(order: &StorageOrder, runs: impl Iterator<Item = Run>) -> Result<Vec<Part>> {
    let mut builder =
        SelectionBuilder { order, frame: None, row: None, slabs: Vec::new(), elements: 0, parts: Vec::new() };
    for mut run in runs {
        while run.len > 0 {
            let (number, start) = match order.chunks {
                Some(_) => (run.offset / order.frame_bytes, run.offset / order.frame_bytes * order.frame_bytes),
                None => (0, 0),
            };
            let len = run.len.min(start + order.frame_bytes - run.offset);
            builder.enter(number)?;
            builder.add(run.offset - start, len)?;
            run = Run { offset: run.offset + len, len: run.len - len };
        }
    }
    builder.flush()?;
    Ok(builder.parts)
}

/// Writes packed elements, in the requests that formats are fastest with.
pub(crate) fn write_in_parts(array: &dyn Array, spec: &ArraySpec, selection: &Selection, packed: &[u8]) -> Result<()> {
    match StorageOrder::new(spec)?.filter(|order| order.chunks.is_none()) {
        Some(order) => {
            let parts = parts(&order, selection.runs(&spec.shape, spec.dtype.size())?)?;
            write_parts(array, &parts, packed)
        }
        None => array.write(selection, MemoryView::packed(packed), TransferMode::Independent),
    }
}

/// Writes parts with consecutive packed bytes.
pub(super) fn write_parts(array: &dyn Array, parts: &[Part], packed: &[u8]) -> Result<()> {
    let mut rest = packed;
    let views: Vec<_> = parts
        .iter()
        .map(|part| {
            let (bytes, more) = rest.split_at(part.bytes);
            rest = more;
            (&part.selection, MemoryView::packed(bytes))
        })
        .collect();
    match views.as_slice() {
        [] => Ok(()),
        [(selection, view)] => array.write(selection, *view, TransferMode::Independent),
        several => array.write_many(several, TransferMode::Independent),
    }
}

struct SelectionBuilder<'a> {
    order: &'a StorageOrder,
    /// The current frame and its number.
    frame: Option<(u64, Frame)>,
    /// The pending row of runs, in elements, which the next run may extend.
    row: Option<Row>,
    slabs: Vec<Slab>,
    /// Number of elements of `slabs`.
    elements: u64,
    parts: Vec<Part>,
}

impl SelectionBuilder<'_> {
    fn enter(&mut self, number: u64) -> Result<()> {
        if self.frame.as_ref().is_none_or(|(now, _)| *now != number) {
            self.flush()?;
            self.frame = Some((number, self.order.frame(number)?));
        }
        Ok(())
    }

    /// Adds bytes of the frame.
    fn add(&mut self, offset: u64, len: u64) -> Result<()> {
        let element = self.order.element;
        let next = Row { offset: offset / element, len: len / element, count: 1, stride: len / element };
        if len >= LONG && self.order.chunks.is_none() {
            self.flush()?;
            let (parts, rank) = (&mut self.parts, self.order.shape.len());
            return range_to_slabs(next.offset..next.offset + next.len, &self.order.shape, |slab, elements| {
                parts.push(Part { selection: Selection::union(rank, [slab])?, bytes: (elements * element) as usize });
                Ok(())
            });
        }
        if self.row.as_mut().is_some_and(|row| continues(row, &next)) {
            return Ok(());
        }
        self.end_row()?;
        self.row = Some(next);
        Ok(())
    }

    fn end_row(&mut self) -> Result<()> {
        let (Some(row), Some((_, frame))) = (self.row.take(), &self.frame) else { return Ok(()) };
        if row.count > 1
            && let Some(slab) = regular(row, &frame.shape)?
        {
            return self.push(slab);
        }
        let shape = frame.shape.clone();
        for i in 0..row.count {
            let from = row.offset + i * row.stride;
            range_to_slabs(from..from + row.len, &shape, |slab, _| self.push(slab))?;
        }
        Ok(())
    }

    fn push(&mut self, slab: Slab) -> Result<()> {
        self.elements += slab.len();
        self.slabs.push(slab);
        if self.slabs.len() >= MOST_SLABS && self.order.chunks.is_none() { self.close() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.end_row()?;
        self.close()
    }

    /// Ends the current part.
    fn close(&mut self) -> Result<()> {
        let Some((_, frame)) = self.frame.as_ref().filter(|_| !self.slabs.is_empty()) else { return Ok(()) };
        let slabs = std::mem::take(&mut self.slabs);
        let elements = std::mem::take(&mut self.elements);
        let selection = if elements == dims::element_count(&frame.inside)? {
            Selection::dense(&frame.origin, &frame.inside)?
        } else {
            let origin: Vec<i64> = frame.origin.iter().map(|&index| index as i64).collect();
            Selection::union(frame.shape.len(), slabs)?.shifted(&origin)?
        };
        self.parts.push(Part { selection, bytes: (elements * self.order.element) as usize });
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{ArraySpec, Datatype, Dims};
    use proptest::prelude::*;

    fn order(shape: &[u64], chunk: Option<&[u64]>) -> StorageOrder {
        let spec = ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(Datatype::Opaque(2), shape) };
        StorageOrder::new(&spec).unwrap().unwrap()
    }

    proptest! {
        #[test]
        fn parts_are_the_elements_of_the_runs_in_order(
            (shape, chunk) in prop::collection::vec((1u64..7, 1u64..7), 1..4)
                .prop_map(|both| both.into_iter().unzip::<u64, u64, Dims, Dims>()),
            chunked in any::<bool>(),
            lengths in prop::collection::vec((0u64..9, 1u64..9), 0..12),
        ) {
            let order = order(&shape, chunked.then_some(chunk.as_slice()));
            // Every element that is inside the array, by its place in storage order.
            let frames = order.chunks.as_ref().map_or(1, |grid| grid.len());
            let mut places = Vec::new();
            for number in 0..frames {
                let frame = order.frame(number).unwrap();
                let inside = Selection::dense(&Dims::from_elem(0, shape.len()), &frame.inside).unwrap();
                let start = number * order.frame_bytes;
                places.extend(inside.runs(&frame.shape, 2).unwrap().flat_map(|r| (r.offset..r.end()).step_by(2)).map(|b| b + start));
            }
            let (mut at, mut chosen) = (0, Vec::new());
            for (gap, len) in lengths {
                at += gap as usize;
                chosen.extend(places.iter().skip(at).take(len as usize).copied());
                at += len as usize;
            }
            let mut runs: Vec<Run> = Vec::new();
            for &place in &chosen {
                match runs.last_mut() {
                    Some(last) if last.end() == place => last.len += 2,
                    _ => runs.push(Run { offset: place, len: 2 }),
                }
            }
            let mut found = Vec::new();
            for part in parts(&order, runs.into_iter()).unwrap() {
                prop_assert_eq!(part.selection.len() * 2, part.bytes as u64);
                // Where each element of the part is, in the order of packed memory.
                for run in part.selection.runs(&shape, 1).unwrap() {
                    for linear in run.offset..run.end() {
                        let mut rest = linear;
                        let index: Dims = dims::pitches(&shape).iter().map(|p| { let i = rest / p; rest %= p; i }).collect();
                        found.push(match &order.chunks {
                            None => linear * 2,
                            Some(grid) => {
                                let chunk = grid.chunk_of(&index).unwrap();
                                let origin = grid.origin(&chunk).unwrap();
                                let within = index.iter().zip(&origin).zip(grid.chunk()).fold(0, |at, ((i, o), c)| at * c + (i - o));
                                grid.linear(&chunk).unwrap() * order.frame_bytes + within * 2
                            }
                        });
                    }
                }
            }
            prop_assert_eq!(found, chosen);
        }
    }

    #[test]
    fn long_runs_are_boxes_and_covered_chunks_are_whole() {
        let plain = order(&[1 << 10, 1 << 10], None);
        let list = parts(&plain, std::iter::once(Run { offset: 10, len: 1 << 20 })).unwrap();
        assert!(list.len() == 3 && list.iter().all(|part| part.selection.as_slab().is_some_and(Slab::is_dense)));
        let chunked = order(&[6, 6], Some(&[4, 4]));
        let rows = (0..4).map(|row| Run { offset: 32 + row * 8, len: 4 }).chain([Run { offset: 96, len: 4 }]);
        let list = parts(&chunked, rows).unwrap();
        assert_eq!(list.len(), 2, "the chunk at the right edge whole, two elements of the last");
        assert_eq!(list[0].selection, Selection::dense(&[0, 4], &[4, 2]).unwrap());
        assert_eq!(list[1].selection, Selection::dense(&[4, 4], &[1, 2]).unwrap());
    }
}
