//! Names of arrays and groups as names of files and directories.
//!
//! Each part of an object's path becomes one file name. Letters, digits, `_`, `-` and (inside array names) `.` stand
//! for themselves; every other byte is written `%XX`. Directories of groups have no dot, so that they never meet the
//! files of an array. No object name can name a file outside the container.

use hyperslab_core::{Error, Result};
use std::path::{Path, PathBuf};

/// Metadata file of a group or, in the root, of the container.
pub(crate) const MARK: &str = "hyperslab.json";
/// Extension of an array's metadata file.
pub(crate) const DESCRIPTION: &str = "json";
/// Extension of a data file.
pub(crate) const DATA: &str = "raw";
/// Extension of the directory that holds an array's files by rank.
pub(crate) const RANKS: &str = "ranks";
/// Extension of the index of one rank's data file.
pub(crate) const INDEX: &str = "index";
/// Extension of a file that is being written and then renamed.
pub(crate) const UNFINISHED: &str = "unfinished";

/// Longest file name this format makes, extension not counted.
const LONGEST: usize = 200;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Array,
    Group,
}

/// The path of an array's files without their extension.
pub(crate) fn array_stem(root: &Path, name: &str) -> Result<PathBuf> {
    let (directory, last) = match name.rsplit_once('/') {
        Some(("", _)) => return Err(refuse(name, "names begin without a slash")),
        Some((group, last)) => (group_directory(root, group)?, last),
        None => (root.to_path_buf(), name),
    };
    Ok(directory.join(escape(last, Kind::Array).map_err(|message| refuse(name, message))?))
}

/// The directory of a group; the root for `""`.
pub(crate) fn group_directory(root: &Path, name: &str) -> Result<PathBuf> {
    let mut path = root.to_path_buf();
    if !name.is_empty() {
        for part in name.split('/') {
            path.push(escape(part, Kind::Group).map_err(|message| refuse(name, message))?);
        }
    }
    Ok(path)
}

fn refuse(name: &str, message: &'static str) -> Error {
    Error::invalid("check name", message)
        .target(format!("{name:?}"))
        .hint("use names like temperature or group/temperature")
}

/// `stem` with an extension, also where the stem itself has dots.
pub(crate) fn with_extension(stem: &Path, extension: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_os_string();
    name.push(".");
    name.push(extension);
    name.into()
}

/// The last part of an array's name, from the file name without extension; `None` if no array is stored so.
pub(crate) fn array_from_file(stem: &str) -> Option<String> {
    unescape(stem, Kind::Array)
}

/// The last part of a group's name, from the name of its directory; `None` if no group is stored so.
pub(crate) fn group_from_file(name: &str) -> Option<String> {
    unescape(name, Kind::Group)
}

fn escape(part: &str, kind: Kind) -> Result<String, &'static str> {
    if part.is_empty() {
        return Err("a part of the name is empty");
    }
    if part == "." || part == ".." {
        return Err("\".\" and \"..\" are no names");
    }
    let mut out = String::with_capacity(part.len());
    for (at, c) in part.char_indices() {
        let plain = c.is_alphanumeric() || c == '_' || c == '-' || (c == '.' && kind == Kind::Array && at > 0);
        // An array named like the mark would share its file.
        if plain && !(at == 0 && kind == Kind::Array && part == "hyperslab") {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    if out.len() > LONGEST {
        return Err("a part of the name is longer than 200 bytes as a file name");
    }
    Ok(out)
}

fn unescape(file: &str, kind: Kind) -> Option<String> {
    let mut bytes = Vec::with_capacity(file.len());
    let mut rest = file.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    let part = String::from_utf8(bytes).ok()?;
    // Only the one spelling that this format writes counts.
    (!part.contains('/') && escape(&part, kind).ok()? == file).then_some(part)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in
            ["a", "x.y", "Größe", "a b", "%41", "hyperslab", "hyperslab.json", "a.json", "-", "\0", "a\\b", ".x"]
        {
            for kind in [Kind::Array, Kind::Group] {
                let file = escape(name, kind).unwrap();
                assert_eq!(unescape(&file, kind).as_deref(), Some(name), "{file}");
                assert!(!file.contains('/') && !file.starts_with('.'), "{file}");
                assert!(kind == Kind::Array || !file.contains('.'), "{file}");
            }
        }
        assert_ne!(escape("hyperslab", Kind::Array).unwrap(), "hyperslab");
    }

    #[test]
    fn names_cannot_leave_the_container() {
        let root = Path::new("root");
        for name in ["", "/a", "../a", "a/..", "a//b", "a/", ".", "a/./b", &"x".repeat(201)] {
            assert!(array_stem(root, name).is_err(), "{name}");
        }
        assert_eq!(array_stem(root, "g.1/a.b").unwrap(), Path::new("root/g%2E1/a.b"));
        assert_eq!(with_extension(Path::new("x/a.b"), "raw"), Path::new("x/a.b.raw"));
    }

    #[test]
    fn other_spellings_are_not_ours() {
        for file in ["%4", "%zz", "%61", "%2f", "%2F", "a%2Eb", "", "."] {
            assert_eq!(array_from_file(file), None, "{file}");
        }
        assert_eq!(group_from_file("a.b"), None);
    }
}
