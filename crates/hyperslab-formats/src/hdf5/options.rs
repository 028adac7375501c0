//! The options of the format in stack strings.

use super::alignment;
use hdf5_metno_sys::h5d::{H5D_alloc_time_t, H5D_fill_time_t};
use hdf5_metno_sys::h5f::{H5F_LIBVER_LATEST, H5F_libver_t};
use hyperslab_core::{Error, OptionSpec, Result, Shapes, StackElement};

const fn option(name: &'static str, value: &'static str, default: &'static str, about: &'static str) -> OptionSpec {
    OptionSpec { name, value, default, about }
}

/// Every option with its default, as shown to people.
pub(crate) const TABLE: &[OptionSpec] = &[
    option(
        "layout",
        "contiguous|compact|chunked|auto",
        "auto",
        "how arrays lie in the file; auto: chunked if chunks, filters or growth ask for it, else contiguous",
    ),
    option(
        "chunk",
        "64x64",
        "the array's own, else about 1MiB (of arrays that grow: align)",
        "chunk extents of every array, cut to its fixed extents; means layout=chunked. 1024;64x64 has one for each number of dimensions",
    ),
    option("deflate", "0..9", "the array's own", "zlib level of every array"),
    option("shuffle", "yes|no", "the array's own", "byte shuffle before compression"),
    option("fletcher32", "yes|no", "the array's own", "checksum of every chunk"),
    option(
        "fill_time",
        "ifset|alloc|never",
        "ifset",
        "when fill values are written; with never, what was not written reads as anything",
    ),
    option(
        "alloc_time",
        "default|early|late|incremental",
        "default",
        "when file space of arrays is allocated; with align that of chunks without filters early by default, in files \
         shared by processes always",
    ),
    option("align", "SIZE", "1", "objects of align_threshold or more begin at multiples of this, at most 1GiB"),
    option("align_threshold", "SIZE", "the smaller of align and 64KiB", "smallest object that align concerns"),
    option(
        "cache",
        "SIZE",
        "libhdf5's (8MiB)",
        "chunk cache of each array, with plane=on of the plane (32MiB); none in files that several processes write",
    ),
    option("cache_slots", "N", "libhdf5's (8191)", "hash slots of the chunk cache, best a prime"),
    option("cache_w0", "0..100", "libhdf5's (75)", "percent: how much fully used chunks are dropped first"),
    option("libver", "earliest|v18|v110|v112|v114|latest", "v18", "oldest library version that must read new objects"),
    option("meta_block", "SIZE", "libhdf5's (2KiB), with align 64KiB", "metadata is allocated in blocks of this size"),
    option("sieve", "SIZE", "libhdf5's (64KiB)", "buffer that joins small accesses to contiguous arrays"),
    option(
        "plane",
        "on|off",
        "off",
        "the data plane: elements go around libhdf5 where that is possible, filters run on several threads",
    ),
    option("threads", "N", "one for each core", "plane: threads of one call"),
    option("locking", "yes|no|best_effort", "libhdf5's", "lock the file against other programs; mpio never does"),
    option(
        "abandoned",
        "yes|no",
        "no",
        "yes: open also a file that a program had open for writing when it died, and take that mark off (as h5clear does)",
    ),
    option(
        "driver",
        "auto|mpio|subfiling",
        "auto",
        "how the file is reached; auto: mpio (MPI-IO) if several MPI processes share it, else POSIX calls; subfiling: \
         mpio over several files, which only subfiling can read",
    ),
    option(
        "collective_metadata",
        "yes|no",
        "no",
        "processes read metadata together when they open objects, and write it together when they flush",
    ),
    option(
        "chunk_io",
        "auto|one|multi",
        "auto",
        "collective transfers of processes: all chunks in one MPI-IO call, or one call for each chunk",
    ),
    option("hints", "\"cb_nodes=2;romio_cb_write=enable\"", "none", "hints for MPI-IO, as key=value;key=value"),
    option("stripe_size", "SIZE", "libhdf5's (32MiB)", "subfiling: bytes that go to one file before the next is used"),
    option("stripe_count", "N", "one for each concentrator", "subfiling: number of files"),
    option(
        "ioc_selection",
        "node|rank",
        "node",
        "subfiling: one rank of each node does the I/O (a concentrator), or every rank, at most stripe_count of them",
    ),
    option(
        "ioc_per_node",
        "N",
        "1",
        "subfiling: concentrators on each node; libhdf5 takes it from H5FD_SUBFILING_IOC_PER_NODE, which must say the same",
    ),
];

