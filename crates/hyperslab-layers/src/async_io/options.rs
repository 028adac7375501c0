//! The options of the layer.

use hyperslab_core::{Error, OptionSpec, Result, StackElement, units};
use std::time::Duration;

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "threads",
        value: "N",
        default: "1",
        about: "background threads of each rank; more than one helps where the format below takes several calls at a time",
    },
    OptionSpec {
        name: "memory",
        value: "SIZE",
        default: "a quarter of the available memory, shared among the ranks of a node",
        about: "bytes that a rank holds for transfers under way; when they are in use, callers wait",
    },
    OptionSpec {
        name: "ahead",
        value: "N",
        default: "4",
        about: "selections that are read ahead at a time; 0 for none",
    },
    OptionSpec {
        name: "lag",
        value: "TIME",
        default: "no limit",
        about: "a write waits while an earlier one has waited longer than this, or more waits than the storage takes in that time, so that little is left to do at the end",
    },
];

/// Default number of prefetched selections.
pub(crate) const AHEAD: usize = 4;
const MOST_THREADS: u64 = 64;
const MOST_AHEAD: u64 = 1024;
const LEAST_MEMORY: u64 = 4096;
const LONGEST_LAG: Duration = Duration::from_secs(3600);

/// Options of background transfers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// Name of the layer, for messages.
    pub layer: &'static str,
    pub threads: usize,
    /// Memory limit of a rank; a share of the available memory by default.
    pub memory: Option<u64>,
    pub ahead: usize,
    /// Maximum age of a queued write before later writes block.
    pub lag: Option<Duration>,
}

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let threads = element.number("threads", 1..=MOST_THREADS)?.unwrap_or(1) as usize;
        let ahead = element.number("ahead", 0..=MOST_AHEAD)?.unwrap_or(AHEAD as u64) as usize;
        let memory = element.size("memory")?;
        if let Some(bytes) = memory.filter(|bytes| *bytes < LEAST_MEMORY) {
            return Err(Error::invalid("parse stack", format!("async: memory={bytes} is less than 4KiB")));
        }
        Ok(Self { layer: super::NAME, threads, memory, ahead, lag: lag(element)? })
    }
}

/// The option `lag` of layers with background writes.
pub(crate) fn lag(element: &StackElement) -> Result<Option<Duration>> {
    let parse = |text: &str| {
        let lag = units::parse_duration(text).ok().filter(|lag| !lag.is_zero() && *lag <= LONGEST_LAG);
        lag.ok_or_else(|| {
            let message = format!("{}: lag={text} should be a time of at most an hour, such as 1s", element.name);
            Error::invalid("parse stack", message)
        })
    };
    element.get("lag").map(parse).transpose()
}
