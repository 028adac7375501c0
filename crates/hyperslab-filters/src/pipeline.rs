//! All filters of an array, one after the other.

use crate::FilterSpec;
use crate::codec::{Codec, Outcome};
use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, inexpressible};
use crate::filter::Filter;
use crate::fletcher32;
use crate::scratch::Scratch;
use hyperslab_core::{Error, Result};

/// Masks have a bit for each.
const MOST_FILTERS: usize = 32;

/// The filters of an array, in the order of writing.
#[derive(Debug, Clone)]
pub struct Pipeline {
    chunk_bytes: usize,
    filters: Vec<Filter>,
    stored_limit: usize,
}

/// Memory and coder states of one thread, kept from chunk to chunk.
#[derive(Debug, Default)]
pub struct Workspace {
    buffers: [Scratch; 2],
    pub(crate) contexts: CodecContexts,
}

/// The stored form of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// What goes to the file.
    pub bytes: &'a [u8],
    /// A bit for every filter that was left out, the first filter being the lowest.
    pub mask: u32,
}

/// Where the bytes between two filters are.
#[derive(Clone, Copy)]
enum Place {
    /// Where the caller put them.
    Given,
    /// In a buffer of the workspace.
    Buffer(usize),
}

impl Pipeline {
    /// For chunks of `chunk_bytes` bytes. Refuses, with kind `Unsupported`, filters and parameters unknown here, naming
    /// the filter; whoever asks then leaves the array to libhdf5.
    pub fn new(filters: &[FilterSpec], chunk_bytes: usize) -> Result<Self> {
        if filters.len() > MOST_FILTERS {
            let what = format!("{} filters are more than the {MOST_FILTERS} that HDF5 has", filters.len());
            return Err(Error::unsupported("set up filters", what));
        }
        let filters = filters.iter().map(Filter::new).collect::<Result<Vec<_>>>()?;
        // A filter that is left out for a chunk leaves it as large as it was.
        let stored_limit =
            filters.iter().fold(chunk_bytes, |limit, filter| limit.max(filter.codec.stored_limit(limit)));
        Ok(Self { chunk_bytes, filters, stored_limit })
    }

    /// Whether chunks are stored as they are.
    pub fn is_plain(&self) -> bool {
        self.filters.is_empty()
    }

    /// The most bytes that a stored chunk may have; larger ones are damaged.
    pub fn stored_limit(&self) -> usize {
        self.stored_limit
    }

    /// The stored form of a chunk. A filter that would make it larger is left out if it is optional.
    pub fn encode<'a>(&self, chunk: &'a [u8], workspace: &'a mut Workspace) -> Result<Encoded<'a>> {
        self.code(chunk, None, workspace)
    }

    /// The stored form of a chunk by exactly the filters that `mask` does not leave out, even if they make it larger.
    pub fn encode_with<'a>(&self, chunk: &'a [u8], mask: u32, workspace: &'a mut Workspace) -> Result<&'a [u8]> {
        self.code(chunk, Some(mask), workspace).map(|encoded| encoded.bytes)
    }

    fn code<'a>(&self, chunk: &'a [u8], left_out: Option<u32>, workspace: &'a mut Workspace) -> Result<Encoded<'a>> {
        self.check_size(chunk.len(), "encode chunk")?;
        let Workspace { buffers, contexts } = workspace;
        let (mut place, mut len, mut mask) = (Place::Given, chunk.len(), 0);
        for (bit, filter) in self.filters.iter().enumerate() {
            if left_out.is_some_and(|mask| mask >> bit & 1 == 1) {
                mask |= 1 << bit;
                continue;
            }
            if let (Codec::Fletcher32, Place::Buffer(which)) = (&filter.codec, place) {
                let sum = fletcher32::stored_sum(buffers[which].filled(len));
                buffers[which].append(len, &sum);
                len += sum.len();
                continue;
            }
            let (from, out, next) = ends(place, chunk, buffers);
            match filter.codec.encode(&from[..len], out, contexts)? {
                Outcome::Larger(_) | Outcome::Inexpressible if filter.optional && left_out.is_none() => {
                    mask |= 1 << bit
                }
                Outcome::Inexpressible => return Err(inexpressible(&filter.codec, len)),
                Outcome::Coded(size) | Outcome::Larger(size) => (place, len) = (Place::Buffer(next), size),
            }
        }
        let bytes = match place {
            Place::Given => chunk,
            Place::Buffer(which) => buffers[which].filled(len),
        };
        Ok(Encoded { bytes, mask })
    }