/// Options that only parallel libhdf5 understands.
const PARALLEL: &[&str] = &[
    "driver",
    "collective_metadata",
    "chunk_io",
    "hints",
    "stripe_size",
    "stripe_count",
    "ioc_selection",
    "ioc_per_node",
];

/// The `layout` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Layout {
    #[default]
    Auto,
    Contiguous,
    Compact,
    Chunked,
}

/// The `locking` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Locking {
    Yes,
    No,
    BestEffort,
}

/// The `driver` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DriverChoice {
    #[default]
    Auto,
    Mpio,
    Subfiling,
}

/// The `chunk_io` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkIo {
    One,
    Multi,
}

/// The `ioc_selection` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Concentrators {
    Node,
    Rank,
}

/// All options, parsed; `None` leaves the matter to the array or to libhdf5.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    pub(super) layout: Layout,
    pub(super) chunk: Option<Shapes>,
    pub(super) deflate: Option<u8>,
    pub(super) shuffle: Option<bool>,
    pub(super) fletcher32: Option<bool>,
    pub(super) fill_time: Option<H5D_fill_time_t>,
    pub(super) alloc_time: Option<H5D_alloc_time_t>,
    pub(super) align: Option<u64>,
    pub(super) align_threshold: Option<u64>,
    pub(super) cache: Option<u64>,
    pub(super) cache_slots: Option<u64>,
    pub(super) cache_w0: Option<u64>,
    pub(super) libver: Option<H5F_libver_t>,
    pub(super) meta_block: Option<u64>,
    pub(super) sieve: Option<u64>,
    pub(super) plane: bool,
    pub(super) threads: Option<u64>,
    pub(super) locking: Option<Locking>,
    /// Whether the file's mark of a writer may be taken off.
    pub(super) abandoned: bool,
    pub(super) driver: DriverChoice,
    pub(super) collective_metadata: bool,
    #[cfg_attr(not(feature = "parallel-hdf5"), expect(dead_code, reason = "refused when parsed"))]
    pub(super) chunk_io: Option<ChunkIo>,
    /// Keys and values.
    #[cfg_attr(not(feature = "parallel-hdf5"), expect(dead_code, reason = "refused when parsed"))]
    pub(super) hints: Vec<(String, String)>,
    pub(super) stripe_size: Option<u64>,
    pub(super) stripe_count: Option<u64>,
    pub(super) ioc_selection: Option<Concentrators>,
    pub(super) ioc_per_node: Option<u64>,
    /// Objects are made as NetCDF-4 asks. Not in the table: it is another format.
    pub(super) netcdf: bool,
    /// Bytes of the chunks that are chosen here; `None`: follows from `align`.
    pub(super) chunk_target: Option<u64>,
}

