//! Appending to a journal.

use super::bytes::Encoder;
use super::files::{Files, Lock, LogFile};
use super::header::Header;
use super::record;
use super::segment::{Logged, Segment};
use super::segment_head::SegmentHead;
use super::shelf::Shelf;
use super::{checksum, failed, names};
use hyperslab_core::{Datatype, Error, Result};
use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

const SMALLEST_LIMIT: u64 = 64 << 10;

/// How large the files of a journal may become, and how safe their removal is.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes after which a segment is full; it may exceed them by one record.
    pub segment: u64,
    /// Whether names of segments become durable in their order, for journals that shall survive the loss of power. Otherwise
    /// that is left to the file system; those with a journal of their own do so.
    pub durable: bool,
}

impl Limits {
    /// Segments of an eighth, from 32 KiB to 64 MiB.
    pub fn new(bytes: u64) -> Self {
        Self { bytes, segment: (bytes / 8).clamp(32 << 10, 64 << 20), durable: false }
    }
}

/// What became of an append.
#[derive(Debug)]
pub enum Append {
    /// It is in the journal, and survives the end of the process.
    Logged(Logged),
    /// There is no room until earlier writes are done.
    Full {
        /// Bytes to [wait](Journal::wait_for_room) for.
        needed: u64,
    },
    /// It never fits.
    TooLarge,
}

/// A journal that this process writes. Dropping it removes its files if all writes are done, and leaves them otherwise.
#[derive(Debug)]
pub struct Journal {
    pub(super) shelf: Arc<Shelf>,
    header: Header,
    pub(super) limits: Limits,
    writer: Mutex<Writer>,
    /// One sync at a time: a second one must not return before the first has done its part.
    syncing: Mutex<()>,
}

#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) current: Option<Current>,
    segments: u64,
    /// The sequence number of the next record.
    pub(super) next: u64,
    /// Space for records, used again.
    pub(super) buffer: Vec<u8>,
    closed: bool,
}

/// The segment that grows.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) segment: Arc<Segment>,
    pub(super) meta_end: u64,
    /// Length of the file, which may end in zeros.
    pub(super) meta_len: u64,
    pub(super) data_end: u64,
    /// Numbers of the arrays that it knows.
    pub(super) arrays: HashMap<String, (Datatype, u32)>,
    pub(super) next_array: u32,
}

impl Journal {
    /// Creates the head of a journal and locks it. No segment is there yet.
    pub fn create(files: Arc<dyn Files>, header: Header, limits: Limits) -> Result<Arc<Self>> {
        if limits.bytes < SMALLEST_LIMIT {
            return Err(Error::invalid("create journal", format!("{} bytes are too few", limits.bytes))
                .hint("allow 64KiB at least"));
        }
        let stem = names::stem(&header);
        let (unfinished, name) = (format!("{stem}{}", names::UNFINISHED), format!("{stem}{}", names::HEAD));
        let head = write_head(&*files, &header, &unfinished, &name)
            .inspect_err(|_| drop(files.remove(&unfinished)))
            .map_err(|cause| failed("create journal", format!("{}/{name}", files.place()), cause))?;
        let shelf = Arc::new(Shelf::new(files, stem, limits.durable, head));
        let writer = Mutex::new(Writer { next: 1, ..Writer::default() });
        Ok(Arc::new(Self { shelf, header, limits, writer, syncing: Mutex::default() }))
    }

    /// Whose it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Bytes that its files may have.
    pub fn limit(&self) -> u64 {
        self.limits.bytes
    }

    /// Bytes of its files.
    pub fn used(&self) -> u64 {
        self.shelf.used()
    }

    /// Writes that are not done.
    pub fn pending(&self) -> u64 {
        self.shelf.pending()
    }

