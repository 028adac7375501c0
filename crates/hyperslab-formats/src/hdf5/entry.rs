//! What `hdf5` says of itself, also where libhdf5 is not compiled in: its options, how they have arrays stored, what decides the
//! cost of transfers.

mod option_table;
mod settings;

use crate::registry::{Advice, Beginning, Build, CreationOrder, FormatEntry, JoinParts, MapFile};
use hyperslab_core::storage::{AllocationTime, FileLayout, FileRules, FillTime, StorageRules};
use hyperslab_core::{ChunkedFileCost, Error, Result, StackElement, TransferCost};
pub(crate) use option_table::TABLE;
use option_table::{CACHE_W0, SIEVE};

#[cfg(feature = "hdf5")]
const BUILD: Option<Build> = Some(crate::hdf5::Hdf5::build);
#[cfg(not(feature = "hdf5"))]
const BUILD: Option<Build> = None;

#[cfg(feature = "hdf5")]
const FILE_MAP: Option<MapFile> = Some(crate::hdf5::file_map);
#[cfg(not(feature = "hdf5"))]
const FILE_MAP: Option<MapFile> = None;

#[cfg(feature = "hdf5")]
const CREATION_ORDER: Option<CreationOrder> = Some(crate::hdf5::creation_order);
#[cfg(not(feature = "hdf5"))]
const CREATION_ORDER: Option<CreationOrder> = None;

#[cfg(feature = "hdf5")]
const JOIN_PARTS: Option<JoinParts> = Some(crate::hdf5::join_subfiles);
#[cfg(not(feature = "hdf5"))]
const JOIN_PARTS: Option<JoinParts> = None;

/// Registry entry.
pub(crate) const ENTRY: FormatEntry = FormatEntry {
    name: "hdf5",
    about: "HDF5 files through libhdf5, as any program would write them",
    options: TABLE,
    build: BUILD,
    how_to_build: "build with --features bundled-hdf5",
    extensions: &["h5", "hdf5", "he5", "hdf"],
    recognises: Some(recognises),
    describing: &["chunk", "align"],
    interfaces: &["HDF5"],
    storage: Some(|element| Ok(StorageRules::File(rules(element)?))),
    cost: Some(cost),
    advice: Advice {
        usual: true,
        forms: &[&[], &[("plane", "on")]],
        codecs: &[&[("shuffle", "yes"), ("deflate", "1")], &[("shuffle", "yes"), ("deflate", "6")]],
        cache_matters,
        remarks,
        settings: settings::settings,
    },
    stored_sizes: None,
    file_map: FILE_MAP,
    creation_order: CREATION_ORDER,
    join_parts: JOIN_PARTS,
};

/// The largest alignment that is accepted: stripes of file systems are smaller by far.
const LARGEST_ALIGNMENT: u64 = 1 << 30;
/// Threshold when only the alignment is given: small metadata stays together.
const ALIGN_THRESHOLD: u64 = 64 << 10;

/// The smallest object that `align` concerns.
pub(crate) fn align_threshold(given: Option<u64>, align: u64) -> u64 {
    given.unwrap_or(align.min(ALIGN_THRESHOLD))
}

/// Reads the options that decide how arrays are stored, and refuses those that contradict each other.
pub(crate) fn rules(element: &StackElement) -> Result<FileRules> {
    const LAYOUTS: &[(&str, FileLayout)] = &[
        ("auto", FileLayout::Auto),
        ("contiguous", FileLayout::Contiguous),
        ("compact", FileLayout::Compact),
        ("chunked", FileLayout::Chunked),
    ];
    const FILL: &[(&str, FillTime)] =
        &[("ifset", FillTime::IfSet), ("alloc", FillTime::Allocation), ("never", FillTime::Never)];
    const ALLOCATION: &[(&str, AllocationTime)] = &[
        ("default", AllocationTime::Default),
        ("early", AllocationTime::Early),
        ("late", AllocationTime::Late),
        ("incremental", AllocationTime::Incremental),
    ];
    let rules = FileRules {
        layout: element.choice("layout", LAYOUTS)?.unwrap_or_default(),
        chunk: element.shapes("chunk")?,
        deflate: element.number("deflate", 0..=9)?.map(|level| level as u8),
        shuffle: element.flag("shuffle")?,
        fletcher32: element.flag("fletcher32")?,
        align: element.size("align")?,
        fill: element.choice("fill_time", FILL)?,
        allocation: element.choice("alloc_time", ALLOCATION)?,
        chunk_target: None,
    };
    check(&rules)?;
    Ok(rules)
}

