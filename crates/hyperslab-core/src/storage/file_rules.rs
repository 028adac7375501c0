//! One file of pieces and chunks: the rules of HDF5.

use super::{StoredArray, StoredLayout, asked};
use crate::default_chunk::{cut_to_fixed_extents, for_growth, grows, near_cube, target_bytes};
use crate::{ArraySpec, Error, Filter, MAX_RANK, Result, Shapes, dims};

/// Which layout arrays are asked to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileLayout {
    /// Chunks if filters, growth or a chunk ask for them, else one piece.
    #[default]
    Auto,
    /// One piece.
    Contiguous,
    /// One piece in the array's header.
    Compact,
    /// Chunks.
    Chunked,
}

/// When elements are set to the fill value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillTime {
    /// When space is allocated, if there is a fill value.
    IfSet,
    /// When space is allocated.
    Allocation,
    /// Never: what was not written reads as anything.
    Never,
}

/// When the space of an array is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllocationTime {
    /// As the library does.
    Default,
    /// When the array is created.
    Early,
    /// At the first write.
    Late,
    /// Chunk by chunk.
    Incremental,
}

/// What the options of a format say; `None` leaves it to the array, or to the library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileRules {
    /// The layout.
    pub layout: FileLayout,
    /// Extents of chunks.
    pub chunk: Option<Shapes>,
    /// Level of zlib.
    pub deflate: Option<u8>,
    /// Byte shuffle.
    pub shuffle: Option<bool>,
    /// Checksums of chunks.
    pub fletcher32: Option<bool>,
    /// Bytes at whose multiples large objects begin.
    pub align: Option<u64>,
    /// When elements are set to the fill value.
    pub fill: Option<FillTime>,
    /// When space is allocated.
    pub allocation: Option<AllocationTime>,
    /// Bytes of the chunks of arrays that grow and say none; `None`: follows from the alignment.
    pub chunk_target: Option<u64>,
}

/// Most bytes of an array kept inside its header (64 KiB with the header message around it).
const COMPACT_BYTES: u64 = (64 << 10) - 32;

impl FileRules {
    /// Most dimensions of an array with chunks. libhdf5 (2.2, `H5S_select_iterate`) writes beyond its arrays when it walks a
    /// selection of 32 dimensions, which it does for chunks only.
    pub const MOST_CHUNKED_DIMENSIONS: usize = MAX_RANK - 1;

    /// Whether objects begin at multiples of something.
    pub fn aligns(&self) -> bool {
        self.align.is_some_and(|align| align > 1)
    }

    /// Whether arrays may be cut into chunks at all.
    pub fn may_chunk(&self) -> bool {
        matches!(self.layout, FileLayout::Auto | FileLayout::Chunked)
    }

    /// Whether the options ask for a filter.
    pub fn has_filters(&self) -> bool {
        self.deflate.is_some() || self.shuffle == Some(true) || self.fletcher32 == Some(true)
    }

    /// Whether every array is cut into chunks.
    pub fn always_chunks(&self) -> bool {
        self.layout == FileLayout::Chunked || self.chunk.is_some() || self.has_filters()
    }

    /// Whether elements never written read as the fill value.
    pub fn fills(&self) -> bool {
        self.fill != Some(FillTime::Never)
    }

