//! How an array will lie in the file, decided from its specification and the options before libhdf5 is asked.

use super::options::{Layout, Options};
use hdf5_metno_sys::h5d::H5D_alloc_time_t;
use hyperslab_core::default_chunk::{cut_to_fixed_extents, for_growth, grows, near_cube, target_bytes};
use hyperslab_core::{ArraySpec, Dims, Error, Filter, MAX_RANK, Result, Shapes, dims};

/// Most bytes of an array kept inside its header (64 KiB with the header message around it).
const COMPACT_BYTES: u64 = (64 << 10) - 32;

/// Where the elements of an array go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Placement {
    Contiguous,
    Compact,
    Chunked(Dims),
}

/// The decided layout and filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Storage {
    pub(super) placement: Placement,
    pub(super) filters: Vec<Filter>,
}

/// libhdf5 (2.2, `H5S_select_iterate`) writes beyond its arrays when it walks a selection of 32 dimensions, which it
/// does for chunks only.
pub(super) const MOST_CHUNKED_DIMENSIONS: usize = MAX_RANK - 1;

impl Storage {
    /// Decides; refuses what contradicts itself or libhdf5 cannot do. Options override the specification.
    pub(super) fn decide(spec: &ArraySpec, options: &Options) -> Result<Self> {
        let bad = |message: String, hint: &str| Err(Error::invalid("create array", message).hint(hint));
        spec.check()?;
        spec.refuse_dimension_names()?;
        let rank = spec.shape.len();
        let filters = filters(spec, options)?;
        if let Some(chunk) = options.chunk.as_ref().and_then(Shapes::single).filter(|chunk| chunk.len() != rank) {
            return bad(
                format!("chunk={} has {} dimensions, the array {rank}", dims::display(chunk), chunk.len()),
                "give a chunk for each number of dimensions, such as chunk=1024;64x64, or leave the option out",
            );
        }
        if spec.fill_value.is_some() && !options.fills() {
            return bad("fill_time=never contradicts the array's fill value".into(), "use fill_time=ifset");
        }
        let grows = grows(spec);
        let asked =
            options.chunk.as_ref().and_then(|chunk| chunk.of_rank(rank)).or(spec.chunk.as_ref().filter(|_| rank > 0));
        let must_chunk = match (grows, filters.is_empty()) {
            (true, _) => Some("an array that may grow"),
            (false, false) => Some("an array with filters"),
            (false, true) => None,
        };
        if let Some(what) = must_chunk.filter(|_| !options.may_chunk() || rank == 0) {
            let why = if rank == 0 { "a scalar has none" } else { "the layout option forbids them" };
            return bad(format!("{what} needs chunks, and {why}"), "use layout=auto, and no filters on scalars");
        }
        let chunked = match options.layout {
            Layout::Auto => must_chunk.is_some() || asked.is_some(),
            Layout::Chunked => rank > 0,
            Layout::Contiguous | Layout::Compact => false,
        };
        if chunked && rank > MOST_CHUNKED_DIMENSIONS {
            return Err(Error::unsupported(
                "create array",
                format!("an array with chunks has at most {MOST_CHUNKED_DIMENSIONS} dimensions here, not {rank}"),
            )
            .hint("leave out chunks, filters and growth, or join two dimensions"));
        }
        let placement = if chunked {
            let chunk = asked.cloned().unwrap_or_else(|| match grows {
                true => {
                    for_growth(spec, options.chunk_target.unwrap_or_else(|| target_bytes(options.align.unwrap_or(1))))
                }
                false => near_cube(spec),
            });
            // libhdf5 refuses chunks larger than an extent that cannot grow.
            Placement::Chunked(cut_to_fixed_extents(chunk, spec))
        } else if options.layout == Layout::Compact {
            let bytes = dims::byte_count(&spec.shape, spec.dtype.size())?;
            if bytes > COMPACT_BYTES {
                return bad(
                    format!("{bytes} bytes do not fit into a compact array of at most {COMPACT_BYTES}"),
                    "use layout=contiguous",
                );
            }
            Placement::Compact
        } else {
            if options.alloc_time == Some(H5D_alloc_time_t::H5D_ALLOC_TIME_INCR) {
                return bad("alloc_time=incremental needs chunks".into(), "add layout=chunked or a chunk");
            }
            Placement::Contiguous
        };
        Ok(Self { placement, filters })
    }
}

