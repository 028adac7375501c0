//! Names of the hidden arrays of the layer.

use hyperslab_core::{Error, ErrorKind, Result};

/// The hidden group.
pub(super) const HIDDEN: &str = ".hyperslab-loglayout";

/// Kind of a hidden array.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hidden<'a> {
    /// A generation of the index.
    Index(u64),
    /// A volume of an array's log, with its number of regions.
    Volume { number: u32, regions: u64, array: &'a str },
}

/// Whether a name lies in the hidden group.
pub(super) fn is_hidden(name: &str) -> bool {
    name.strip_prefix(HIDDEN).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Refuses to create objects in the hidden group.
pub(super) fn check_new(name: &str) -> Result<()> {
    match is_hidden(name) {
        false => Ok(()),
        true => Err(Error::invalid("create", format!("{HIDDEN} is where loglayout keeps its logs"))
            .target(name)
            .hint("choose another name")),
    }
}

/// Refuses to open objects in the hidden group.
pub(super) fn check_known(name: &str) -> Result<()> {
    match is_hidden(name) {
        false => Ok(()),
        true => {
            Err(Error::new(ErrorKind::NotFound, "open", "this is a part of loglayout's logs, and not shown through it")
                .target(name))
        }
    }
}

pub(super) fn index(generation: u64) -> String {
    format!("{HIDDEN}/index/{generation:08}")
}

pub(super) fn volume(number: u32, regions: u64, array: &str) -> String {
    format!("{HIDDEN}/log/{number}-{regions}/{array}")
}

/// Parses a hidden name; `None` for other names.
pub(super) fn parse(name: &str) -> Result<Option<Hidden<'_>>> {
    let Some(rest) = name.strip_prefix(HIDDEN).and_then(|rest| rest.strip_prefix('/')) else { return Ok(None) };
    let known = match rest.split_once('/') {
        Some(("index", number)) => number.parse().ok().map(Hidden::Index),
        Some(("log", rest)) => rest.split_once('/').and_then(|(volume, array)| {
            let (number, regions) = volume.split_once('-')?;
            let regions = regions.parse().ok().filter(|regions| *regions > 0)?;
            Some(Hidden::Volume { number: number.parse().ok()?, regions, array })
        }),
        _ => None,
    };
    let unknown = || {
        Error::new(ErrorKind::Corrupt, "read index", "there is an array that this version of loglayout does not know")
    };
    known.map(Some).ok_or_else(|| unknown().target(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_understood_again() {
        assert_eq!(parse(&index(7)).unwrap(), Some(Hidden::Index(7)));
        let volume = volume(3, 12, "g/été");
        assert_eq!(parse(&volume).unwrap(), Some(Hidden::Volume { number: 3, regions: 12, array: "g/été" }));
        assert_eq!(parse("g/array").unwrap(), None);
        assert_eq!(parse(".hyperslab-loglayouts/array").unwrap(), None);
        for odd in ["index/x", "log/1/a", "log/1-0/a", "log/x-1/a", "other"] {
            assert!(parse(&format!("{HIDDEN}/{odd}")).is_err(), "{odd}");
        }
    }

    #[test]
    fn the_hidden_group_is_not_the_programs() {
        for name in [HIDDEN.to_owned(), index(1)] {
            assert!(check_new(&name).is_err() && check_known(&name).is_err());
        }
        assert!(check_new(".hyperslab-loglayouts").is_ok() && check_known("x/.hyperslab-loglayout").is_ok());
    }
}