    /// The chunk of a stored form, into exactly as many bytes as a chunk has. `mask` names the filters that were left
    /// out. What is damaged is an error of kind `Corrupt`; `chunk` then holds anything.
    pub fn decode(&self, stored: &[u8], mask: u32, chunk: &mut [u8], workspace: &mut Workspace) -> Result<()> {
        self.check_size(chunk.len(), "decode chunk")?;
        if stored.len() > self.stored_limit {
            let what = format!("{} bytes are stored where {} is the most", stored.len(), self.stored_limit);
            return Err(corrupt("filters", what));
        }
        let mut used = [(&Codec::Fletcher32, Size::Exactly(0)); MOST_FILTERS];
        let used = self.used(mask, &mut used);
        let Workspace { buffers, contexts } = workspace;
        let (mut place, mut len) = (Place::Given, stored.len());
        for (index, (codec, size)) in used.iter().enumerate().rev() {
            let (from, out, next) = ends(place, stored, buffers);
            let from = &from[..len];
            if **codec == Codec::Fletcher32 {
                len = fletcher32::verified(from)?.len(); // what is before the checksum stays where it is
                continue;
            }
            if index == 0 {
                return codec.decode_exactly(from, chunk, contexts);
            }
            len = match *size {
                Size::Exactly(size) => {
                    codec.decode_exactly(from, out.room(size), contexts)?;
                    size
                }
                Size::AtMost(size) => {
                    let what = || corrupt(codec.name(), format!("more than {size} bytes came out"));
                    codec.decode(from, out.room(size), contexts)?.ok_or_else(what)?
                }
            };
            place = Place::Buffer(next);
        }
        let (from, ..) = ends(place, stored, buffers);
        if len != chunk.len() {
            return Err(corrupt("filters", format!("{len} bytes are stored where {} belong", chunk.len())));
        }
        chunk.copy_from_slice(&from[..len]);
        Ok(())
    }

    /// The filters that `mask` does not leave out, with the sizes of what they were given when writing.
    fn used<'a, 'b>(&'a self, mask: u32, used: &'b mut [(&'a Codec, Size); MOST_FILTERS]) -> &'b [(&'a Codec, Size)] {
        let mut count = 0;
        let mut size = Size::Exactly(self.chunk_bytes);
        for (bit, filter) in self.filters.iter().enumerate() {
            if mask & (1 << bit) == 0 {
                used[count] = (&filter.codec, size);
                count += 1;
                size = size.after(&filter.codec);
            }
        }
        &used[..count]
    }

    fn check_size(&self, len: usize, operation: &'static str) -> Result<()> {
        if len == self.chunk_bytes {
            return Ok(());
        }
        Err(Error::invalid(operation, format!("a chunk has {} bytes, not {len}", self.chunk_bytes)))
    }
}

/// What is known of a size before the bytes are seen.
#[derive(Debug, Clone, Copy)]
enum Size {
    Exactly(usize),
    AtMost(usize),
}

impl Size {
    fn after(self, codec: &Codec) -> Self {
        let (Self::Exactly(before) | Self::AtMost(before)) = self;
        match (self, codec.fixed_size(before)) {
            (Self::Exactly(_), Some(size)) => Self::Exactly(size),
            _ => Self::AtMost(codec.stored_limit(before)),
        }
    }
}

/// What to read, the buffer to write, and its number.
fn ends<'a>(place: Place, given: &'a [u8], buffers: &'a mut [Scratch; 2]) -> (&'a [u8], &'a mut Scratch, usize) {
    let [first, second] = buffers;
    match place {
        Place::Given => (given, first, 0),
        Place::Buffer(0) => (first.all(), second, 1),
        Place::Buffer(_) => (second.all(), first, 0),
    }
}
