//! Packed access to the caller's memory, in the order of the selection.

use super::storage_order::StorageOrder;
use hyperslab_core::{Datatype, Gather, MemoryLayout, MemoryView, MemoryViewMut, Result, Scatter};
use std::ops::Range;

/// Whether memory is packed, whatever the form of its layout.
fn is_packed(layout: &MemoryLayout, dtype: &Datatype) -> Result<bool> {
    Ok(layout.is_packed() || (layout.within.is_none() && layout.plan(dtype)?.is_identity()))
}

/// The source of a write.
pub(super) enum Outgoing<'a> {
    /// The caller's packed memory.
    Packed(&'a [u8]),
    /// A packed copy, if bytes are not sent in the order of the selection.
    Copied(Vec<u8>),
    /// Gathered incrementally, in order.
    Streamed(Box<Gather<'a>>),
}

impl<'a> Outgoing<'a> {
    /// `in_order`: bytes are requested in increasing order.
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

    /// All bytes, unless gathered incrementally.
    pub fn all(&self) -> Option<&[u8]> {
        match self {
            Self::Packed(bytes) => Some(bytes),
            Self::Copied(bytes) => Some(bytes),
            Self::Streamed(_) => None,
        }
    }

    /// All bytes, if the caller's memory is packed.
    pub fn lent(&self) -> Option<&'a [u8]> {
        match self {
            Self::Packed(bytes) => Some(bytes),
            Self::Copied(_) | Self::Streamed(_) => None,
        }
    }

    /// Appends a range of whole elements; incremental sources require increasing order.
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

/// The destination of a read.
pub(super) enum Incoming<'a> {
    /// The caller's packed memory.
    Packed(&'a mut [u8]),
    /// A packed copy, scattered when complete.
    Copied(Vec<u8>, Box<Scatter<'a>>),
    /// Scattered incrementally, in order.
    Streamed(Box<Scatter<'a>>),
}

impl<'a> Incoming<'a> {
    /// `in_order`: bytes arrive in increasing order.
    pub fn new(memory: MemoryViewMut<'a>, dtype: &Datatype, elements: u64, in_order: bool) -> Result<Self> {
        let bytes = (elements * dtype.size()) as usize;
        if is_packed(memory.layout, dtype)? {
            return Ok(Self::Packed(&mut memory.data[..bytes]));
        }
        let scatter = Box::new(Scatter::new(memory, dtype, elements)?);
        Ok(if in_order { Self::Streamed(scatter) } else { Self::Copied(vec![0; bytes], scatter) })
    }

    /// All bytes, unless gathered incrementally.
    pub fn all(&mut self) -> Option<&mut [u8]> {
        match self {
            Self::Packed(bytes) => Some(bytes),
            Self::Copied(bytes, _) => Some(bytes),
            Self::Streamed(_) => None,
        }
    }

    /// Stores the bytes from `at` on; incremental destinations require increasing order.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        match self {
            Self::Packed(all) => all[at as usize..][..bytes.len()].copy_from_slice(bytes),
            Self::Copied(all, _) => all[at as usize..][..bytes.len()].copy_from_slice(bytes),
            Self::Streamed(scatter) => {
                scatter.next_from(bytes);
            }
        }
    }

    /// Completes the read once all bytes have arrived.
    pub fn finish(self) {
        if let Self::Copied(bytes, mut scatter) = self {
            scatter.next_from(&bytes);
        }
    }
}

/// Whether a transfer with `lanes` lanes processes bytes in the order of the selection.
pub(super) fn in_order(order: &StorageOrder, lanes: usize) -> bool {
    order.chunks.is_none() && lanes == 1
}
