//! Registry of formats.

mod beginning;

pub use beginning::Beginning;

use crate::file_map::FileMap;
use hyperslab_core::storage::StorageRules;
use hyperslab_core::{Error, Filter, Format, OptionSpec, Result, StackElement, TransferCost, suggest};
use std::path::Path;
use std::sync::Arc;

/// Constructor of a format from its stack element.
pub type Build = fn(&StackElement) -> Result<Arc<dyn Format>>;

/// Names of arrays, with the bytes that each takes in the file at a path.
pub type StoredSizes = fn(&Path) -> Result<Vec<(String, u64)>>;

/// Tells where bytes lie in the file at a path.
pub type MapFile = fn(&Path) -> Result<FileMap>;

/// Groups and arrays in the order in which they were made, each with its attributes in theirs. The root, `""`, is the first.
pub type CreationOrder = fn(&Path) -> Result<Vec<(String, Vec<String>)>>;

/// Writes the file at the first path, which a driver has spread over several, in one piece to the second. `false`: it is not
/// spread, and nothing was written.
pub type JoinParts = fn(&Path, &Path) -> Result<bool>;

/// An option with a value.
pub type FormatOption = (&'static str, &'static str);

/// Registry entry of a format: all that others know of it. What it can do, [`Format::caps`] says.
#[derive(Debug, Clone, Copy)]
pub struct FormatEntry {
    /// Name in stack strings.
    pub name: &'static str,
    /// One-line description for users.
    pub about: &'static str,
    /// Supported options.
    pub options: &'static [OptionSpec],
    /// Constructor; `None` if the format is not compiled in.
    pub build: Option<Build>,
    /// How to build a program that includes it.
    pub how_to_build: &'static str,
    /// Extensions of names that tell this format, the usual one first. Of formats that share one, the first of the registry is
    /// meant.
    pub extensions: &'static [&'static str],
    /// Whether a file or directory begins like one of this format. `None`: it is never taken for one.
    pub recognises: Option<fn(&Beginning) -> bool>,
    /// Options that say how arrays lie in the file, name no other file and make nothing slow: recovery takes them from logs.
    pub describing: &'static [&'static str],
    /// Its names among IOR's interfaces.
    pub interfaces: &'static [&'static str],
    /// Reads the options that decide how arrays are stored.
    pub storage: Option<fn(&StackElement) -> Result<StorageRules>>,
    /// Reads what decides the cost of transfers. `None`: there is no model of it.
    pub cost: Option<fn(&StackElement) -> Result<TransferCost>>,
    /// What `hyperslab advise` tries and says.
    pub advice: Advice,
    /// Bytes that each array takes in the file at a path.
    pub stored_sizes: Option<StoredSizes>,
    /// Tells where bytes lie in the file at a path. `None`: each array has files of its own.
    pub file_map: Option<MapFile>,
    /// Tells what was made in which order in the file at a path. `None`: nobody knows.
    pub creation_order: Option<CreationOrder>,
    /// Joins what a driver has spread over several files.
    pub join_parts: Option<JoinParts>,
}

/// What `hyperslab advise` tries and says of a format. Shapes of chunks and of shards, and alignments, are tried where there are
/// the options `chunk`, `shard` and `align`.
#[derive(Debug, Clone, Copy)]
pub struct Advice {
    /// It is compared unless the user names other formats.
    pub usual: bool,
    /// Ways to use it, as options; `&[]` is that without any.
    pub forms: &'static [&'static [FormatOption]],
    /// Codecs that are tried on what was fastest.
    pub codecs: &'static [&'static [FormatOption]],
    /// Whether a larger `cache` could make a difference, given the options and whether arrays ask for filters.
    pub cache_matters: fn(&StackElement, bool) -> bool,
    /// What its files cost those who read them.
    pub remarks: fn(&StackElement) -> Vec<&'static str>,
    /// How to ask other programs for the same.
    pub settings: fn(&StackElement, &Surroundings<'_>) -> ProgramWords,
}