    /// Decides; refuses what contradicts itself or libhdf5 cannot do. Options override the specification.
    pub fn decide(&self, spec: &ArraySpec) -> Result<StoredArray> {
        let bad = |message: String, hint: &str| Err(Error::invalid("create array", message).hint(hint));
        spec.check()?;
        let rank = spec.shape.len();
        let filters = self.filters(spec)?;
        let asked = asked("chunk", self.chunk.as_ref(), rank)?.or(spec.chunk.as_ref().filter(|_| rank > 0));
        if spec.fill_value.is_some() && !self.fills() {
            return bad("fill_time=never contradicts the array's fill value".into(), "use fill_time=ifset");
        }
        let grows = grows(spec);
        let must_chunk = match (grows, filters.is_empty()) {
            (true, _) => Some("an array that may grow"),
            (false, false) => Some("an array with filters"),
            (false, true) => None,
        };
        if let Some(what) = must_chunk.filter(|_| !self.may_chunk() || rank == 0) {
            let why = if rank == 0 { "a scalar has none" } else { "the layout option forbids them" };
            return bad(format!("{what} needs chunks, and {why}"), "use layout=auto, and no filters on scalars");
        }
        let chunked = match self.layout {
            FileLayout::Auto => must_chunk.is_some() || asked.is_some(),
            FileLayout::Chunked => rank > 0,
            FileLayout::Contiguous | FileLayout::Compact => false,
        };
        if chunked && rank > Self::MOST_CHUNKED_DIMENSIONS {
            let most = Self::MOST_CHUNKED_DIMENSIONS;
            let message = format!("an array with chunks has at most {most} dimensions here, not {rank}");
            return Err(Error::unsupported("create array", message)
                .hint("leave out chunks, filters and growth, or join two dimensions"));
        }
        let layout = if chunked {
            let chunk = asked.cloned().unwrap_or_else(|| match grows {
                true => for_growth(spec, self.chunk_target.unwrap_or_else(|| target_bytes(self.align.unwrap_or(1)))),
                false => near_cube(spec),
            });
            // libhdf5 refuses chunks larger than an extent that cannot grow.
            StoredLayout::Chunks(cut_to_fixed_extents(chunk, spec))
        } else if self.layout == FileLayout::Compact {
            let bytes = dims::byte_count(&spec.shape, spec.dtype.size())?;
            if bytes > COMPACT_BYTES {
                return bad(
                    format!("{bytes} bytes do not fit into a compact array of at most {COMPACT_BYTES}"),
                    "use layout=contiguous",
                );
            }
            StoredLayout::Compact
        } else {
            if self.allocation == Some(AllocationTime::Incremental) {
                return bad("alloc_time=incremental needs chunks".into(), "add layout=chunked or a chunk");
            }
            StoredLayout::Contiguous
        };
        // Chunks allocated one by one have nodes of their index between them, which move later ones off their stripes.
        let in_order = chunked && filters.is_empty() && self.aligns();
        let allocation = self.allocation.or(in_order.then_some(AllocationTime::Early));
        Ok(StoredArray { layout, filters, crc32c: false, allocation })
    }

    /// The filters of the specification with the options put over them, in the order of writing.
    fn filters(&self, spec: &ArraySpec) -> Result<Vec<Filter>> {
        let mut filters = spec.filters.clone();
        for filter in &filters {
            let (level, most) = match *filter {
                Filter::Deflate(level) | Filter::Blosc(level) | Filter::Blosc2(level) => (level, 9),
                Filter::Zstd(level) => (level, 22),
                _ => continue,
            };
            if level > most {
                return Err(Error::invalid("create array", format!("{filter:?}: the level may be 0 to {most}")));
            }
        }
        if self.shuffle == Some(false) {
            filters.retain(|f| *f != Filter::Shuffle);
        }
        if self.fletcher32 == Some(false) {
            filters.retain(|f| *f != Filter::Fletcher32);
        }
        if self.shuffle == Some(true) && !filters.contains(&Filter::Shuffle) {
            filters.insert(0, Filter::Shuffle);
        }
        if let Some(level) = self.deflate {
            match filters.iter_mut().find(|f| matches!(f, Filter::Deflate(_))) {
                Some(deflate) => *deflate = Filter::Deflate(level),
                None => {
                    let at = filters.iter().position(|f| *f == Filter::Fletcher32).unwrap_or(filters.len());
                    filters.insert(at, Filter::Deflate(level));
                }
            }
        }
        if self.fletcher32 == Some(true) && !filters.contains(&Filter::Fletcher32) {
            filters.push(Filter::Fletcher32);
        }
        Ok(filters)
    }
}
