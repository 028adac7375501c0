//! Options of `hdf5` that decide costs.

use super::{Codec, Placement, Storage};
use hyperslab_core::default_chunk::{cut_to_fixed_extents, for_growth, grows, near_cube, target_bytes};
use hyperslab_core::{ArraySpec, Error, Filter, Result, Shapes, StackElement};

/// What differs between versions of libhdf5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    /// 1.x.
    V1,
    /// 2.x.
    V2,
}

impl Library {
    /// Bytes and slots of the chunk cache.
    fn cache(self) -> (u64, u64) {
        match self {
            Self::V1 => (1 << 20, 521),
            Self::V2 => (8 << 20, 8191),
        }
    }
}

/// The options, parsed.
#[derive(Debug, Clone)]
pub(crate) struct Hdf5 {
    pub(crate) library: Library,
    pub(crate) plane: bool,
    /// `None`: auto.
    chunked: Option<bool>,
    chunk: Option<Shapes>,
    filters: Filters,
    cache: Option<u64>,
    cache_slots: Option<u64>,
    pub(crate) w0: f64,
    pub(crate) sieve: u64,
    /// Chunks have their places when the array is made; `None`: if objects are aligned and there are no filters.
    early: Option<bool>,
    pub(crate) align: u64,
}

/// Filters that the options put over those of arrays.
#[derive(Debug, Clone, Copy)]
struct Filters {
    deflate: Option<u64>,
    shuffle: Option<bool>,
    fletcher32: Option<bool>,
}

/// Decoded chunks that the data plane keeps of an array.
const PLANE_CACHE: u64 = 32 << 20;

impl Hdf5 {
    pub(crate) fn parse(element: &StackElement) -> Result<Self> {
        let layouts = [("auto", None), ("contiguous", Some(false)), ("compact", Some(false)), ("chunked", Some(true))];
        Ok(Self {
            library: Library::V2,
            plane: element.choice("plane", &[("on", true), ("off", false)])?.unwrap_or(false),
            chunked: element.choice("layout", &layouts)?.flatten(),
            chunk: element.shapes("chunk")?,
            filters: Filters {
                deflate: element.number("deflate", 0..=9)?,
                shuffle: element.flag("shuffle")?,
                fletcher32: element.flag("fletcher32")?,
            },
            cache: element.size("cache")?,
            cache_slots: element.number("cache_slots", 1..=1 << 32)?,
            w0: element.number("cache_w0", 0..=100)?.unwrap_or(75) as f64 / 100.0,
            sieve: element.size("sieve")?.unwrap_or(64 << 10),
            early: element.get("alloc_time").map(|time| time == "early"),
            align: element.size("align")?.unwrap_or(1).max(1),
        })
    }

    /// Bytes of chunks that are kept of an array.
    pub(crate) fn cache_bytes(&self) -> u64 {
        self.cache.unwrap_or(if self.plane { PLANE_CACHE } else { self.library.cache().0 })
    }

    /// Whether chunks have their places when the array is made.
    pub(crate) fn allocates_early(&self, codecs: &[Codec]) -> bool {
        self.early.unwrap_or(self.align > 1 && codecs.is_empty())
    }

    /// Slots for them.
    pub(crate) fn cache_slots(&self) -> u64 {
        self.cache_slots.unwrap_or(self.library.cache().1)
    }

    /// Mirrors how the format decides.
    pub(crate) fn storage(&self, spec: &ArraySpec) -> Result<Storage> {
        let codecs: Vec<Codec> = self.filters(spec).iter().map(Codec::of).collect();
        let rank = spec.shape.len();
        if let Some(chunk) = self.chunk.as_ref().and_then(Shapes::single).filter(|chunk| chunk.len() != rank) {
            let message = format!("the chunk has {} dimensions, the array {rank}", chunk.len());
            return Err(Error::invalid("model stack", message));
        }
        let asked = self.chunk.as_ref().and_then(|chunk| chunk.of_rank(rank)).or(spec.chunk.as_ref());
        let must = grows(spec) || !codecs.is_empty();
        if must && (rank == 0 || self.chunked == Some(false)) {
            return Err(Error::invalid("model stack", "filters and growth need chunks, which the array cannot have"));
        }
        let chunked = !spec.shape.is_empty() && self.chunked.unwrap_or(must || asked.is_some());
        let placement = if chunked {
            let own = || if grows(spec) { for_growth(spec, target_bytes(self.align)) } else { near_cube(spec) };
            Placement::Chunks(cut_to_fixed_extents(asked.cloned().unwrap_or_else(own), spec))
        } else {
            Placement::OnePiece
        };
        Ok(Storage { placement, codecs })
    }

    fn filters(&self, spec: &ArraySpec) -> Vec<Filter> {
        let Filters { deflate, shuffle, fletcher32 } = self.filters;
        let mut filters = spec.filters.clone();
        for (wish, filter) in [(shuffle, Filter::Shuffle), (fletcher32, Filter::Fletcher32)] {
            match wish {
                Some(true) if !filters.contains(&filter) => filters.push(filter),
                Some(false) => filters.retain(|f| *f != filter),
                _ => {}
            }
        }
        if let Some(level) = deflate
            && !filters.iter().any(|f| matches!(f, Filter::Deflate(_)))
        {
            filters.push(Filter::Deflate(level as u8));
        }
        filters
    }
}
