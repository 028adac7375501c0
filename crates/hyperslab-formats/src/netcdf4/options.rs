//! What a stack string may say about `netcdf4`: all of `hdf5`, and a few things more.

use crate::hdf5_entry::{self, TABLE};
use hyperslab_core::storage::{FileRules, FillTime};
use hyperslab_core::{Error, OptionSpec, Result, StackElement};

const OWN: [OptionSpec; 3] = [
    OptionSpec {
        name: "model",
        value: "netcdf4|classic",
        default: "netcdf4",
        about: "classic: new files hold only what a classic NetCDF file can, for programs that ask for that",
    },
    OptionSpec {
        name: "fill",
        value: "zero|netcdf|no",
        default: "zero",
        about: "elements never written, of arrays without a fill value: zeros, NetCDF's default of the type, or anything",
    },
    OptionSpec {
        name: "chunk_target",
        value: "SIZE",
        default: "1MiB, or align if 64KiB to 16MiB",
        about: "bytes of the chunks of arrays that grow and do not say",
    },
];

const COUNT: usize = OWN.len() + TABLE.len();

const ALL: [OptionSpec; COUNT] = {
    let mut all = [OWN[0]; COUNT];
    let mut at = 1;
    while at < COUNT {
        all[at] = if at < OWN.len() { OWN[at] } else { TABLE[at - OWN.len()] };
        at += 1;
    }
    all
};

/// Every option with its default, as shown to people.
pub(crate) const SPECS: &[OptionSpec] = &ALL;

/// What elements are that were never written, where the array does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filling {
    Zero,
    /// NetCDF's default value of the type.
    Default,
    Never,
}

/// The options beside those of `hdf5`, checked.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "hdf5"), expect(dead_code, reason = "the format is not compiled in"))]
pub(crate) struct Options {
    /// New files are of the classic model.
    pub(crate) classic: bool,
    pub(crate) filling: Filling,
}

impl Options {
    pub(crate) fn parse(element: &StackElement) -> Result<Self> {
        let filling = [("zero", Filling::Zero), ("netcdf", Filling::Default), ("no", Filling::Never)];
        Ok(Self {
            classic: element.choice("model", &[("netcdf4", false), ("classic", true)])?.unwrap_or(false),
            filling: element.choice("fill", &filling)?.unwrap_or(Filling::Zero),
        })
    }
}

/// Reads the options that decide how arrays are stored: those of `hdf5`, and more.
pub(crate) fn rules(element: &StackElement) -> Result<FileRules> {
    let bad = |message: &str, hint: &str| {
        Err(Error::invalid("parse stack", message.to_owned()).backend(super::ENTRY.name).hint(hint))
    };
    let mut rules = FileRules { chunk_target: element.size("chunk_target")?, ..hdf5_entry::rules(element)? };
    if rules.chunk_target == Some(0) {
        return bad("chunk_target=0 makes no sense", "use chunk_target=1MiB or the like");
    }
    if element.get("fill").is_some() && rules.fill.is_some() {
        return bad("fill and fill_time say the same in different words", "leave fill_time out");
    }
    if Options::parse(element)?.filling == Filling::Never {
        rules.fill = Some(FillTime::Never);
    }
    Ok(rules)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;

    #[test]
    fn options_decide_and_contradictions_are_refused() {
        let rules = |text: &str| rules(&text.parse::<Stack>().unwrap().format);
        assert_eq!(rules("netcdf4(fill=no)").unwrap().fill, Some(FillTime::Never));
        assert_eq!(rules("netcdf4(fill=netcdf)").unwrap().fill, None);
        assert_eq!(rules("netcdf4(chunk_target=4MiB)").unwrap().chunk_target, Some(4 << 20));
        for text in ["netcdf4(chunk_target=0)", "netcdf4(fill=no,fill_time=alloc)", "netcdf4(fill=yes)"] {
            assert!(rules(text).is_err(), "{text}");
        }
        let names: std::collections::BTreeSet<_> = SPECS.iter().map(|spec| spec.name).collect();
        assert_eq!(names.len(), SPECS.len());
    }
}
