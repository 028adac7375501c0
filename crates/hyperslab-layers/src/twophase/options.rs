//! The options of the layer.

use hyperslab_core::{Error, LayerEffect, OptionSpec, Result, StackElement};

/// The kind of file domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// Equal contiguous parts.
    Even,
    /// Contiguous parts of whole units.
    Aligned,
    /// Units in turn to the aggregators, counted from the begin of the array.
    StaticCyclic,
    /// A contiguous part for each group of aggregators, units in turn within the group.
    GroupCyclic,
}

/// Validated options.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// Number of aggregators; two per node by default.
    pub aggregators: Option<usize>,
    pub sharing: Sharing,
    /// Length of a unit in bytes.
    pub unit: u64,
    /// Bytes that an aggregator processes in one round.
    pub buffer: u64,
    /// Number of aggregators of a group.
    pub group: usize,
}

const MOST_AGGREGATORS: u64 = 1 << 20;
const SIZES: std::ops::RangeInclusive<u64> = 1..=1 << 30;

const BUFFER: OptionSpec = OptionSpec {
    name: "buffer",
    value: "SIZE",
    default: "1MiB",
    about: "bytes that an aggregator covers in one round; more where a unit or a chunk is larger",
};

const UNIT: OptionSpec = OptionSpec {
    name: "unit",
    value: "SIZE",
    default: "1MiB",
    about: "bytes that stay together, such as a stripe of the file system; whole chunks where an array has chunks",
};

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "aggregators",
        value: "NUMBER",
        default: "two per node",
        about: "ranks that access the format on behalf of all",
    },
    OptionSpec {
        name: "domains",
        value: "even|aligned|static-cyclic|group-cyclic",
        default: "aligned",
        about: "who gets what: equal parts of what is accessed; parts that end at units; units dealt out in turn; \
                a part for each group of aggregators, its units dealt out in turn within the group",
    },
    UNIT,
    BUFFER,
    OptionSpec {
        name: "group",
        value: "NUMBER",
        default: "4",
        about: "aggregators in a group of domains=group-cyclic, such as the number of storage targets of a file",
    },
];

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let size = |option: &OptionSpec| {
            let value = element.size_or_default(option)?;
            if SIZES.contains(&value) {
                return Ok(value);
            }
            Err(Error::invalid("parse stack", format!("twophase: {} should be from 1 byte to 1GiB", option.name)))
        };
        let choices = [
            ("even", Sharing::Even),
            ("aligned", Sharing::Aligned),
            ("static-cyclic", Sharing::StaticCyclic),
            ("group-cyclic", Sharing::GroupCyclic),
        ];
        let sharing = element.choice("domains", &choices)?.unwrap_or(Sharing::Aligned);
        let group = element.number("group", 1..=MOST_AGGREGATORS)?;
        if group.is_some() && sharing != Sharing::GroupCyclic {
            return Err(Error::invalid("parse stack", "twophase: group says nothing without domains=group-cyclic"));
        }
        Ok(Self {
            aggregators: element.number("aggregators", 1..=MOST_AGGREGATORS)?.map(|n| n as usize),
            sharing,
            unit: size(&UNIT)?,
            buffer: size(&BUFFER)?,
            group: group.unwrap_or(4) as usize,
        })
    }
}

/// Some ranks make the transfers of all.
pub(super) fn effect(element: &StackElement) -> Result<LayerEffect> {
    let Options { aggregators, buffer, .. } = Options::parse(element)?;
    Ok(LayerEffect::Together { aggregators: aggregators.map(|n| n as u64), buffer })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[(&str, &str)]) -> Result<Options> {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Options::parse(&StackElement { name: "twophase".into(), options })
    }

    #[test]
    fn options_are_read_and_refused() {
        let options = parse(&[]).unwrap();
        assert_eq!((options.aggregators, options.unit, options.buffer), (None, 1 << 20, 1 << 20));
        assert_eq!(options.sharing, Sharing::Aligned);
        let options = parse(&[("domains", "group-cyclic"), ("group", "3"), ("aggregators", "6")]).unwrap();
        assert_eq!((options.sharing, options.group, options.aggregators), (Sharing::GroupCyclic, 3, Some(6)));
        for bad in [("buffer", "0"), ("unit", "2GiB"), ("aggregators", "0"), ("domains", "cyclic"), ("group", "2")] {
            assert!(parse(&[bad]).is_err(), "{bad:?}");
        }
    }
}
