//! Batched reads of many writes.

use super::record::PayloadPlace;
use super::segment::{RecordHandle, Segment};
use super::storage::LogFile;
use super::{corrupt, failed};
use hyperslab_core::Result;
use std::io::IoSliceMut;
use std::sync::Arc;

/// A write and the destination of its elements, of the same length.
pub type ReadRequest<'a> = (&'a RecordHandle, &'a mut [u8]);

/// Maximum gap between writes that one read covers; records are shorter.
const GAP: u64 = 256;
/// Maximum bytes of one read: small enough to stay in the processor cache for the checksum.
const MOST_BYTES: u64 = 256 << 10;
/// Maximum writes of one read: each, and the gap before it, is one part of a vectored read.
const MOST_WRITES: usize = 512;

/// Reads the elements of many writes and verifies their checksums, like [`RecordHandle::read_into`]. Adjacent writes of a
/// file are read by one system call.
pub fn read_all(mut wanted: Vec<ReadRequest<'_>>) -> Result<()> {
    wanted.sort_by_cached_key(|(logged, _)| {
        let location = location(logged);
        (Arc::as_ptr(location.segment) as usize, location.in_data, location.offset)
    });
    let mut rest = &mut wanted[..];
    while !rest.is_empty() {
        let (close, behind) = rest.split_at_mut(adjacent_count(rest));
        read_close(close)?;
        rest = behind;
    }
    Ok(())
}

/// The location of a write's elements.
struct PayloadLocation<'a> {
    segment: &'a Arc<Segment>,
    in_data: bool,
    offset: u64,
}

fn location(logged: &RecordHandle) -> PayloadLocation<'_> {
    let (in_data, offset) = match logged.payload.place {
        PayloadPlace::Behind => (false, logged.behind),
        PayloadPlace::Data(offset) => (true, offset),
    };
    PayloadLocation { segment: &logged.segment, in_data, offset }
}

impl PayloadLocation<'_> {
    fn file(&self) -> Option<&dyn LogFile> {
        match self.in_data {
            false => Some(&*self.segment.meta),
            true => self.segment.data.get().map(|data| &**data),
        }
    }
}

/// The number of leading writes that one read covers.
fn adjacent_count(wanted: &[ReadRequest<'_>]) -> usize {
    let Some(((first, _), others)) = wanted.split_first() else { return 0 };
    if !first.is_written_out() {
        return 1;
    }
    let (begin, mut end) = (location(first), location(first).offset + first.len());
    let close = others.iter().take(MOST_WRITES - 1).take_while(|(logged, _)| {
        let next = location(logged);
        let same = Arc::ptr_eq(next.segment, begin.segment) && next.in_data == begin.in_data;
        let gap = next.offset.checked_sub(end);
        end = next.offset + logged.len();
        same && gap.is_some_and(|gap| gap <= GAP) && end - begin.offset <= MOST_BYTES && logged.is_written_out()
    });
    1 + close.count()
}

/// Reads consecutive writes of a file, with short gaps, by one vectored read.
fn read_close(wanted: &mut [ReadRequest<'_>]) -> Result<()> {
    let (first, from) = match wanted {
        [] => return Ok(()),
        [(logged, into)] => return logged.read_into(into),
        [(logged, _), ..] => (*logged, location(logged).offset),
    };
    let mut between = vec![0; GAP as usize * wanted.len()];
    let (mut parts, mut rest, mut end) = (Vec::with_capacity(2 * wanted.len()), &mut between[..], from);
    for (logged, into) in wanted.iter_mut() {
        if into.len() as u64 != logged.len() {
            return Err(corrupt(format!("{} bytes to read {} into", into.len(), logged.len())));
        }
        let (gap, behind) = std::mem::take(&mut rest).split_at_mut((location(logged).offset - end) as usize);
        rest = behind;
        end = location(logged).offset + logged.len();
        if !gap.is_empty() {
            parts.push(IoSliceMut::new(gap));
        }
        parts.push(IoSliceMut::new(into));
    }
    let name = || first.segment_list.name_of(first.segment.number);
    let location = location(first);
    let file = location.file().ok_or_else(|| corrupt("its data are gone").target(name()))?;
    let read = file.read_parts_at(&mut parts, from).map_err(|cause| failed("read journal", name(), cause))?;
    if (read as u64) < end - from {
        return Err(first.changed());
    }
    wanted.iter().try_for_each(|(logged, into)| logged.check(into))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::{Append, Directory, Header, Id, Journal, Limits, SyncMode};
    use super::*;
    use hyperslab_core::{Datatype, Selection};
    use std::os::unix::fs::FileExt;

    fn content(number: usize, len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 7 + number * 13) as u8).collect()
    }

    /// Writes of these lengths in a journal.
    fn journal(folder: &std::path::Path, sync: SyncMode, lengths: &[usize]) -> (Arc<Journal>, Vec<RecordHandle>) {
        let files = Arc::new(Directory::open(folder).unwrap());
        let header = Header::new(Id::random().unwrap(), 0, 1, "posix", "/x".into()).unwrap();
        let journal = Journal::create(files, header, Limits { sync, ..Limits::new(64 << 20) }).unwrap();
        let append = |(number, len): (usize, &usize)| {
            let selection = Selection::dense(&[0], &[*len as u64]).unwrap();
            match journal.append("a", &Datatype::U8, &selection, &[&content(number, *len)]).unwrap() {
                Append::Logged(logged) => logged,
                other => panic!("{other:?}"),
            }
        };
        let logged = lengths.iter().enumerate().map(append).collect();
        (journal, logged)
    }

    #[test]
    fn many_writes_are_read_in_any_order_from_files_and_memory() {
        let lengths: Vec<usize> = (0..700).map(|number| [1, 4096, 20_000, 300, 70_000][number * number % 5]).collect();
        for sync in [SyncMode::OnFlush, SyncMode::None] {
            let folder = tempfile::tempdir().unwrap();
            let (_journal, logged) = journal(folder.path(), sync, &lengths);
            // Some are left out, and the others asked for from the middle on.
            let numbers: Vec<usize> = (0..700).map(|n| (n * 3 + 350) % 700).filter(|n| n % 11 != 0).collect();
            let mut found: Vec<Vec<u8>> = numbers.iter().map(|number| vec![0; lengths[*number]]).collect();
            let wanted = numbers.iter().zip(&mut found).map(|(number, into)| (&logged[*number], &mut into[..]));
            read_all(wanted.collect()).unwrap();
            for (number, found) in numbers.iter().zip(&found) {
                assert_eq!(*found, content(*number, lengths[*number]), "{number}");
            }
        }
    }

    #[test]
    fn what_has_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (_journal, logged) = journal(folder.path(), SyncMode::OnFlush, &[4096; 8]);
        let read = || {
            let mut found = vec![0; 8 * 4096];
            read_all(logged.iter().zip(found.chunks_mut(4096)).collect())
        };
        read().unwrap();
        let segment = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let segment = segment.max_by_key(|path| path.metadata().unwrap().len()).unwrap();
        let file = std::fs::File::options().write(true).open(segment).unwrap();
        file.write_all_at(&[0xEE; 16], logged[5].behind + 100).unwrap();
        assert!(read().unwrap_err().to_string().contains("no longer what they were"));
        file.set_len(logged[6].behind).unwrap();
        assert!(read().is_err());
    }
}
