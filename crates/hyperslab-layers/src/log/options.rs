//! The options of the layer.

use crate::background::{Member, ON_LOG_FAILURE, OnLogFailure};
use hyperslab_core::{Error, LayerEffect, OptionSpec, Result, StackElement, units};
use hyperslab_journal::SyncMode;
use std::path::PathBuf;
use std::time::Duration;

/// What `durability` may be.
const DURABILITIES: &str = "none, on-flush, every-write, or a time such as 10ms";

const AGE: OptionSpec = OptionSpec {
    name: "age",
    value: "TIME",
    default: "2s",
    about: "the time after which a write is moved to the file in the background, however little there is",
};

const BUFFER: OptionSpec = OptionSpec {
    name: "buffer",
    value: "SIZE",
    default: "8MiB; 1MiB where ranks are of one machine and the array has no chunks",
    about: "bytes that a rank writes to the file at a time; it needs up to three times as much memory for it",
};

const MEMORY: OptionSpec = OptionSpec {
    name: "memory",
    value: "SIZE",
    default: "256MiB",
    about: "memory of a rank for the list of what is in the log, about 200 bytes for each write",
};

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "dir",
        value: "PATH",
        default: "the folder of the container",
        about: "a directory for the log, on storage that is fast and survives a crash of the program",
    },
    OptionSpec {
        name: "limit",
        value: "SIZE",
        default: "half of the free space of dir, shared among the ranks of a node",
        about: "bytes that the log of a rank may have; when they are in use, callers wait for the drain",
    },
    OptionSpec {
        name: "durability",
        value: "none|on-flush|TIME|every-write",
        default: "on-flush",
        about: "what a crash may cost: see docs/layers.md; TIME (or \"every(TIME)\") syncs the log that often",
    },
    OptionSpec {
        name: "per",
        value: "process|node",
        default: "process",
        about: "whether each rank has log files of its own, or those of a node share one",
    },
    OptionSpec {
        name: "io",
        value: "buffered|direct",
        default: "buffered",
        about: "direct: writes of more than 16KiB reach the log past the page cache (O_DIRECT)",
    },
    OptionSpec {
        name: "drain",
        value: "SIZE|off",
        default: "an eighth of the limit, at most 256MiB",
        about: "bytes in the log of a rank at which they are moved to the file in the background",
    },
    AGE,
    OptionSpec {
        name: "rate",
        value: "SIZE/s",
        default: "as fast as the storage",
        about: "what the background moves at most; lifted as soon as somebody waits",
    },
    BUFFER,
    MEMORY,
    OptionSpec {
        name: "member",
        value: "JOB/RANK/RANKS",
        default: "what the ranks agree on",
        about: "whose log it is, where ranks open the container each by itself: a number of 32 hexadecimal digits, the same for all, the rank, and how many there are",
    },
    ON_LOG_FAILURE,
];

/// The most that gathers before the background begins, unless the user says so.
const MOST_GATHERED: u64 = 256 << 20;
/// The default `buffer` if ranks read from each other's logs.
const SHARED_BUFFER: u64 = 1 << 20;
const LEAST_LIMIT: u64 = 64 << 10;
const LEAST_BUFFER: u64 = 4 << 10;
const LEAST_MEMORY: u64 = 4 << 10;
const LONGEST_AGE: Duration = Duration::from_secs(24 * 3600);

/// When the background starts to drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// At a share of the limit.
    Usual,
    Bytes(u64),
    Never,
}

