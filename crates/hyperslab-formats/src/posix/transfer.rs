//! Moving the runs of a selection between a file and memory.

use super::data_file::DataFile;
use super::placement::Placement;
use super::range_lock::RangeLock;
use super::staging::Staging;
use hyperslab_core::{Datatype, Gather, MemoryLayout, MemoryView, MemoryViewMut, Result, Run, Scatter, Selection};

/// Runs at least this long are read straight to where they belong.
const LONG: u64 = 64 << 10;
/// Reading over a gap this long costs no more than a second system call.
const GAP: u64 = 16 << 10;
/// Most runs taken out of one larger read.
const GROUP: usize = 4096;

/// Whether memory is exactly the packed elements, however the layout says so.
pub(crate) fn is_packed(layout: &MemoryLayout, dtype: &Datatype) -> Result<bool> {
    Ok(layout.is_packed() || (layout.within.is_none() && layout.plan(dtype)?.is_identity()))
}

/// How many bytes of whole elements fit in a staging buffer, no more than there are; at least one element.
pub(crate) fn whole_elements(staging: &Staging, element: u64, elements: u64) -> usize {
    ((staging.size() as u64 / element).clamp(1, elements.max(1)) * element) as usize
}

/// Writes whole elements. Every run is written by itself: the bytes between runs may be another rank's at this moment.
pub(crate) fn write(
    (file, place): (&DataFile, &Placement),
    staging: &Staging,
    selection: &Selection,
    shape: &[u64],
    dtype: &Datatype,
    memory: MemoryView<'_>,
) -> Result<()> {
    if !place.turns() && is_packed(memory.layout, dtype)? {
        if let Some(begin) = place.contiguous()
            && let Some(run) = selection.single_run(shape, dtype.size())
        {
            return file.write_at(&memory.data[..run.len as usize], begin + run.offset);
        }
        let mut at = 0;
        let mut runs = place.runs(selection.runs(shape, dtype.size())?);
        return runs.try_for_each(|run| {
            let from = at;
            at += run.len as usize;
            file.write_at(&memory.data[from..at], run.offset)
        });
    }
    let mut left = selection.len() * dtype.size();
    let mut gather = Gather::new(memory, dtype, selection.len())?;
    let mut buffer = staging.take(whole_elements(staging, dtype.size(), selection.len()));
    let mut runs = Pieces::new(place.runs(selection.runs(shape, dtype.size())?).map(|run| (run, ())));
    while left > 0 {
        let n = left.min(buffer.len() as u64) as usize;
        gather.next_into(&mut buffer[..n]);
        place.turn(&mut buffer[..n]);
        let mut at = 0;
        while let Some((run, ())) = runs.next_up_to((n - at) as u64) {
            file.write_at(&buffer[at..at + run.len as usize], run.offset)?;
            at += run.len as usize;
        }
        left -= n as u64;
    }
    Ok(())
}

/// Writes some fields of the selected elements and keeps the others, also where other ranks write those meanwhile.
/// Callers that share `file` must exclude each other; others are excluded by a lock on the range.
pub(crate) fn write_fields(
    file: &DataFile,
    staging: &Staging,
    selection: &Selection,
    shape: &[u64],
    dtype: &Datatype,
    memory: MemoryView<'_>,
) -> Result<()> {
    let element = dtype.size();
    let mut gather = Gather::new(memory, dtype, selection.len())?;
    let mut buffer = staging.take(whole_elements(staging, element, u64::MAX / element));
    let mut runs = Pieces::new(selection.runs(shape, element)?.map(|run| (run, ())));
    let mut group = Vec::new();
    loop {
        runs.next_group(u64::MAX, buffer.len() as u64, &mut group);
        let (Some((first, ())), Some((last, ()))) = (group.first().copied(), group.last().copied()) else {
            return Ok(());
        };
        let span = &mut buffer[..(last.end() - first.offset) as usize];
        let _lock = RangeLock::wait(file, first.offset, last.end() - first.offset)?;
        file.read_cached(span, first.offset)?;
        for (run, ()) in &group {
            let from = (run.offset - first.offset) as usize;
            let elements = &mut span[from..from + run.len as usize];
            gather.next_into(elements);
            file.write_cached(elements, run.offset)?;
        }
    }
}

