//! What a stack string may say about `mpiio`.

use crate::posix::options::{self as posix, BUFFER_SPEC, Files, Io, PREALLOCATE_SPEC};
use hyperslab_core::{Error, OptionSpec, Result, StackElement};
use std::ffi::CString;

/// MPI counts with 32 bits; a call of this size is far from any limit.
const LARGEST_ROUND: u64 = 1 << 30;

/// The options of `mpiio`, checked.
#[derive(Debug, Clone)]
pub(super) struct Options {
    /// What concerns the container.
    pub container: posix::Options,
    /// One call with a file view for many runs, instead of a call for each.
    pub view: bool,
    /// MPI's atomic mode.
    pub atomic: bool,
    /// The most bytes of one call.
    pub round: u64,
    /// Names and values for `MPI_Info`.
    pub hints: Vec<(CString, CString)>,
}

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "view",
        value: "yes|no",
        default: "yes",
        about: "describe a whole selection to MPI in one call, or make one call for each run of bytes",
    },
    OptionSpec {
        name: "hints",
        value: "\"KEY=VALUE;...\"",
        default: "none",
        about: "hints for the MPI library, such as \"cb_nodes=2;romio_cb_write=enable\"",
    },
    OptionSpec { name: "atomic", value: "yes|no", default: "no", about: "MPI's atomic mode" },
    OptionSpec { name: "round", value: "SIZE", default: "1GiB", about: "the most bytes that one call moves" },
    BUFFER_SPEC,
    PREALLOCATE_SPEC,
];

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let round = element.size("round")?.unwrap_or(LARGEST_ROUND);
        if !(1..=LARGEST_ROUND).contains(&round) {
            return Err(Error::invalid("parse stack", "mpiio: round should be from 1 byte to 1GiB"));
        }
        let container = posix::Options {
            files: Files::Shared,
            direct: false,
            buffer: posix::buffer(element)?,
            preallocate: element.flag("preallocate")?.unwrap_or(false),
            io: Io::Plain,
        };
        Ok(Self {
            container,
            view: element.flag("view")?.unwrap_or(true),
            atomic: element.flag("atomic")?.unwrap_or(false),
            round,
            hints: element.get("hints").map_or(Ok(Vec::new()), hints)?,
        })
    }
}

/// `cb_nodes=2;romio_cb_write=enable` as names and values.
fn hints(text: &str) -> Result<Vec<(CString, CString)>> {
    let bad = |part: &str| {
        Error::invalid("parse stack", format!("mpiio: {part:?} is no hint"))
            .hint("write hints=\"cb_nodes=2;romio_cb_write=enable\"")
    };
    let one = |part: &str| {
        let (key, value) = part.split_once('=').ok_or_else(|| bad(part))?;
        let (key, value) = (key.trim(), value.trim());
        let fits = |word: &str, most: u32| !word.is_empty() && word.len() < most as usize;
        if !fits(key, mpi_sys::MPI_MAX_INFO_KEY) || !fits(value, mpi_sys::MPI_MAX_INFO_VAL) {
            return Err(bad(part));
        }
        let word = |word: &str| CString::new(word).map_err(|_| bad(part));
        Ok((word(key)?, word(value)?))
    };
    text.split(';').filter(|part| !part.trim().is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use hyperslab_core::Stack;

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.parse::<Stack>().unwrap().format)
    }

    #[test]
    fn hints_are_read() {
        let options = parse("mpiio(hints=\"cb_nodes=2; romio_cb_write = enable;\")").unwrap();
        let words: Vec<_> = options.hints.iter().map(|(k, v)| (k.to_str().unwrap(), v.to_str().unwrap())).collect();
        assert_eq!(words, [("cb_nodes", "2"), ("romio_cb_write", "enable")]);
        for bad in ["mpiio(hints=\"cb_nodes\")", "mpiio(hints=\"=2\")", "mpiio(hints=\"a=\")"] {
            assert!(parse(bad).unwrap_err().to_string().contains("hint"), "{bad}");
        }
        assert!(parse(&format!("mpiio(hints=\"{}=1\")", "k".repeat(300))).is_err());
    }

    #[test]
    fn sizes_have_limits() {
        assert!(parse("mpiio(round=2GiB)").is_err() && parse("mpiio(round=0)").is_err());
        assert!(parse("mpiio(buffer=1)").unwrap_err().to_string().contains("mpiio"));
        let options = parse("mpiio(round=7,view=no,atomic=yes,preallocate=yes)").unwrap();
        assert!(!options.view && options.atomic && options.round == 7 && options.container.preallocate);
    }
}
