//! The options of the layer.

use hyperslab_core::{Error, OptionSpec, Result, StackElement};

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "room",
        value: "PERCENT|SIZE",
        default: "100%",
        about: "length of each array's log, as a share of the array or in bytes; writes that find no room go to the array",
    },
    OptionSpec {
        name: "index",
        value: "SIZE",
        default: "64MiB",
        about: "bytes of index that a rank may add to a container; beyond, writes go to the arrays",
    },
];

const MOST_PERCENT: u64 = 10_000;
const INDEX: u64 = 64 << 20;
/// Alignment and minimum length of regions given as a share.
const GRAIN: u64 = 4096;

/// Length of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    Percent(u64),
    Bytes(u64),
}

impl Room {
    /// Length of the region of each of `ranks` ranks, for an array of `bytes` bytes.
    pub fn of_rank(self, bytes: u64, ranks: u64) -> u64 {
        match self {
            Self::Bytes(total) => total / ranks,
            Self::Percent(share) => {
                let total = u128::from(bytes) * u128::from(share);
                let each = total.div_ceil(100 * u128::from(ranks)).div_ceil(GRAIN.into()) * u128::from(GRAIN);
                each.min(i64::MAX as u128 / u128::from(ranks)) as u64
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub room: Room,
    pub index: u64,
}

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let refuse = |text: &str| {
            Error::invalid(
                "parse stack",
                format!("loglayout: room={text} should be a share such as 150% or a size such as 1GiB"),
            )
        };
        let room = match element.get("room") {
            None => Room::Percent(100),
            Some(text) => match text.strip_suffix('%') {
                Some(number) => {
                    Room::Percent(number.parse().ok().filter(|n| *n <= MOST_PERCENT).ok_or_else(|| refuse(text))?)
                }
                None => Room::Bytes(element.size("room").ok().flatten().ok_or_else(|| refuse(text))?),
            },
        };
        Ok(Self { room, index: element.size("index")?.unwrap_or(INDEX) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;

    #[test]
    fn options_are_checked() {
        let parse = |text: &str| Options::parse(&text.parse::<Stack>().unwrap().format);
        assert_eq!(parse("loglayout").unwrap().room, Room::Percent(100));
        assert_eq!(parse("loglayout(room=150%)").unwrap().room, Room::Percent(150));
        assert_eq!(parse("loglayout(room=1GiB)").unwrap().room, Room::Bytes(1 << 30));
        assert_eq!(parse("loglayout(index=1MiB)").unwrap().index, 1 << 20);
        for text in ["loglayout(room=x%)", "loglayout(room=10001%)", "loglayout(room=lots)", "loglayout(index=%)"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranks_share_the_room() {
        assert_eq!(Room::Bytes(100).of_rank(1 << 40, 3), 33);
        assert_eq!(Room::Percent(100).of_rank(1 << 20, 4), 1 << 18);
        assert_eq!(Room::Percent(50).of_rank(10_001, 1), 8192);
        assert_eq!(Room::Percent(0).of_rank(1 << 20, 4), 0);
        assert_eq!(Room::Percent(100).of_rank(0, 4), 0);
        assert!(Room::Percent(10_000).of_rank(i64::MAX as u64, 4) <= i64::MAX as u64 / 4);
    }
}
