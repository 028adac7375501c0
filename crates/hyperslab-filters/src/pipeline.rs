//! The filter pipeline of an array.

use crate::FilterSpec;
use crate::codec::{Codec, Outcome};
use crate::codec_contexts::CodecContexts;
use crate::errors::{corrupt, inexpressible};
use crate::filter::Filter;
use crate::fletcher32;
use crate::scratch::Scratch;
use hyperslab_core::{Error, Result};

/// Filter masks have 32 bits.
const MOST_FILTERS: usize = 32;

/// The filters of an array, in the order of writing.
#[derive(Debug, Clone)]
pub struct Pipeline {
    chunk_bytes: usize,
    filters: Vec<Filter>,
    stored_limit: usize,
}

/// Buffers and codec contexts of one thread, reused from chunk to chunk.
#[derive(Debug, Default)]
pub struct Workspace {
    buffers: [Scratch; 2],
    pub(crate) contexts: CodecContexts,
}

/// The stored form of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The encoded bytes.
    pub bytes: &'a [u8],
    /// Filter mask: bit i is set if filter i was skipped.
    pub mask: u32,
    /// Whether HDF5's own filters would have skipped one more: an optional one that gives up where it saves nothing.
    pub gave_up: bool,
}

/// Location of the intermediate data between two filters.
#[derive(Clone, Copy)]
enum Place {
    /// The caller's input.
    Given,
    /// In a buffer of the workspace.
    Buffer(usize),
}

impl Pipeline {
    /// A pipeline for chunks of `chunk_bytes` bytes. Refuses unsupported filters and parameters with kind `Unsupported`, naming the
    /// filter; callers then fall back to libhdf5.
    pub fn new(filters: &[FilterSpec], chunk_bytes: usize) -> Result<Self> {
        if filters.len() > MOST_FILTERS {
            let what = format!("{} filters are more than the {MOST_FILTERS} that HDF5 has", filters.len());
            return Err(Error::unsupported("set up filters", what));
        }
        let filters = filters.iter().map(Filter::new).collect::<Result<Vec<_>>>()?;
        // A skipped filter does not change the size.
        let stored_limit =
            filters.iter().fold(chunk_bytes, |limit, filter| limit.max(filter.codec.stored_limit(limit)));
        Ok(Self { chunk_bytes, filters, stored_limit })
    }

    /// Whether there is no filter.
    pub fn is_plain(&self) -> bool {
        self.filters.is_empty()
    }

    /// Upper bound of the size of a stored chunk; larger ones are corrupt.
    pub fn stored_limit(&self) -> usize {
        self.stored_limit
    }

    /// Encodes a chunk. An optional filter that does not shrink it is skipped.
    pub fn encode<'a>(&self, chunk: &'a [u8], workspace: &'a mut Workspace) -> Result<Encoded<'a>> {
        self.code(chunk, None, workspace)
    }

    /// Encodes a chunk with exactly the filters whose bit in `mask` is clear, even if they make it larger.
    pub fn encode_with<'a>(&self, chunk: &'a [u8], mask: u32, workspace: &'a mut Workspace) -> Result<Encoded<'a>> {
        self.code(chunk, Some(mask), workspace)
    }

    fn code<'a>(&self, chunk: &'a [u8], left_out: Option<u32>, workspace: &'a mut Workspace) -> Result<Encoded<'a>> {
        self.check_size(chunk.len(), "encode chunk")?;
        let Workspace { buffers, contexts } = workspace;
        let (mut place, mut len, mut mask, mut gave_up) = (Place::Given, chunk.len(), 0, false);
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
            let outcome = filter.codec.encode(&from[..len], out, contexts)?;
            gave_up |= matches!(outcome, Outcome::Larger(_)) && filter.optional && filter.codec.gives_up();
            match outcome {
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
        Ok(Encoded { bytes, mask, gave_up })
    }

    /// Decodes a stored chunk into `chunk`, which has exactly the chunk size. `mask` has the bits of skipped filters set. Corrupt
    /// data is an error of kind `Corrupt`; the contents of `chunk` are then unspecified.
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
                len = fletcher32::verified(from)?.len(); // the data before the checksum is not copied
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

    /// The filters that `mask` does not skip, with the sizes of their inputs at encoding.
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

/// What is known of a size before decoding.
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

/// The input, the output buffer, and the number of that buffer.
fn ends<'a>(place: Place, given: &'a [u8], buffers: &'a mut [Scratch; 2]) -> (&'a [u8], &'a mut Scratch, usize) {
    let [first, second] = buffers;
    match place {
        Place::Given => (given, first, 0),
        Place::Buffer(0) => (first.all(), second, 1),
        Place::Buffer(_) => (second.all(), first, 0),
    }
}