/// Reads the elements of one file.
pub(crate) fn read_file(
    (file, place): (&DataFile, &Placement),
    staging: &Staging,
    selection: &Selection,
    shape: &[u64],
    dtype: &Datatype,
    memory: MemoryViewMut<'_>,
) -> Result<()> {
    if let Some(begin) = place.contiguous().filter(|_| !place.turns())
        && let Some(run) = selection.single_run(shape, dtype.size())
        && is_packed(memory.layout, dtype)?
    {
        return file.read_at(&mut memory.data[..run.len as usize], begin + run.offset);
    }
    let runs = place.runs(selection.runs(shape, dtype.size())?).map(|run| (run, ()));
    let fetch = |(), bytes: &mut [u8], offset| file.read_at(bytes, offset);
    read(runs, fetch, staging, place, (selection.len(), dtype), memory)
}

/// Reads runs that lie in one or several sources, rising, into memory. `fetch` fills bytes from a source, in the byte order
/// of `place`.
pub(crate) fn read<S: Copy + PartialEq>(
    runs: impl Iterator<Item = (Run, S)>,
    fetch: impl Fn(S, &mut [u8], u64) -> Result<()>,
    staging: &Staging,
    place: &Placement,
    (elements, dtype): (u64, &Datatype),
    memory: MemoryViewMut<'_>,
) -> Result<()> {
    let mut reader = Reader { runs: Pieces::new(runs), fetch, staging, group: Vec::new() };
    if is_packed(memory.layout, dtype)? {
        // Turned while they are in the processor's cache.
        let part = if place.turns() { whole_elements(staging, dtype.size(), elements) } else { memory.data.len() };
        return memory.data.chunks_mut(part.max(1)).try_for_each(|part| {
            reader.fill(part)?;
            place.turn(part);
            Ok(())
        });
    }
    let mut left = elements * dtype.size();
    let mut scatter = Scatter::new(memory, dtype, elements)?;
    let mut buffer = staging.take(whole_elements(staging, dtype.size(), elements));
    while left > 0 {
        let n = left.min(buffer.len() as u64) as usize;
        reader.fill(&mut buffer[..n])?;
        place.turn(&mut buffer[..n]);
        scatter.next_from(&buffer[..n]);
        left -= n as u64;
    }
    Ok(())
}

struct Reader<'a, I: Iterator<Item = (Run, S)>, F, S> {
    runs: Pieces<I, S>,
    fetch: F,
    staging: &'a Staging,
    group: Vec<(Run, S)>,
}

