//! The options of the format, read. `hdf5_entry` has their table, and what decides how arrays are stored.

use crate::hdf5_entry::rules;
use hdf5_metno_sys::h5f::{H5F_LIBVER_LATEST, H5F_libver_t};
use hyperslab_core::storage::FileRules;
use hyperslab_core::{Error, Result, StackElement};

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
    /// How arrays are stored.
    pub(super) rules: FileRules,
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
}

impl Options {
    /// Parses the options of a stack element and refuses contradictions.
    pub(super) fn parse(element: &StackElement) -> Result<Self> {
        use H5F_libver_t::{H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_V110, H5F_LIBVER_V112, H5F_LIBVER_V114};
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
            rules: rules(element)?,
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
        if self.plane && (self.cache_slots.is_some() || self.cache_w0.is_some() || self.sieve.is_some()) {
            return bad("cache_slots, cache_w0 and sieve are libhdf5's, which plane=on goes around", "leave them out");
        }
        if self.threads.is_some() && !self.plane {
            return bad("threads has no effect without plane=on", "add plane=on, or leave it out");
        }
        if self.align_threshold.is_some() && self.rules.align.is_none() {
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

    #[test]
    fn contradictions_are_refused() {
        for text in ["hdf5(align_threshold=4096)", "hdf5(cache_w0=101)", "hdf5(layout=compact,chunk=4)"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