    /// The segment that grows, begun if there is none.
    pub(super) fn current<'a>(&self, writer: &'a mut Writer) -> Result<&'a mut Current> {
        if writer.current.is_none() {
            self.shelf.check_process()?;
            let number = writer.segments + 1;
            let done_before = self.shelf.first_pending(writer.next);
            let head = SegmentHead { journal: self.header.journal, number, first: writer.next, done_before };
            let name = names::meta(&self.shelf.stem, number);
            let bytes = head.encode();
            // The names before must not be lost while this one is kept: it would look as if they had been removed.
            let safe = if self.limits.durable { self.shelf.files.sync_names() } else { Ok(()) };
            let meta = safe.and_then(|()| self.shelf.files.create(&name)).and_then(|meta| {
                let written = meta.write_at(&[IoSlice::new(&bytes)], 0);
                // A segment without a head must not stay: later ones would stand behind it.
                written.inspect_err(|_| drop(self.shelf.files.remove(&name))).map(|()| meta)
            });
            let meta = meta.map_err(|cause| failed("append to journal", self.shelf.name_of(number), cause))?;
            writer.segments = number;
            self.shelf.names_changed.store(true, Ordering::Release);
            let seed = checksum::seed(&self.header.journal, number);
            let (data, dirty) = (OnceLock::new(), AtomicBool::new(true));
            let segment = Arc::new(Segment { number, seed, meta, data, dirty });
            self.shelf.push(segment.clone(), writer.next, bytes.len() as u64);
            let (meta_end, arrays) = (bytes.len() as u64, HashMap::new());
            writer.current =
                Some(Current { segment, meta_end, meta_len: meta_end, data_end: 0, arrays, next_array: 0 });
        }
        writer.current.as_mut().ok_or_else(|| super::corrupt("no segment"))
    }

    /// Ends the segment that grows.
    pub(super) fn fill(&self, writer: &mut Writer) {
        writer.current = None;
        self.shelf.fill();
    }

    /// Waits until there is room for an append that was [`Append::Full`], or the journal failed, or the time is over, which
    /// is `false`.
    pub fn wait_for_room(&self, needed: u64, limit: Duration) -> bool {
        self.shelf.wait(limit, |used| used.saturating_add(needed) <= self.limits.bytes)
    }

    /// Makes it known to a later recovery that what is done is done. Where all writes are done, their files go; otherwise a
    /// record says so. See the module for when this is needed.
    pub fn checkpoint(&self) -> Result<()> {
        self.shelf.check_process()?;
        let mut writer = self.writer()?;
        if self.shelf.pending() == 0 {
            self.fill(&mut writer);
            return self.shelf.check();
        }
        let (sequence, before) = (writer.next, self.shelf.first_pending(writer.next));
        let current = self.current(&mut writer)?;
        let mut out = Encoder::default();
        record::put_checkpoint(&mut out, current.segment.seed, sequence, before);
        let grown = match self.write_meta(current, &out.0) {
            Ok(grown) => grown,
            Err(cause) => {
                return Err(self.undo(current, failed("append to journal", self.shelf.files.place(), cause)));
            }
        };
        current.meta_end += out.0.len() as u64;
        self.shelf.add(grown, 1, false);
        writer.next += 1;
        Ok(())
    }

    /// Makes every append and checkpoint that returned before durable. Appends of other threads go on meanwhile.
    pub fn sync(&self) -> Result<()> {
        let _one = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.shelf.check()?;
        let failed = |cause| {
            // What the kernel could not write it may have forgotten: nothing is certain any more.
            let error = failed("sync journal", self.shelf.files.place(), cause);
            self.shelf.fail(error.copied());
            error
        };
        self.shelf.segments().iter().try_for_each(|segment| segment.sync()).map_err(failed)?;
        if self.shelf.names_changed.swap(false, Ordering::AcqRel) {
            self.shelf.head.sync().and_then(|()| self.shelf.files.sync_names()).map_err(failed)?;
        }
        Ok(())
    }

    /// Ends the journal. If every write is done its files are removed; otherwise they stay for recovery, and this returns
    /// `false`. Works for a journal that failed, too: after `true`, nothing of it can be replayed any more, and the container
    /// may be written past it. Later calls say the same again.
    pub fn close_and_remove(&self) -> Result<bool> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.current = None;
        if self.shelf.pending() > 0 || !self.shelf.is_ours() {
            writer.closed = true;
            return Ok(false);
        }
        if !std::mem::replace(&mut writer.closed, true) || self.shelf.check().is_err() {
            self.shelf.remove_all()?;
        }
        Ok(true)
    }

    pub(super) fn writer(&self) -> Result<MutexGuard<'_, Writer>> {
        self.shelf.check()?;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        match writer.closed {
            false => Ok(writer),
            true => Err(Error::invalid("append to journal", "it is closed").backend("journal")),
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Nobody is left to tell; files that stay are found by recovery.
        let _ = self.close_and_remove();
    }
}

/// The head becomes visible under its name when it is complete and locked.
fn write_head(files: &dyn Files, header: &Header, unfinished: &str, name: &str) -> std::io::Result<Arc<dyn LogFile>> {
    let head = files.create(unfinished)?;
    if head.lock()? == Lock::Busy {
        return Err(std::io::Error::other("a file just created is locked by someone else"));
    }
    head.write_at(&[IoSlice::new(&header.encode())], 0)?;
    files.rename(unfinished, name)?;
    Ok(head)
}