impl<I, F, S> Reader<'_, I, F, S>
where
    I: Iterator<Item = (Run, S)>,
    F: Fn(S, &mut [u8], u64) -> Result<()>,
    S: Copy + PartialEq,
{
    /// Fills `packed` with the next bytes of the runs. Small runs near each other are read as one.
    fn fill(&mut self, packed: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < packed.len() {
            if let Some((run, source)) = self.runs.next_if_long((packed.len() - done) as u64) {
                (self.fetch)(source, &mut packed[done..done + run.len as usize], run.offset)?;
                done += run.len as usize;
                continue;
            }
            let largest = self.staging.size() as u64;
            self.runs.next_group((packed.len() - done) as u64, largest, &mut self.group);
            match self.group.as_slice() {
                [] => return Ok(()),
                [(run, source)] => {
                    (self.fetch)(*source, &mut packed[done..done + run.len as usize], run.offset)?;
                    done += run.len as usize;
                }
                [(first, source), .., (last, _)] => {
                    let mut sieve = self.staging.take((last.end() - first.offset) as usize);
                    (self.fetch)(*source, &mut sieve, first.offset)?;
                    for (run, _) in &self.group {
                        let (from, len) = ((run.offset - first.offset) as usize, run.len as usize);
                        packed[done..done + len].copy_from_slice(&sieve[from..from + len]);
                        done += len;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Runs with where they lie, handed out in pieces and groups.
#[derive(Debug, Clone)]
pub(crate) struct Pieces<I, S> {
    runs: I,
    next: Option<(Run, S)>,
}

impl<I: Iterator<Item = (Run, S)>, S: Copy + PartialEq> Pieces<I, S> {
    pub fn new(mut runs: I) -> Self {
        let next = runs.next();
        Self { runs, next }
    }

    /// The next run, cut to `limit` bytes; `None` at the end or when the limit is 0.
    pub fn next_up_to(&mut self, limit: u64) -> Option<(Run, S)> {
        let (run, source) = self.next?;
        if limit == 0 {
            return None;
        }
        if run.len <= limit {
            self.next = self.runs.next();
            return Some((run, source));
        }
        self.next = Some((Run { offset: run.offset + limit, len: run.len - limit }, source));
        Some((Run { offset: run.offset, len: limit }, source))
    }

    /// The next run, cut to `limit` bytes, if that is long enough to be moved by itself.
    fn next_if_long(&mut self, limit: u64) -> Option<(Run, S)> {
        let (run, _) = self.next?;
        if run.len.min(limit) < LONG { None } else { self.next_up_to(limit) }
    }

    /// Puts into `group` the next runs that are better moved as one: small, of one source, near each other, of at most
    /// `limit` bytes together and `span` bytes from first to last. A long run comes alone, cut to `limit` where longer,
    /// and to `span` when that is what the caller can hold. Empty at the end.
    fn next_group(&mut self, limit: u64, span: u64, group: &mut Vec<(Run, S)>) {
        group.clear();
        let alone = if limit == u64::MAX { span } else { limit };
        let Some((first, source)) = self.next_up_to(alone) else { return };
        group.push((first, source));
        let mut total = first.len;
        let mut end = first.end();
        while let Some((run, from)) = self.next {
            let near = from == source && run.offset - end <= GAP && run.end() - first.offset <= span;
            if first.len >= LONG || !near || run.len >= LONG || total + run.len > limit || group.len() == GROUP {
                break;
            }
            total += run.len;
            end = run.end();
            group.push((run, source));
            self.next = self.runs.next();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_single_run_is_found_where_there_is_one() {
        let run = |start: &[u64], count: &[u64], shape: &[u64]| {
            let selection = Selection::dense(start, count).unwrap();
            let found = selection.single_run(shape, 3);
            let runs: Vec<Run> = selection.runs(shape, 3).unwrap().collect();
            assert_eq!(found, (runs.len() == 1).then(|| runs[0]), "{start:?} {count:?} of {shape:?}");
            found.is_some()
        };
        assert!(run(&[5], &[7], &[20]));
        assert!(run(&[], &[], &[]));
        assert!(run(&[2, 0], &[3, 4], &[9, 4]));
        assert!(run(&[2, 1], &[1, 3], &[9, 4]));
        assert!(!run(&[2, 1], &[2, 3], &[9, 4]));
        assert!(run(&[1, 2, 0], &[1, 2, 5], &[3, 4, 5]));
        assert!(!run(&[0, 0, 1], &[1, 2, 1], &[3, 4, 5]));
        assert!(run(&[0, 3, 0], &[3, 1, 1], &[3, 4, 1]) == run(&[0, 3], &[3, 1], &[3, 4]));
        let every_second = Selection::strided(&[0], &[2], &[4], &[1]).unwrap();
        assert_eq!(every_second.single_run(&[9], 1), None);
    }

    #[test]
    fn small_runs_are_read_together_and_land_in_order() {
        let file: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let staging = Staging::new(8192, 1);
        let calls = Cell::new(0);
        let fetch = |source: u8, to: &mut [u8], at: u64| {
            calls.set(calls.get() + 1);
            for (to, from) in to.iter_mut().zip(&file[at as usize..]) {
                *to = from ^ source;
            }
            Ok(())
        };
        let mut runs: Vec<(Run, u8)> = (0..100).map(|i| (Run { offset: i * 30, len: 10 }, 0)).collect();
        runs.push((Run { offset: 3000, len: 5 }, 7));
        runs.push((Run { offset: 40_000, len: 100_000 }, 0));
        let expected: Vec<u8> = runs
            .iter()
            .flat_map(|(run, source)| file[run.offset as usize..run.end() as usize].iter().map(move |b| b ^ source))
            .collect();
        let mut packed = vec![0; expected.len()];
        let memory = MemoryViewMut::packed(&mut packed);
        let what = (expected.len() as u64, &Datatype::U8);
        read(runs.iter().copied(), fetch, &staging, &Placement::ALONE, what, memory).unwrap();
        assert_eq!(packed, expected);
        assert_eq!(calls.get(), 3, "a group, the other source, the long run");

        let mut spaced = vec![9; expected.len() * 3];
        let layout = MemoryLayout::member(3, 1);
        let memory = MemoryViewMut { data: &mut spaced, layout: &layout };
        read(runs.iter().copied(), fetch, &staging, &Placement::ALONE, what, memory).unwrap();
        assert!(spaced.chunks(3).zip(&expected).all(|(got, want)| got == [9, *want, 9]));
    }
}
