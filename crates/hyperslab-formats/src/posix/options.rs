//! What a stack string may say about `posix`.

use hyperslab_core::{Error, OptionSpec, Result, StackElement};
use serde::{Deserialize, Serialize};

/// Which files new arrays have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Files {
    /// One, written by all ranks.
    Shared,
    /// One per rank that writes, with an index of what it wrote.
    PerRank,
}

/// The options of `posix`, checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub files: Files,
    /// Around the page cache.
    pub direct: bool,
    /// Bytes of one staging buffer.
    pub buffer: usize,
    /// Reserve the space of new arrays.
    pub preallocate: bool,
    /// How large transfers are made.
    pub io: Io,
}

/// How large transfers are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Io {
    /// By io_uring around the page cache, where it is faster; by plain calls through it.
    Auto,
    Plain,
    Uring,
}

const SMALLEST_BUFFER: u64 = 4 << 10;
const LARGEST_BUFFER: u64 = 1 << 30;

pub(crate) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "files",
        value: "shared|per_rank",
        default: "shared",
        about: "one data file for all ranks, or one for each rank that writes",
    },
    OptionSpec {
        name: "direct",
        value: "yes|no",
        default: "no",
        about: "move data around the page cache (O_DIRECT), but for blocks written in part",
    },
    BUFFER_SPEC,
    PREALLOCATE_SPEC,
    OptionSpec {
        name: "io",
        value: "plain|uring",
        default: "uring with direct=yes, else plain",
        about: "plain calls, or io_uring for transfers of 2 MiB and more where the kernel has it",
    },
];

pub(crate) const BUFFER_SPEC: OptionSpec = OptionSpec {
    name: "buffer",
    value: "SIZE",
    default: "4MiB",
    about: "staging memory for scattered memory and small pieces",
};

pub(crate) const PREALLOCATE_SPEC: OptionSpec = OptionSpec {
    name: "preallocate",
    value: "yes|no",
    default: "no",
    about: "reserve the space of an array when it is created",
};

/// Bytes of one staging buffer.
pub(crate) fn buffer(element: &StackElement) -> Result<usize> {
    let buffer = element.size_or_default(&BUFFER_SPEC)?;
    if !(SMALLEST_BUFFER..=LARGEST_BUFFER).contains(&buffer) {
        let message = format!("{}: buffer should be from 4KiB to 1GiB", element.name);
        return Err(Error::invalid("parse stack", message));
    }
    Ok(buffer as usize)
}

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let choices = [("shared", Files::Shared), ("per_rank", Files::PerRank)];
        let options = Self {
            files: element.choice("files", &choices)?.unwrap_or(Files::Shared),
            direct: element.flag("direct")?.unwrap_or(false),
            buffer: buffer(element)?,
            preallocate: element.flag("preallocate")?.unwrap_or(false),
            io: element.choice("io", &[("plain", Io::Plain), ("uring", Io::Uring)])?.unwrap_or(Io::Auto),
        };
        if options.preallocate && options.files == Files::PerRank {
            return Err(Error::invalid("parse stack", "posix: preallocate=yes needs files=shared")
                .hint("with files=per_rank nobody knows beforehand which rank writes what"));
        }
        Ok(options)
    }
}
