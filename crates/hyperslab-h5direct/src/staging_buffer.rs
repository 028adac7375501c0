//! Memory that holds copies of small writes until they are written in one call.
//!
//! Page faults of fresh memory cost more than copying, so a thread prefaults the pages of the next copies while the
//! program computes their bytes.

use crate::direct_dataset::DirectDataset;
use crate::file;
use crate::workers::{WorkerPermits, with_workers};
use hyperslab_core::{Error, Result, Selection};
use memmap2::{Advice, MmapMut, MmapRaw};
use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Unit of work of a thread: one huge page.
const SHARE: usize = 2 << 20;
/// Bytes of a tmpfs file allocated per call: other writers of the file are blocked for that long.
const STEP: u64 = 4 << 20;
/// A huge page that takes longer than this had to be compacted first; no more are requested then.
const PATIENCE: Duration = Duration::from_millis(2);

/// A buffer of fixed capacity. Only pages that were written or prefaulted occupy memory.
#[derive(Debug)]
pub struct StagingBuffer {
    pages: Arc<Pages>,
    room: usize,
    used: usize,
    threads: usize,
}

/// The memory, which another thread may prefault at any time; that does not change its content.
#[derive(Debug)]
struct Pages {
    memory: MmapRaw,
    /// Offset of the buffer, aligned to huge pages.
    start: usize,
    /// Everything before this is in use or prefaulted, or about to be.
    ready: AtomicUsize,
    large: AtomicBool,
}

impl DirectDataset {
    /// Allocates a buffer of `bytes` bytes. Large copies use several threads.
    pub fn staging_buffer(&self, bytes: usize) -> Result<StagingBuffer> {
        let mapped = bytes.checked_add(SHARE).map(MmapMut::map_anon);
        let memory = match mapped {
            Some(mapped) => MmapRaw::from(mapped.map_err(|error| Error::io("allocate buffer", error))?),
            None => return Err(Error::invalid("allocate buffer", "it exceeds the address space")),
        };
        let start = memory.as_ptr().align_offset(SHARE).min(SHARE);
        let pages = Pages { memory, start, ready: AtomicUsize::new(0), large: AtomicBool::new(true) };
        Ok(StagingBuffer { pages: Arc::new(pages), room: bytes, used: 0, threads: self.threads })
    }

    /// Starts a thread that prefaults the first `until` bytes of the buffer, then the file pages that the selection
    /// will be written to, if the file is on tmpfs. It ends when done, when the buffer is dropped, or when the system
    /// does not support it. Never joined.
    pub fn prefault(&self, copies: &StagingBuffer, until: usize, selection: &Selection) {
        let (until, helper) = (until.min(copies.room), WorkerPermits::acquire(1));
        if helper.count() == 0 || until < copies.used + SHARE {
            return;
        }
        let (pages, mut place) = (Arc::downgrade(&copies.pages), self.tmpfs_range(selection));
        let work = move || {
            let _helper = helper;
            let mut next =
                |pages: Arc<Pages>| pages.prefault_next(until) || place.as_mut().is_some_and(TmpfsRange::prefault_next);
            while pages.upgrade().is_some_and(&mut next) {}
        };
        // Without the thread nothing is prefaulted, which only costs time.
        let _ = std::thread::Builder::new().name("h5direct".into()).spawn(work);
    }

    /// The file range of a contiguous selection, if the file is on tmpfs.
    fn tmpfs_range(&self, selection: &Selection) -> Option<TmpfsRange> {
        let extent = self.extent();
        let base = self.known_address().filter(|_| extent.grid.is_none())?;
        let run = selection.single_run(&extent.shape, self.element)?;
        let file = file::is_in_memory(&self.file).then(|| self.file.clone())?;
        Some(TmpfsRange { file, at: base + run.offset..base + run.offset + run.len })
    }
}

/// A range of a tmpfs file whose pages are to be allocated.
struct TmpfsRange {
    file: Arc<File>,
    at: Range<u64>,
}

impl TmpfsRange {
    /// Allocates the next pages; returns whether more may follow. If the file is truncated concurrently, a few pages
    /// beyond its end stay allocated until it is removed.
    fn prefault_next(&mut self) -> bool {
        let len = (self.at.end - self.at.start).min(STEP);
        let found = len > 0 && file::reserve_blocks(&self.file, self.at.start, len);
        self.at.start += len;
        found
    }
}

impl StagingBuffer {
    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Appends a copy of `data` and returns its range; `None` if it does not fit.
    pub fn add(&mut self, data: &[u8]) -> Result<Option<Range<usize>>> {
        let at = self.used..self.used + data.len();
        if data.len() > self.room - self.used {
            return Ok(None);
        }
        self.used = at.end;
        self.pages.ready.fetch_max(at.end, Ordering::Relaxed);
        self.replace(at.clone(), data)?;
        Ok(Some(at))
    }