impl Options {
    /// Parses the options of a stack element and refuses contradictions.
    pub(super) fn parse(element: &StackElement) -> Result<Self> {
        use H5D_alloc_time_t::{
            H5D_ALLOC_TIME_DEFAULT, H5D_ALLOC_TIME_EARLY, H5D_ALLOC_TIME_INCR, H5D_ALLOC_TIME_LATE,
        };
        use H5D_fill_time_t::{H5D_FILL_TIME_ALLOC, H5D_FILL_TIME_IFSET, H5D_FILL_TIME_NEVER};
        use H5F_libver_t::{H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_V110, H5F_LIBVER_V112, H5F_LIBVER_V114};
        const LAYOUTS: &[(&str, Layout)] = &[
            ("auto", Layout::Auto),
            ("contiguous", Layout::Contiguous),
            ("compact", Layout::Compact),
            ("chunked", Layout::Chunked),
        ];
        const FILL: &[(&str, H5D_fill_time_t)] =
            &[("ifset", H5D_FILL_TIME_IFSET), ("alloc", H5D_FILL_TIME_ALLOC), ("never", H5D_FILL_TIME_NEVER)];
        const ALLOCATION: &[(&str, H5D_alloc_time_t)] = &[
            ("default", H5D_ALLOC_TIME_DEFAULT),
            ("early", H5D_ALLOC_TIME_EARLY),
            ("late", H5D_ALLOC_TIME_LATE),
            ("incremental", H5D_ALLOC_TIME_INCR),
        ];
        const VERSIONS: &[(&str, H5F_libver_t)] = &[
            ("earliest", H5F_LIBVER_EARLIEST),
            ("v18", H5F_LIBVER_V18),
            ("v110", H5F_LIBVER_V110),
            ("v112", H5F_LIBVER_V112),
            ("v114", H5F_LIBVER_V114),
            ("latest", H5F_LIBVER_LATEST),
        ];
        const LOCKING: &[(&str, Locking)] =
            &[("yes", Locking::Yes), ("no", Locking::No), ("best_effort", Locking::BestEffort)];
        const DRIVERS: &[(&str, DriverChoice)] =
            &[("auto", DriverChoice::Auto), ("mpio", DriverChoice::Mpio), ("subfiling", DriverChoice::Subfiling)];
        const CHUNK_IO: &[(&str, Option<ChunkIo>)] =
            &[("auto", None), ("one", Some(ChunkIo::One)), ("multi", Some(ChunkIo::Multi))];
        const CONCENTRATORS: &[(&str, Concentrators)] = &[("node", Concentrators::Node), ("rank", Concentrators::Rank)];
        let options = Self {
            layout: element.choice("layout", LAYOUTS)?.unwrap_or_default(),
            chunk: element.shapes("chunk")?,
            deflate: element.number("deflate", 0..=9)?.map(|level| level as u8),
            shuffle: element.flag("shuffle")?,
            fletcher32: element.flag("fletcher32")?,
            fill_time: element.choice("fill_time", FILL)?,
            alloc_time: element.choice("alloc_time", ALLOCATION)?,
            align: element.size("align")?,
            align_threshold: element.size("align_threshold")?,
            cache: element.size("cache")?,
            cache_slots: element.number("cache_slots", 1..=1 << 32)?,
            cache_w0: element.number("cache_w0", 0..=100)?,
            libver: element.choice("libver", VERSIONS)?,
            meta_block: element.size("meta_block")?,
            sieve: element.size("sieve")?,
            plane: element.choice("plane", &[("on", true), ("off", false)])?.unwrap_or(false),
            threads: element.number("threads", 1..=1024)?,
            locking: element.choice("locking", LOCKING)?,
            abandoned: element.flag("abandoned")?.unwrap_or(false),
            driver: element.choice("driver", DRIVERS)?.unwrap_or_default(),
            collective_metadata: element.flag("collective_metadata")?.unwrap_or(false),
            chunk_io: element.choice("chunk_io", CHUNK_IO)?.flatten(),
            hints: element.get("hints").map_or(Ok(Vec::new()), hints)?,
            stripe_size: element.size("stripe_size")?,
            stripe_count: element.number("stripe_count", 1..=i32::MAX as u64)?,
            ioc_selection: element.choice("ioc_selection", CONCENTRATORS)?,
            ioc_per_node: element.number("ioc_per_node", 1..=i32::MAX as u64)?,
            netcdf: false,
            chunk_target: None,
        };
        if let Some(key) = PARALLEL.iter().find(|key| element.get(key).is_some_and(|value| value != "auto"))
            && !cfg!(feature = "parallel-hdf5")
        {
            return Err(Error::unsupported(
                "parse stack",
                format!("{key} needs parallel HDF5, which this build lacks"),
            )
            .backend(super::NAME)
            .hint("leave it out, or use a build with the feature parallel-hdf5"));
        }
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        let bad = |message: &str, hint: &str| {
            Err(Error::invalid("parse stack", message.to_owned()).backend(super::NAME).hint(hint))
        };
        if !self.may_chunk() {
            let word = if self.layout == Layout::Compact { "compact" } else { "contiguous" };
            if self.chunk.is_some() {
                return bad(&format!("chunk contradicts layout={word}"), "leave one of the two out");
            }
            if self.deflate.is_some() || self.shuffle == Some(true) || self.fletcher32 == Some(true) {
                return bad(&format!("filters work on chunks and contradict layout={word}"), "use layout=chunked");
            }
            if self.alloc_time == Some(H5D_alloc_time_t::H5D_ALLOC_TIME_INCR) {
                return bad(&format!("alloc_time=incremental contradicts layout={word}"), "use layout=chunked");
            }
        }
        if self.layout == Layout::Compact && self.alloc_time == Some(H5D_alloc_time_t::H5D_ALLOC_TIME_LATE) {
            return bad("compact arrays are always allocated early", "leave alloc_time=late out");
        }
        if self.plane && (self.cache_slots.is_some() || self.cache_w0.is_some() || self.sieve.is_some()) {
            return bad("cache_slots, cache_w0 and sieve are libhdf5's, which plane=on goes around", "leave them out");
        }
        if self.threads.is_some() && !self.plane {
            return bad("threads has no effect without plane=on", "add plane=on, or leave it out");
        }
        if self.align == Some(0) {
            return bad("align=0 makes no sense", "use align=1 for no alignment");
        }
        if self.align.is_some_and(|align| align > alignment::LARGEST) {
            return bad("align is more than 1GiB, which no file system's stripes have", "use align=1MiB or the like");
        }
        if self.align_threshold.is_some() && self.align.is_none() {
            return bad("align_threshold has no effect without align", "add align=1MiB or the like");
        }
        self.check_subfiling()
    }

