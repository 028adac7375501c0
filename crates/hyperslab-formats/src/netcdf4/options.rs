//! What a stack string may say about `netcdf4`: all of `hdf5`, and a few things more.

use crate::hdf5::options::TABLE;
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
pub(super) const SPECS: &[OptionSpec] = &ALL;

/// What elements are that were never written, where the array does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filling {
    Zero,
    /// NetCDF's default value of the type.
    Default,
    Never,
}

/// The options beside those of `hdf5`, checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// New files are of the classic model.
    pub(super) classic: bool,
    pub(super) filling: Filling,
    pub(super) chunk_target: Option<u64>,
}

impl Options {
    pub(super) fn parse(element: &StackElement) -> Result<Self> {
        let bad = |message: &str, hint: &str| {
            Err(Error::invalid("parse stack", message.to_owned()).backend(super::NAME).hint(hint))
        };
        let filling = [("zero", Filling::Zero), ("netcdf", Filling::Default), ("no", Filling::Never)];
        let options = Self {
            classic: element.choice("model", &[("netcdf4", false), ("classic", true)])?.unwrap_or(false),
            filling: element.choice("fill", &filling)?.unwrap_or(Filling::Zero),
            chunk_target: element.size("chunk_target")?,
        };
        if options.chunk_target == Some(0) {
            return bad("chunk_target=0 makes no sense", "use chunk_target=1MiB or the like");
        }
        if element.get("fill").is_some() && element.get("fill_time").is_some() {
            return bad("fill and fill_time say the same in different words", "leave fill_time out");
        }
        Ok(options)
    }

    /// Whether nothing is ever written for elements that nobody wrote.
    pub(super) fn never_fills(&self) -> bool {
        self.filling == Filling::Never
    }
}
