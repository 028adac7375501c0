//! The options of the layer.

use hyperslab_core::{Error, OptionSpec, Result, StackElement, units};
use std::path::PathBuf;
use std::time::Duration;

/// Validated options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// The trace file; next to the container by default.
    pub file: Option<PathBuf>,
    /// Minimum compute time of a recorded step.
    pub gap: Duration,
}

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "file",
        value: "PATH",
        default: "<container>.trace.jsonl",
        about: "where to write; further openings get numbers, out.2.jsonl after out.jsonl",
    },
    OptionSpec {
        name: "gap",
        value: "TIME",
        default: "10us",
        about: "shorter times between calls are added up until they reach this",
    },
];

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let file = element.get("file").map(PathBuf::from);
        if let Some(bad) = file.as_ref().filter(|file| file.file_name().is_none()) {
            return Err(Error::invalid("parse stack", format!("trace: file={} is no name of a file", bad.display())));
        }
        let gap = element.get("gap").map_or(Ok(Duration::from_micros(10)), |text| {
            units::parse_duration(text).map_err(|_| {
                Error::invalid("parse stack", format!("trace: gap={text} should be a time such as 10us or 1ms"))
            })
        })?;
        Ok(Self { file, gap })
    }
}
