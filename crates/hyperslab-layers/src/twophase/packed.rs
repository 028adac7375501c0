//! The caller's memory as packed bytes, in the order of the selection.

use super::storage_order::StorageOrder;
use hyperslab_core::{Datatype, Gather, MemoryLayout, MemoryView, MemoryViewMut, Result, Scatter};
use std::ops::Range;

/// Whether memory holds whole elements one after another, however the layout says so.
fn is_packed(layout: &MemoryLayout, dtype: &Datatype) -> Result<bool> {
    Ok(layout.is_packed() || (layout.within.is_none() && layout.plan(dtype)?.is_identity()))
}

/// Where the bytes of a write come from.
pub(super) enum Outgoing<'a> {
    /// The caller's own bytes.
    Packed(&'a [u8]),
    /// A packed copy of all of them: needed where they are not sent in the order of the selection.
    Copied(Vec<u8>),
    /// Gathered while they are sent, in order.
    Streamed(Box<Gather<'a>>),
}

impl<'a> Outgoing<'a> {
    /// `in_order`: bytes are asked for one after the other.
    pub fn new(memory: MemoryView<'a>, dtype: &Datatype, elements: u64, in_order: bool) -> Result<Self> {
        let bytes = (elements * dtype.size()) as usize;
        if is_packed(memory.layout, dtype)? {
            return Ok(Self::Packed(&memory.data[..bytes])); // a structure's buffer may be longer
        }
        let mut gather = Gather::new(memory, dtype, elements)?;
        if in_order {
            return Ok(Self::Streamed(Box::new(gather)));
        }
        let mut copy = vec![0; bytes];
        gather.next_into(&mut copy);
        Ok(Self::Copied(copy))
    }

    /// All bytes, unless they are streamed.
    pub fn all(&self) -> Option<&[u8]> {
        match self {
            Self::Packed(bytes) => Some(bytes),
            Self::Copied(bytes) => Some(bytes),
            Self::Streamed(_) => None,
        }
    }

    /// All bytes, if they are the caller's own.
    pub fn lent(&self) -> Option<&'a [u8]> {
        match self {
            Self::Packed(bytes) => Some(bytes),
            Self::Copied(_) | Self::Streamed(_) => None,
        }
    }

    /// Appends a range, whole elements; what is streamed must be asked for in order.
    pub fn append(&mut self, range: Range<u64>, to: &mut Vec<u8>) {
        match self {
            Self::Streamed(gather) => {
                let from = to.len();
                to.resize(from + (range.end - range.start) as usize, 0);
                gather.next_into(&mut to[from..]);
            }
            Self::Packed(bytes) => to.extend_from_slice(&bytes[range.start as usize..range.end as usize]),
            Self::Copied(bytes) => to.extend_from_slice(&bytes[range.start as usize..range.end as usize]),
        }
    }
}

/// Where the bytes of a read go.
pub(super) enum Incoming<'a> {
    /// The caller's own bytes.
    Packed(&'a mut [u8]),
    /// A packed copy of all of them, and how they are spread when it is complete.
    Copied(Vec<u8>, Box<Scatter<'a>>),
    /// Spread as they come, in order.
    Streamed(Box<Scatter<'a>>),
}

impl<'a> Incoming<'a> {
    /// `in_order`: bytes come one after the other.
    pub fn new(memory: MemoryViewMut<'a>, dtype: &Datatype, elements: u64, in_order: bool) -> Result<Self> {
        let bytes = (elements * dtype.size()) as usize;
        if is_packed(memory.layout, dtype)? {
            return Ok(Self::Packed(&mut memory.data[..bytes]));
        }
        let scatter = Box::new(Scatter::new(memory, dtype, elements)?);
        Ok(if in_order { Self::Streamed(scatter) } else { Self::Copied(vec![0; bytes], scatter) })
    }

    /// All bytes, unless they are streamed.
    pub fn all(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Packed(bytes) => Some(bytes),
            Self::Copied(bytes, _) => Some(bytes),
            Self::Streamed(_) => None,
        }
    }

    /// Takes the bytes from `at` on; what is streamed must come in order.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        match self {
            Self::Packed(all) => all[at as usize..][..bytes.len()].copy_from_slice(bytes),
            Self::Copied(all, _) => all[at as usize..][..bytes.len()].copy_from_slice(bytes),
            Self::Streamed(scatter) => {
                scatter.next_from(bytes);
            }
        }
    }

    /// Called when all bytes have come.
    pub fn finish(self) {
        if let Self::Copied(bytes, mut scatter) = self {
            scatter.next_from(&bytes);
        }
    }
}

/// Whether bytes of a transfer with `lanes` lanes are taken in the order of the selection.
pub(super) fn in_order(order: &StorageOrder, lanes: usize) -> bool {
    order.chunks.is_none() && lanes == 1
}
