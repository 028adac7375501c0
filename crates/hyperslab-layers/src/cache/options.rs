//! The options of the layer.

use crate::background::{ON_LOG_FAILURE, OnLogFailure};
use hyperslab_core::{Dims, Error, OptionSpec, Result, StackElement};
use std::path::PathBuf;
use std::time::Duration;

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "memory",
        value: "SIZE",
        default: "a quarter of the available memory, shared among the ranks of a node",
        about: "bytes that a rank holds of each container; threads that read a container together share theirs",
    },
    OptionSpec {
        name: "block",
        value: "SIZE|64x64",
        default: "whole rows up to 256KiB",
        about: "what is kept or not as a whole, of arrays without chunks",
    },
    OptionSpec {
        name: "dir",
        value: "PATH",
        default: "writes are staged in memory",
        about: "a directory on storage of the node where writes are staged, and survive a crash of the program",
    },
    OptionSpec {
        name: "stage",
        value: "SIZE",
        default: "half of the free space of dir, or a quarter of the available memory, shared among the ranks of a node",
        about: "bytes of writes of a rank that may be staged; when they are in use, callers wait",
    },
    OptionSpec {
        name: "threads",
        value: "N",
        default: "1",
        about: "background threads of each rank, which move staged writes to the storage and read ahead",
    },
    ON_LOG_FAILURE,
    OptionSpec { name: "lag", value: "TIME", default: "no limit", about: "as of the layer async" },
];

const LEAST_MEMORY: u64 = 4096;
const LEAST_BLOCK: u64 = 64;
const LEAST_JOURNAL: u64 = 64 << 10;
const MOST_THREADS: u64 = 64;

/// Requested block size for arrays without chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlockSize {
    Usual,
    Bytes(u64),
    /// A shape, for arrays of the same rank.
    Shape(Dims),
}

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub memory: Option<u64>,
    pub block: BlockSize,
    pub directory: Option<PathBuf>,
    pub stage: Option<u64>,
    pub threads: usize,
    pub on_failure: OnLogFailure,
    pub lag: Option<Duration>,
}

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let refuse = |message: String| Err(Error::invalid("parse stack", format!("cache: {message}")));
        let memory = element.size("memory")?;
        if let Some(bytes) = memory.filter(|bytes| *bytes < LEAST_MEMORY) {
            return refuse(format!("memory={bytes} is less than 4KiB"));
        }
        let block = match element.get("block") {
            None => BlockSize::Usual,
            Some(text) if text.contains('x') => BlockSize::Shape(element.dims("block")?.unwrap_or_default()),
            Some(text) => match element.size("block") {
                Ok(Some(bytes)) if bytes >= LEAST_BLOCK => BlockSize::Bytes(bytes),
                Ok(_) => return refuse(format!("block={text} is less than {LEAST_BLOCK} bytes")),
                Err(_) => {
                    return refuse(format!("block={text} should be a size such as 64KiB or extents such as 64x64"));
                }
            },
        };
        let directory = element.get("dir").map(PathBuf::from);
        let (stage, least) = (element.size("stage")?, if directory.is_some() { LEAST_JOURNAL } else { LEAST_MEMORY });
        if let Some(bytes) = stage.filter(|bytes| *bytes < least) {
            return refuse(format!("stage={bytes} is less than {}KiB", least >> 10));
        }
        let threads = element.number("threads", 1..=MOST_THREADS)?.unwrap_or(1) as usize;
        let on_failure = OnLogFailure::parse(element)?;
        let lag = crate::async_io::lag(element)?;
        Ok(Self { memory, block, directory, stage, threads, on_failure, lag })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.parse::<Stack>().unwrap().format)
    }

    #[test]
    fn options_are_checked() {
        assert_eq!(parse("cache").unwrap().block, BlockSize::Usual);
        let options = parse("cache(memory=1MiB,block=64KiB)").unwrap();
        assert_eq!((options.memory, options.block), (Some(1 << 20), BlockSize::Bytes(64 << 10)));
        assert_eq!(parse("cache(block=8x16)").unwrap().block, BlockSize::Shape([8, 16][..].into()));
        for (text, said) in [
            ("cache(memory=1KiB)", "less than 4KiB"),
            ("cache(memory=lots)", "a size"),
            ("cache(block=8x0)", "extents"),
            ("cache(block=8)", "less than 64 bytes"),
            ("cache(dir=/tmp,stage=4KiB)", "less than 64KiB"),
            ("cache(stage=1KiB)", "less than 4KiB"),
            ("cache(threads=0)", "threads"),
            ("cache(block=big)", "a size such as 64KiB or extents"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