    fn check_subfiling(&self) -> Result<()> {
        let bad =
            |message: String, hint: &str| Err(Error::invalid("parse stack", message).backend(super::NAME).hint(hint));
        let given = [
            ("stripe_size", self.stripe_size.is_some()),
            ("stripe_count", self.stripe_count.is_some()),
            ("ioc_selection", self.ioc_selection.is_some()),
            ("ioc_per_node", self.ioc_per_node.is_some()),
        ];
        if let Some((key, _)) = given.iter().find(|(_, given)| *given && self.driver != DriverChoice::Subfiling) {
            return bad(format!("{key} concerns driver=subfiling only"), "add driver=subfiling, or leave it out");
        }
        if self.stripe_size.is_some_and(|size| size == 0 || i64::try_from(size).is_err()) {
            return bad("stripe_size makes no sense".into(), "use stripe_size=32MiB or the like");
        }
        if self.ioc_per_node.is_some() && self.ioc_selection == Some(Concentrators::Rank) {
            return bad("ioc_per_node contradicts ioc_selection=rank".into(), "leave one of the two out");
        }
        Ok(())
    }

    /// Whether objects begin at multiples of something.
    pub(super) fn aligns(&self) -> bool {
        self.align.is_some_and(|align| align > 1)
    }

    /// Whether arrays may be cut into chunks at all.
    pub(super) fn may_chunk(&self) -> bool {
        matches!(self.layout, Layout::Auto | Layout::Chunked)
    }

    /// Whether every array is cut into chunks.
    pub(super) fn always_chunks(&self) -> bool {
        let filters = self.deflate.is_some() || self.shuffle == Some(true) || self.fletcher32 == Some(true);
        self.layout == Layout::Chunked || self.chunk.is_some() || filters
    }

    /// Whether elements never written read as the fill value.
    pub(super) fn fills(&self) -> bool {
        self.fill_time != Some(H5D_fill_time_t::H5D_FILL_TIME_NEVER)
    }
}

/// Reads `key=value;key=value`.
fn hints(text: &str) -> Result<Vec<(String, String)>> {
    let pair = |part: &str| match part.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
        Some((key, value)) if !key.is_empty() && !value.is_empty() && !part.contains('\0') => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(Error::invalid("parse stack", format!("{part:?} is not a hint"))
            .backend(super::NAME)
            .hint("write them like hints=\"cb_nodes=2;romio_cb_write=enable\"")),
    };
    text.split(';').filter(|part| !part.trim().is_empty()).map(pair).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{ErrorKind, Stack};

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.parse::<Stack>().unwrap().format)
    }

    #[test]
    fn hints_are_pairs() {
        let pairs = hints("cb_nodes=2; romio_cb_write=enable;").unwrap();
        assert_eq!(pairs, [("cb_nodes".into(), "2".into()), ("romio_cb_write".into(), "enable".into())]);
        assert!(hints("cb_nodes").is_err() && hints("=2").is_err());
    }

    #[test]
    fn options_of_parallel_files_need_a_parallel_library() {
        for text in [
            "hdf5(driver=mpio)",
            "hdf5(collective_metadata=yes,chunk_io=one)",
            "hdf5(hints=\"cb_nodes=2;romio_cb_write=enable\")",
            "hdf5(driver=subfiling,stripe_size=1MiB,stripe_count=4,ioc_selection=rank)",
        ] {
            let refused = parse(text).err().map(|error| error.kind());
            let expected = if cfg!(feature = "parallel-hdf5") { None } else { Some(ErrorKind::Unsupported) };
            assert_eq!(refused, expected, "{text}");
        }
        assert!(parse("hdf5(driver=auto,chunk_io=auto)").is_ok());
        for text in [
            "hdf5(stripe_count=2)",
            "hdf5(driver=mpio,stripe_size=1MiB)",
            "hdf5(driver=subfiling,stripe_count=0)",
            "hdf5(driver=subfiling,stripe_size=0)",
            "hdf5(driver=subfiling,ioc_selection=rank,ioc_per_node=2)",
            "hdf5(driver=romio)",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