fn check(rules: &FileRules) -> Result<()> {
    let bad = |message: &str, hint: &str| {
        Err(Error::invalid("parse stack", message.to_owned()).backend(ENTRY.name).hint(hint))
    };
    if !rules.may_chunk() {
        let word = if rules.layout == FileLayout::Compact { "compact" } else { "contiguous" };
        if rules.chunk.is_some() {
            return bad(&format!("chunk contradicts layout={word}"), "leave one of the two out");
        }
        if rules.has_filters() {
            return bad(&format!("filters work on chunks and contradict layout={word}"), "use layout=chunked");
        }
        if rules.allocation == Some(AllocationTime::Incremental) {
            return bad(&format!("alloc_time=incremental contradicts layout={word}"), "use layout=chunked");
        }
    }
    if rules.layout == FileLayout::Compact && rules.allocation == Some(AllocationTime::Late) {
        return bad("compact arrays are always allocated early", "leave alloc_time=late out");
    }
    if rules.align == Some(0) {
        return bad("align=0 makes no sense", "use align=1 for no alignment");
    }
    if rules.align.is_some_and(|align| align > LARGEST_ALIGNMENT) {
        return bad("align is more than 1GiB, which no file system's stripes have", "use align=1MiB or the like");
    }
    Ok(())
}

/// What decides the cost of transfers.
pub(crate) fn cost(element: &StackElement) -> Result<TransferCost> {
    Ok(TransferCost::ChunkedFile(ChunkedFileCost {
        direct: element.choice("plane", &[("on", true), ("off", false)])?.unwrap_or(false),
        cache: element.size("cache")?,
        cache_slots: element.number("cache_slots", 1..=1 << 32)?,
        preemption: element.number_or_default(&CACHE_W0, 0..=100)? as f64 / 100.0,
        sieve: element.size_or_default(&SIEVE)?,
    }))
}

/// The signature may be preceded by a user's block of 512 bytes, 1 KiB, 2 KiB and so on.
pub(crate) fn recognises(file: &Beginning) -> bool {
    const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
    [0, 512, 1024, 2048].iter().any(|&at| file.bytes.get(at..).is_some_and(|rest| rest.starts_with(SIGNATURE)))
}

/// The data plane keeps decoded chunks only.
pub(crate) fn cache_matters(element: &StackElement, filters: bool) -> bool {
    let coded = filters || element.get("deflate").is_some();
    let chunked = element.get("chunk").is_some() || element.get("deflate").is_some();
    chunked && (coded || element.get("plane") != Some("on"))
}

fn remarks(element: &StackElement) -> Vec<&'static str> {
    let direct = element.get("plane") == Some("on");
    let words = "the data plane is this program's and its connector's; the file is ordinary HDF5 for all others";
    direct.then_some(words).into_iter().collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::default_chunk::CHUNK_BYTES;
    use hyperslab_core::storage::StoredLayout;
    use hyperslab_core::{ArraySpec, Datatype, Dims, Filter, Stack};

    fn options(text: &str) -> FileRules {
        rules(&text.parse::<Stack>().unwrap().format).unwrap()
    }

    fn chunk_of(spec: &ArraySpec, text: &str) -> Dims {
        match options(text).decide(spec).unwrap().layout {
            StoredLayout::Chunks(chunk) => chunk,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn growth_and_filters_ask_for_chunks() {
        let mut spec = ArraySpec::new(Datatype::F32, &[100]);
        assert_eq!(options("hdf5").decide(&spec).unwrap().layout, StoredLayout::Contiguous);
        spec.filters = vec![Filter::Deflate(1)];
        assert_eq!(chunk_of(&spec, "hdf5").as_slice(), [100]);
        assert!(options("hdf5(layout=contiguous)").decide(&spec).is_err());
        spec.filters.clear();
        spec.max_shape = Some(vec![None]);
        assert_eq!(chunk_of(&spec, "hdf5").as_slice(), [262_144]);
        assert_eq!(chunk_of(&spec, "hdf5(align=4MiB)").as_slice(), [1 << 20]);
        assert!(options("hdf5(layout=compact)").decide(&spec).is_err());
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
        let decided = options("hdf5(deflate=6,shuffle=yes)").decide(&spec).unwrap();
        assert_eq!(decided.filters, [Filter::Shuffle, Filter::Deflate(6), Filter::Fletcher32]);
        spec.filters.clear();
        let decided = options("hdf5(deflate=6,fletcher32=yes)").decide(&spec).unwrap();
        assert_eq!(decided.filters, [Filter::Deflate(6), Filter::Fletcher32]);
        let contiguous = options("hdf5(layout=contiguous)").decide(&spec).unwrap();
        assert_eq!(contiguous.layout, StoredLayout::Contiguous);
        let error = options("hdf5(chunk=4)").decide(&spec).unwrap_err();
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
            "hdf5(deflate=10)",
        ] {
            assert!(rules(&text.parse::<Stack>().unwrap().format).is_err(), "{text}");
        }
        let large = ArraySpec::new(Datatype::U8, &[65536]);
        assert!(options("hdf5(layout=compact)").decide(&large).is_err());
        let mut strange = ArraySpec::new(Datatype::U8, &[8]);
        strange.filters = vec![Filter::Zstd(23)];
        assert!(options("hdf5").decide(&strange).is_err());
        strange.filters = vec![];
        strange.fill_value = Some(vec![1]);
        assert!(options("hdf5(fill_time=never)").decide(&strange).is_err());
    }
}