impl Begin {
    /// The bytes in the log of a rank at which the background begins, of a log of at most `limit`; `None`: it never does.
    pub fn bytes(self, limit: u64) -> Option<u64> {
        match self {
            Self::Usual => Some((limit / 8).min(MOST_GATHERED)),
            Self::Bytes(bytes) => Some(bytes),
            Self::Never => None,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub directory: Option<PathBuf>,
    pub limit: Option<u64>,
    pub durability: SyncMode,
    pub direct: bool,
    pub per_node: bool,
    pub begin: Begin,
    pub age: Duration,
    pub rate: Option<u64>,
    pub buffer: u64,
    /// The default `buffer` if ranks read from each other's logs: data in the processor cache is written twice as fast.
    pub shared_buffer: u64,
    pub memory: u64,
    pub on_failure: OnLogFailure,
    pub member: Option<Member>,
}

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let refuse = |message: String| Error::invalid("parse stack", format!("log: {message}"));
        let default = |option: &OptionSpec| element.size_or_default(option);
        let size = |name: &str, least: u64| match element.size(name)? {
            Some(bytes) if bytes < least => {
                Err(refuse(format!("{name}={bytes} is less than {}", units::display_size(least))))
            }
            given => Ok(given),
        };
        let begin = match element.get("drain") {
            None => Begin::Usual,
            Some("off") => Begin::Never,
            Some(_) => element.size("drain")?.map_or(Begin::Usual, Begin::Bytes),
        };
        let age = element.time_or_default(&AGE)?;
        if age > LONGEST_AGE {
            let given = element.get("age").unwrap_or_default();
            return Err(refuse(format!("age={given} should be a time such as 500ms or 10s, of at most a day")));
        }
        let rate = element.get("rate").map(|text| {
            let rate = units::parse_rate(text).ok().filter(|rate| *rate > 0);
            rate.ok_or_else(|| refuse(format!("rate={text} should be a rate such as 200MB/s")))
        });
        Ok(Self {
            directory: element.get("dir").map(PathBuf::from),
            limit: size("limit", LEAST_LIMIT)?,
            durability: durability(element)?,
            per_node: element.choice("per", &[("process", false), ("node", true)])?.unwrap_or(false),
            direct: element.choice("io", &[("buffered", false), ("direct", true)])?.unwrap_or(false),
            begin,
            age,
            rate: rate.transpose()?,
            buffer: size("buffer", LEAST_BUFFER)?.map_or_else(|| default(&BUFFER), Ok)?,
            shared_buffer: element.size("buffer")?.unwrap_or(SHARED_BUFFER),
            memory: size("memory", LEAST_MEMORY)?.map_or_else(|| default(&MEMORY), Ok)?,
            on_failure: OnLogFailure::parse(element)?,
            member: element.get("member").map(member).transpose()?,
        })
    }
}

/// Writes are gathered. Where the limit follows from free space, that is taken to be plenty.
pub(super) fn effect(element: &StackElement) -> Result<LayerEffect> {
    let options = Options::parse(element)?;
    let (drain, age) = match options.begin.bytes(options.limit.unwrap_or(u64::MAX)) {
        Some(bytes) => (bytes, options.age),
        None => (u64::MAX, Duration::MAX),
    };
    Ok(LayerEffect::Logged { buffer: options.buffer, drain, age })
}

fn member(text: &str) -> Result<Member> {
    let wrong = || Error::invalid("parse stack", format!("log: member={text} should be JOB/RANK/RANKS"));
    Member::parse(text).ok_or_else(wrong)
}

fn durability(element: &StackElement) -> Result<SyncMode> {
    let Some(text) = element.get("durability") else { return Ok(SyncMode::OnFlush) };
    let unknown = || Error::invalid("parse stack", format!("log: durability={text} is not known")).hint(DURABILITIES);
    sync_mode(text).ok_or_else(unknown)
}

fn sync_mode(text: &str) -> Option<SyncMode> {
    match text {
        "none" => return Some(SyncMode::None),
        "on-flush" => return Some(SyncMode::OnFlush),
        "every-write" => return Some(SyncMode::EveryWrite),
        _ => {}
    }
    let time = text.strip_prefix("every(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    let time = units::parse_duration(time.trim()).ok()?;
    (!time.is_zero() && time <= LONGEST_AGE).then_some(SyncMode::Every(time))
}

/// Refuses what [`Options::parse`] would, in words for who sets it elsewhere.
pub(crate) fn check_durability(text: &str) -> std::result::Result<(), String> {
    let known = sync_mode(text).map(drop);
    known.ok_or_else(|| format!("durability={text} is not known; choose from {DURABILITIES}"))
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
        let options = parse("log(dir=/tmp,drain=off,age=10ms,rate=10MB/s,buffer=1MiB)").unwrap();
        assert_eq!(
            (options.begin, options.age, options.rate),
            (Begin::Never, Duration::from_millis(10), Some(10 << 20))
        );
        for (text, mode) in [
            ("log", SyncMode::OnFlush),
            ("log(durability=none)", SyncMode::None),
            ("log(durability=every-write)", SyncMode::EveryWrite),
            ("log(durability=10ms)", SyncMode::Every(Duration::from_millis(10))),
            ("log(durability=\"every(2s)\")", SyncMode::Every(Duration::from_secs(2))),
        ] {
            assert_eq!(parse(text).unwrap().durability, mode, "{text}");
        }
        for (text, said) in [
            ("log(limit=1KiB)", "less than 64"),
            ("log(buffer=1)", "less than 4"),
            ("log(memory=1)", "less than 4"),
            ("log(drain=often)", "a size"),
            ("log(age=old)", "a time such as"),
            ("log(rate=0MB/s)", "a rate such as"),
            ("log(durability=sometimes)", "durability=sometimes"),
            ("log(durability=0ms)", "durability=0ms"),
            ("log(member=1/2/3)", "member=1/2/3"),
            ("log(member=00112233445566778899aabbccddeeff/2/2)", "JOB/RANK/RANKS"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