    /// Overwrites a copy of the same length.
    pub fn replace(&mut self, at: Range<usize>, data: &[u8]) -> Result<()> {
        let pages = &self.pages;
        // SAFETY: the range is inside the buffer by the check of the slice below, and borrowed as this is.
        let all = unsafe { std::slice::from_raw_parts_mut(pages.at(0), self.used) };
        let to = &mut all[at.clone()];
        let helpers = WorkerPermits::acquire((data.len() / SHARE).clamp(1, self.threads) - 1);
        let first = (at.start.next_multiple_of(SHARE) - at.start).min(data.len());
        let ((head, to), (data_head, data)) = (to.split_at_mut(first), data.split_at(first));
        head.copy_from_slice(data_head);
        let places = (at.start + first..).step_by(SHARE);
        let shares = Mutex::new(to.chunks_mut(SHARE).zip(data.chunks(SHARE)).zip(places));
        let work = || {
            let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some(((to, from), place)) = next() {
                pages.with_large_page(place, to.len(), || to.copy_from_slice(from));
            }
        };
        with_workers(&helpers, || &work, work)
    }

    /// Returns a copy.
    pub fn get(&self, at: Range<usize>) -> &[u8] {
        // SAFETY: the first so many bytes were written, and nobody changes them while this is borrowed.
        let all = unsafe { std::slice::from_raw_parts(self.pages.at(0).cast_const(), self.used) };
        &all[at]
    }
}

impl Pages {
    /// The address of an offset in the buffer.
    fn at(&self, place: usize) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(self.start + place)
    }

    /// Prefaults the next unused share; returns whether more may follow.
    fn prefault_next(&self, until: usize) -> bool {
        let next = |ready: usize| {
            let from = ready.next_multiple_of(SHARE);
            (from + SHARE <= until).then_some(from + SHARE)
        };
        let Ok(before) = self.ready.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else { return false };
        let from = before.next_multiple_of(SHARE);
        let populate = || self.memory.advise_range(Advice::PopulateWrite, self.start + from, SHARE);
        self.with_large_page(from, SHARE, populate).is_ok()
    }

    /// Runs `touch`, which faults in the bytes at an offset. Requests a huge page for a whole share, until one was
    /// slow.
    fn with_large_page<T>(&self, place: usize, len: usize, touch: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let asked = len == SHARE
            && self.large.load(Ordering::Relaxed)
            && self.memory.advise_range(Advice::HugePage, self.start + place, len).is_ok();
        let result = touch();
        if asked && begin.elapsed() > PATIENCE {
            self.large.store(false, Ordering::Relaxed);
        }
        result
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::SHARE;
    use crate::{DatasetInfo, DirectDataset, Layout, Limits};
    use hyperslab_core::{Datatype, Selection};
    use std::sync::Arc;

    fn dataset() -> DirectDataset {
        let info = DatasetInfo {
            name: "x".into(),
            file: Arc::new(tempfile::tempfile().unwrap()),
            dtype: Datatype::U8,
            layout: Layout::Contiguous,
            filters: Vec::new(),
            fill: None,
            single_writer: true,
            grows_unallocated: true,
            guard: None,
        };
        DirectDataset::new(info, &[1], Limits { threads: 3, cache: 0 }).unwrap().unwrap()
    }

    fn bytes(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|i| ((i * 31 + seed) >> 3) as u8).collect()
    }

    #[test]
    fn copies_of_any_size_are_the_same() {
        let all = Selection::all(&[1]).unwrap();
        let sizes = [0, 1, 4096, SHARE, 3 * SHARE + 12345, 0, 2 * SHARE - 1, 77];
        for ahead in [false, true] {
            let dataset = dataset();
            let mut copies = dataset.staging_buffer(sizes.iter().sum()).unwrap();
            let mut kept = Vec::new();
            for (seed, len) in sizes.into_iter().enumerate() {
                let data = bytes(len, seed);
                kept.push((copies.add(&data).unwrap().unwrap(), data));
                if ahead {
                    dataset.prefault(&copies, usize::MAX, &all);
                }
                assert!(kept.iter().all(|(at, data)| copies.get(at.clone()) == data), "{len} bytes");
            }
            let (at, data) = &mut kept[4];
            *data = bytes(data.len(), 1000);
            copies.replace(at.clone(), data).unwrap();
            assert!(kept.iter().all(|(at, data)| copies.get(at.clone()) == data));
            assert_eq!(copies.add(&[1]).unwrap(), None);
        }
    }

    #[test]
    fn what_is_made_ready_may_go_at_any_time() {
        let (dataset, all) = (dataset(), Selection::all(&[1]).unwrap());
        for _ in 0..20 {
            let mut copies = dataset.staging_buffer(16 * SHARE).unwrap();
            copies.add(&bytes(SHARE, 0)).unwrap().unwrap();
            dataset.prefault(&copies, 15 * SHARE, &all);
        }
    }

    #[test]
    fn too_much_is_an_error() {
        assert!(dataset().staging_buffer(usize::MAX).is_err());
        assert!(dataset().staging_buffer(usize::MAX / 2).is_err());
    }
}
