//! Contiguous datasets.

use crate::coalesce::{Coalescer, Pair, Sink, WORTH_A_CALL};
use crate::direct_dataset::{DirectDataset, Extent};
use crate::fallback::FallbackReason;
use crate::file;
use crate::late_writes::LateWrites;
use crate::memory::{Source, Target};
use crate::metadata_backend::MetadataBackend;
use crate::raw_io::{self, GroupReader, GroupWriter, Readahead};
use crate::workers::{FirstError, WorkerPermits, with_workers};
use hyperslab_core::{Result, Row, Run, Selection};
use std::sync::atomic::{AtomicU64, Ordering};

/// Shorter strided runs are written by read-modify-write of the range that contains them, in one call.
pub(crate) const SHORT: u64 = 1 << 10;
/// Bytes per thread of a run that must be rearranged in memory.
const SHARE: u64 = 2 << 20;

impl DirectDataset {
    /// Whether a write must, or had better, read and write back the bytes in between. Requires exclusive access.
    pub(crate) fn needs_read_modify_write(&self, shape: &[u64], selection: &Selection, whole: bool) -> Result<bool> {
        if !whole || !self.single_writer {
            return Ok(!whole);
        }
        if selection.single_run(shape, self.element).is_some() {
            return Ok(false);
        }
        let Some(mut rows) = selection.runs(shape, self.element)?.into_rows() else { return Ok(false) };
        let row = rows.next_row();
        Ok(row.is_some_and(|row| row.len < SHORT && row.count > 8 && row.stride - row.len < WORTH_A_CALL))
    }

    pub(crate) fn read_contiguous(
        &self,
        extent: &Extent,
        control: &dyn MetadataBackend,
        selection: &Selection,
        target: Target<'_>,
    ) -> Result<Option<FallbackReason>> {
        let Some(base) = self.address(control, false)? else { return Ok(Some(FallbackReason::NotAllocated)) };
        if let Some(run) = selection.single_run(&extent.shape, self.element) {
            return match target.as_packed() {
                Some(packed) => {
                    // SAFETY: the memory is this transfer's, and nobody else works on it.
                    file::read(&self.file, unsafe { packed.slice(0..run.len as usize) }, base + run.offset)
                }
                None => self.in_shares(base, run, |buffer, pair| self.reading(&target, buffer).take_one(pair)),
            }
            .map(|()| None);
        }
        let mut buffer = Vec::new();
        let mut reading = self.reading(&target, &mut buffer);
        let mut grouping = Coalescer::new(WORTH_A_CALL, &mut reading);
        raw_io::for_each_run(selection, &extent.shape, self.element, base, &mut |pair| grouping.add(pair))?;
        grouping.finish().map(|()| None)
    }

    pub(crate) fn write_contiguous(
        &self,
        extent: &Extent,
        control: &dyn MetadataBackend,
        selection: &Selection,
        source: Source<'_>,
        read_modify_write: bool,
    ) -> Result<Option<FallbackReason>> {
        // With other processes, allocation is a collective operation.
        let Some(base) = self.address(control, self.single_writer)? else {
            return Ok(Some(FallbackReason::NotAllocated));
        };
        if let Some(run) = selection.single_run(&extent.shape, self.element) {
            return match source.as_packed() {
                Some(packed) => file::write(&self.file, self.guard(), &packed[..run.len as usize], base + run.offset),
                None => self.in_shares(base, run, |buffer, pair| {
                    self.writing(&source, read_modify_write, buffer).take_one(pair)
                }),
            }
            .map(|()| None);
        }
        let mut buffer = Vec::new();
        let mut writing = self.writing(&source, read_modify_write, &mut buffer);
        let mut grouping = Coalescer::new(if read_modify_write { WORTH_A_CALL } else { 0 }, &mut writing);
        raw_io::for_each_run(selection, &extent.shape, self.element, base, &mut |pair| grouping.add(pair))?;
        grouping.finish().map(|()| None)
    }

    pub(crate) fn reading<'a, 'm>(&'a self, target: &Target<'m>, buffer: &'a mut Vec<u8>) -> GroupReader<'a, 'm> {
        GroupReader {
            file: &self.file,
            target: target.clone(),
            element: self.element,
            buffer,
            ahead: Readahead::default(),
        }
    }

    pub(crate) fn writing<'a, 'm>(
        &'a self,
        source: &Source<'m>,
        read_modify_write: bool,
        buffer: &'a mut Vec<u8>,
    ) -> GroupWriter<'a, 'm> {
        GroupWriter {
            file: &self.file,
            guard: self.guard(),
            source: source.clone(),
            element: self.element,
            read_modify_write,
            buffer,
            late: LateWrites::new(&self.file),
        }
    }

    /// Transfers a run whose elements are not packed in memory, divided among several threads.
    fn in_shares(&self, base: u64, run: Run, work: impl Fn(&mut Vec<u8>, Pair) -> Result<()> + Sync) -> Result<()> {
        let threads = ((run.len / SHARE) as usize).clamp(1, self.threads);
        let helpers = WorkerPermits::acquire(threads - 1);
        // Small shares: a thread that started late delays the call little.
        let share = (SHARE / self.element).max(1) * self.element;
        let (next, errors) = (AtomicU64::new(0), FirstError::default());
        let drain = || {
            let mut buffer = Vec::new();
            loop {
                let from = next.fetch_add(share, Ordering::Relaxed);
                if from >= run.len || errors.is_set() {
                    return;
                }
                let len = share.min(run.len - from);
                let row = |offset| Row { offset, len, count: 1, stride: len };
                let pair = Pair { file: row(base + run.offset + from), memory: row(from) };
                if let Err(error) = work(&mut buffer, pair) {
                    errors.note(error);
                }
            }
        };
        with_workers(&helpers, || &drain, drain)?;
        errors.into_result()
    }
}

/// Use of a sink for a single row.
trait TakeOne: Sink {
    fn take_one(&mut self, pair: Pair) -> Result<()>
    where
        Self: Sized,
    {
        let mut grouping = Coalescer::new(0, self);
        grouping.add(pair)?;
        grouping.finish()
    }
}

impl<S: Sink> TakeOne for S {}