/// What stands above a format in a stack, in the words of other programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// Transfers are collective.
    pub collective: bool,
    /// The mode of the connector that does what the layers do.
    pub connector_mode: Option<&'static str>,
    /// The same for h5bench.
    pub h5bench_mode: Option<&'static str>,
    /// Filters that all arrays have by themselves and keep; `None` if they differ.
    pub kept: Option<&'a [Filter]>,
}

/// How to ask other programs for what a stack stores and does, in lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramWords {
    /// Libraries of Python.
    pub libraries: Vec<String>,
    /// The connector below any program, if it does what libraries do not.
    pub connector: Option<String>,
    /// Benchmarks.
    pub benchmarks: Vec<String>,
}

impl Advice {
    /// Nothing but the format as it is.
    pub const NONE: Self = Self {
        usual: false,
        forms: &[&[]],
        codecs: &[],
        cache_matters: |_, _| false,
        remarks: |_| Vec::new(),
        settings: |_, _| ProgramWords::default(),
    };
}

impl FormatEntry {
    /// A format that is not compiled in, has no options, is never detected and has no model: what entries are made from by
    /// changing what is different.
    pub const NONE: Self = Self {
        name: "",
        about: "",
        options: &[],
        build: None,
        how_to_build: "it is in every build",
        extensions: &[],
        recognises: None,
        describing: &[],
        interfaces: &[],
        storage: None,
        cost: None,
        advice: Advice::NONE,
        stored_sizes: None,
        file_map: None,
        creation_order: None,
        join_parts: None,
    };

    /// Whether it has an option.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }
}

#[cfg(feature = "mpi")]
const MPIIO: FormatEntry = crate::mpiio::ENTRY;
#[cfg(not(feature = "mpi"))]
const MPIIO: FormatEntry = FormatEntry {
    name: "mpiio",
    about: "the files of posix, through MPI-IO",
    how_to_build: "build it with cargo xtask build --mpi",
    interfaces: &["MPIIO"],
    ..FormatEntry::NONE
};

const FORMATS: &[FormatEntry] = &[
    crate::posix::ENTRY,
    crate::netcdf4_entry::ENTRY, // its files are HDF5 files, and taken for that where it does not know them
    crate::hdf5_entry::ENTRY,
    crate::zarr_entry::ENTRY,
    crate::netcdf3::ENTRY,
    crate::npy::ENTRY,
    MPIIO,
    crate::null::ENTRY,
];

/// All formats of this version, compiled in or not.
pub fn formats() -> &'static [FormatEntry] {
    FORMATS
}

/// The entry of the format with this name. Fails for unknown names.
pub fn format(name: &str) -> Result<&'static FormatEntry> {
    FORMATS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        Error::invalid("choose format", format!("there is no format {name:?}"))
            .hint(suggest::hint(name, FORMATS.iter().map(|entry| entry.name)))
    })
}

/// Builds the format that `element` names. Fails for unknown names and invalid options.
pub fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    let entry = format(&element.name)?;
    let build = entry.build.ok_or_else(|| {
        Error::unsupported("choose format", format!("{} is not compiled into this build", entry.name))
            .hint(entry.how_to_build)
    })?;
    element.check_options(entry.options)?;
    build(element)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_consistent() {
        for entry in formats() {
            let name = entry.name;
            assert!(!name.is_empty() && !entry.about.is_empty() && !entry.how_to_build.is_empty(), "{name}");
            assert_eq!(formats().iter().filter(|other| other.name == name).count(), 1, "{name}");
            for option in entry.describing {
                assert!(entry.build.is_none() || entry.has_option(option), "{name} has no option {option}");
            }
            let advised = entry.advice.forms.iter().chain(entry.advice.codecs).copied().flatten();
            for (option, value) in advised {
                assert!(entry.has_option(option), "{name} has no option {option}={value}");
            }
            assert_eq!(entry.cost.is_some(), entry.storage.is_some(), "{name}: models need both");
            let element = StackElement::plain(name);
            if let (Some(storage), Some(cost)) = (entry.storage, entry.cost) {
                storage(&element).unwrap();
                cost(&element).unwrap();
            }
            if let Some(build) = entry.build {
                let extension = build(&element).unwrap().extension();
                assert!(entry.extensions.is_empty() || entry.extensions.contains(&extension), "{name}");
            }
        }
    }
}