/// The filters of the specification with the options put over them, in the order of writing.
fn filters(spec: &ArraySpec, options: &Options) -> Result<Vec<Filter>> {
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
    if options.shuffle == Some(false) {
        filters.retain(|f| *f != Filter::Shuffle);
    }
    if options.fletcher32 == Some(false) {
        filters.retain(|f| *f != Filter::Fletcher32);
    }
    if options.shuffle == Some(true) && !filters.contains(&Filter::Shuffle) {
        filters.insert(0, Filter::Shuffle);
    }
    if let Some(level) = options.deflate {
        match filters.iter_mut().find(|f| matches!(f, Filter::Deflate(_))) {
            Some(deflate) => *deflate = Filter::Deflate(level),
            None => {
                let at = filters.iter().position(|f| *f == Filter::Fletcher32).unwrap_or(filters.len());
                filters.insert(at, Filter::Deflate(level));
            }
        }
    }
    if options.fletcher32 == Some(true) && !filters.contains(&Filter::Fletcher32) {
        filters.push(Filter::Fletcher32);
    }
    Ok(filters)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::default_chunk::CHUNK_BYTES;
    use hyperslab_core::{Datatype, Stack};

    fn options(text: &str) -> Options {
        Options::parse(&text.parse::<Stack>().unwrap().format).unwrap()
    }

    fn chunk_of(spec: &ArraySpec, text: &str) -> Dims {
        match Storage::decide(spec, &options(text)).unwrap().placement {
            Placement::Chunked(chunk) => chunk,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn growth_and_filters_ask_for_chunks() {
        let mut spec = ArraySpec::new(Datatype::F32, &[100]);
        assert_eq!(Storage::decide(&spec, &options("hdf5")).unwrap().placement, Placement::Contiguous);
        spec.filters = vec![Filter::Deflate(1)];
        assert_eq!(chunk_of(&spec, "hdf5").as_slice(), [100]);
        assert!(Storage::decide(&spec, &options("hdf5(layout=contiguous)")).is_err());
        spec.filters.clear();
        spec.max_shape = Some(vec![None]);
        assert_eq!(chunk_of(&spec, "hdf5").as_slice(), [262_144]);
        assert_eq!(chunk_of(&spec, "hdf5(align=4MiB)").as_slice(), [1 << 20]);
        assert!(Storage::decide(&spec, &options("hdf5(layout=compact)")).is_err());
    }

    #[test]
    fn default_chunks_of_fixed_arrays_are_about_a_mebibyte_and_never_thin() {
        for shape in [vec![1000, 1000, 1000], vec![2, 100_000_000], vec![50; 4]] {
            let chunk = chunk_of(&ArraySpec::new(Datatype::F64, &shape), "hdf5(layout=chunked)");
            let bytes = chunk.iter().product::<u64>() * 8;
            assert!(bytes <= CHUNK_BYTES && bytes > CHUNK_BYTES / 4, "{shape:?} -> {chunk:?}");
            assert!(chunk.iter().all(|&d| d > 1), "{shape:?} -> {chunk:?}");
        }
    }

    #[test]
    fn options_override_the_array() {
        let mut spec = ArraySpec::new(Datatype::F32, &[10, 10]);
        spec.chunk = Some(Dims::from_slice(&[5, 5]));
        spec.filters = vec![Filter::Deflate(1), Filter::Fletcher32];
        assert_eq!(chunk_of(&spec, "hdf5(chunk=2x64)").as_slice(), [2, 10]);
        let decided = Storage::decide(&spec, &options("hdf5(deflate=6,shuffle=yes)")).unwrap();
        assert_eq!(decided.filters, [Filter::Shuffle, Filter::Deflate(6), Filter::Fletcher32]);
        spec.filters.clear();
        let decided = Storage::decide(&spec, &options("hdf5(deflate=6,fletcher32=yes)")).unwrap();
        assert_eq!(decided.filters, [Filter::Deflate(6), Filter::Fletcher32]);
        let contiguous = Storage::decide(&spec, &options("hdf5(layout=contiguous)")).unwrap();
        assert_eq!(contiguous.placement, Placement::Contiguous);
        let error = Storage::decide(&spec, &options("hdf5(chunk=4)")).unwrap_err();
        assert!(error.to_string().contains("1 dimensions, the array 2"), "{error}");
    }

    #[test]
    fn contradictions_are_refused() {
        for text in [
            "hdf5(layout=compact,chunk=4)",
            "hdf5(layout=contiguous,deflate=1)",
            "hdf5(layout=compact,shuffle)",
            "hdf5(layout=contiguous,alloc_time=incremental)",
            "hdf5(layout=compact,alloc_time=late)",
            "hdf5(align=0)",
            "hdf5(align=1TiB)",
            "hdf5(align_threshold=4096)",
            "hdf5(deflate=10)",
            "hdf5(cache_w0=101)",
        ] {
            assert!(Options::parse(&text.parse::<Stack>().unwrap().format).is_err(), "{text}");
        }
        let large = ArraySpec::new(Datatype::U8, &[65536]);
        assert!(Storage::decide(&large, &options("hdf5(layout=compact)")).is_err());
        let mut strange = ArraySpec::new(Datatype::U8, &[8]);
        strange.filters = vec![Filter::Zstd(23)];
        assert!(Storage::decide(&strange, &options("hdf5")).is_err());
        strange.filters = vec![];
        strange.fill_value = Some(vec![1]);
        assert!(Storage::decide(&strange, &options("hdf5(fill_time=never)")).is_err());
    }
}
