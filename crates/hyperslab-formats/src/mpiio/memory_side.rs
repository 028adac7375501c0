//! The memory side of a transfer: source or destination of each request's bytes.

use super::handle::Direction;
use super::requests::{FileRuns, Request, RequestLimits, Requests};
use crate::posix::buffer_pool::{Buffer, BufferPool};
use crate::posix::data_backend::Elements;
use crate::posix::transfer::{is_packed, whole_elements};
use hyperslab_core::{ElementPiece, Gather, MemoryView, MemoryViewMut, Result, Scatter};
use smallvec::SmallVec;
use std::ffi::c_void;

/// Packed memory, or memory gathered into or scattered from a buffer, one fill at a time.
pub(super) enum Memory<'a> {
    From(&'a [u8]),
    Into(&'a mut [u8]),
    Gathered { gather: Gather<'a>, buffer: Buffer<'a>, element: usize, fields: SmallVec<[ElementPiece; 2]> },
    Scattered { scatter: Scatter<'a>, buffer: Buffer<'a> },
}

impl<'a> Memory<'a> {
    /// Memory and requests of a write; `limits.fill` is set to the capacity.
    pub fn to_write(
        elements: Elements<'a>,
        memory: MemoryView<'a>,
        staging: &'a BufferPool,
        limits: RequestLimits,
    ) -> Result<(Self, Requests<'a>)> {
        let Elements { selection, shape, dtype } = elements;
        let runs = selection.runs(shape, dtype.size())?;
        let (element, count) = (dtype.size(), selection.len());
        if is_packed(memory.layout, dtype)? {
            let requests =
                Requests::new(FileRuns::whole(runs), count * element, RequestLimits { fill: u64::MAX, ..limits });
            return Ok((Self::From(memory.data), requests));
        }
        let plan = memory.layout.plan(dtype)?;
        let buffer = staging.take(whole_elements(staging, element, count));
        let held = buffer.len() as u64 / element;
        let (fields, moved) = if plan.covers_element() {
            (SmallVec::new(), element)
        } else {
            let mut fields = plan.pieces.clone();
            fields.sort_by_key(|field| field.element);
            (fields, plan.pieces.iter().map(|field| field.len).sum())
        };
        let file =
            if fields.is_empty() { FileRuns::whole(runs) } else { FileRuns::fields(runs, element, fields.clone()) };
        let requests = Requests::new(file, count * moved, RequestLimits { fill: held * moved, ..limits });
        let gather = Gather::new(memory, dtype, count)?;
        Ok((Self::Gathered { gather, buffer, element: element as usize, fields }, requests))
    }

    /// Memory and requests of a read; `limits.fill` is set to the capacity.
    pub fn to_read(
        elements: Elements<'a>,
        memory: MemoryViewMut<'a>,
        staging: &'a BufferPool,
        limits: RequestLimits,
    ) -> Result<(Self, Requests<'a>)> {
        let Elements { selection, shape, dtype } = elements;
        let runs = FileRuns::whole(selection.runs(shape, dtype.size())?);
        let (element, count) = (dtype.size(), selection.len());
        if is_packed(memory.layout, dtype)? {
            let requests = Requests::new(runs, count * element, RequestLimits { fill: u64::MAX, ..limits });
            return Ok((Self::Into(memory.data), requests));
        }
        let buffer = staging.take(whole_elements(staging, element, count));
        let requests = Requests::new(runs, count * element, RequestLimits { fill: buffer.len() as u64, ..limits });
        Ok((Self::Scattered { scatter: Scatter::new(memory, dtype, count)?, buffer }, requests))
    }

    pub fn direction(&self) -> Direction {
        match self {
            Self::From(_) | Self::Gathered { .. } => Direction::Write,
            Self::Into(_) | Self::Scattered { .. } => Direction::Read,
        }
    }

    /// Prepares a request; returns the address of its `request.len` bytes.
    pub fn before(&mut self, request: Request) -> *mut c_void {
        let part = request.at as usize..(request.at + request.len) as usize;
        match self {
            Self::From(data) => data[part].as_ptr().cast_mut().cast(),
            Self::Into(data) => data[part].as_mut_ptr().cast(),
            Self::Scattered { buffer, .. } => buffer[part].as_mut_ptr().cast(),
            Self::Gathered { gather, buffer, element, fields } => {
                if request.at == 0 {
                    let moved: usize = fields.iter().map(|field| field.len as usize).sum();
                    let elements = if fields.is_empty() {
                        request.fill as usize / *element
                    } else {
                        request.fill as usize / moved
                    };
                    gather.next_into(&mut buffer[..elements * *element]);
                    let mut to = 0;
                    for at in (0..if fields.is_empty() { 0 } else { elements }).map(|i| i * *element) {
                        for field in fields.iter() {
                            let from = at + field.element as usize;
                            buffer.copy_within(from..from + field.len as usize, to);
                            to += field.len as usize;
                        }
                    }
                }
                buffer[part].as_mut_ptr().cast()
            }
        }
    }

    /// Consumes the bytes that a request has read.
    pub fn after(&mut self, request: Request) {
        if let Self::Scattered { scatter, buffer } = self
            && request.at + request.len == request.fill
        {
            scatter.next_from(&buffer[..request.fill as usize]);
        }
    }
}
