//! File names of traces and spools, and checks before replacing files.

use hyperslab_core::workload::{Header, read_header};
use hyperslab_core::{Error, ErrorKind, OpenMode, Result};
use rustix::fs::{Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Maximum number of traces of one name.
pub(super) const MOST: u32 = 100_000;

/// The default trace file of a container.
pub(super) fn beside(container: &Path) -> PathBuf {
    with_suffix(container, ".trace.jsonl")
}

/// The `number`th trace named `file`: `out.jsonl`, `out.2.jsonl`, `out.3.jsonl`.
pub(super) fn numbered(file: &Path, number: u32) -> PathBuf {
    if number < 2 {
        return file.into();
    }
    let mut name: OsString = file.file_stem().unwrap_or_else(|| OsStr::new("trace")).into();
    name.push(format!(".{number}"));
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

/// The spool of `rank`.
pub(super) fn part_of(trace: &Path, rank: usize) -> PathBuf {
    with_suffix(trace, &format!(".rank-{rank}.part"))
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Refuses a name of an existing file that is no trace.
pub(super) fn check_replaceable(trace: &Path) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::new(ErrorKind::AlreadyExists, "trace", format!("{what}, and would be replaced"))
            .target(trace.display())
            .hint("give the trace another name: trace(file=...)"))
    };
    match std::fs::symlink_metadata(trace) {
        Err(_) => Ok(()), // Not there, or nothing that could be replaced either.
        Ok(found) if found.is_symlink() => refuse("it is a link"),
        Ok(found) if !found.is_file() => refuse("it is no file"),
        Ok(_) if is_trace(trace) => Ok(()),
        Ok(_) => refuse("it is there and no trace"),
    }
}

/// Whether the `number`th trace named `file` may be written for an opening of container `name`. Replaces an existing trace
/// only if it is of a container of this name that was re-created since, or is now.
/// For the first number, refuses a file that is no trace; later numbers are skipped.
pub(super) fn is_free(file: &Path, number: u32, name: &str, how: OpenMode) -> Result<bool> {
    let trace = numbered(file, number);
    if let Err(error) = check_replaceable(&trace) {
        return if number == 1 { Err(error) } else { Ok(false) };
    }
    let changed = |path: &Path| std::fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    let Some(written) = changed(&trace) else { return Ok(true) };
    let same = header_of(&trace).is_some_and(|header| header.files.first().is_some_and(|file| file.name == name));
    let anew = matches!(how, OpenMode::Create | OpenMode::Truncate);
    Ok(same && (anew || changed(file).is_some_and(|first| written < first)))
}

fn is_trace(path: &Path) -> bool {
    header_of(path).is_some_and(|header| header.recorded.is_some())
}

fn header_of(path: &Path) -> Option<Header> {
    read_header(&mut BufReader::new(open_plain(path, OFlags::RDONLY).ok()?)).ok()
}

/// Opens a file without following links or blocking on pipes.
pub(super) fn open_plain(path: &Path, flags: OFlags) -> std::io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o666))?);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is no plain file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_the_extension() {
        let numbered = |file: &str, n| numbered(Path::new(file), n).display().to_string();
        assert_eq!(numbered("a/out.jsonl", 1), "a/out.jsonl");
        assert_eq!(numbered("a/out.jsonl", 2), "a/out.2.jsonl");
        assert_eq!(numbered("x.h5.trace.jsonl", 3), "x.h5.trace.3.jsonl");
        assert_eq!(numbered("plain", 2), "plain.2");
    }

    #[test]
    fn only_traces_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        assert!(check_replaceable(&path).is_ok());
        for text in ["", "notes", r#"{"hyperslab_workload":1,"name":"x","ranks":1,"files":[],"arrays":[]}"#] {
            std::fs::write(&path, text).unwrap();
            let error = check_replaceable(&path).unwrap_err();
            assert!(error.kind() == ErrorKind::AlreadyExists && error.what_to_try().is_some(), "{error}");
        }
        let trace = r#"{"hyperslab_workload":2,"name":"x","ranks":1,"recorded":{"by":"t","complete":true,"steps":0},"files":[],"arrays":[]}"#;
        std::fs::write(&path, trace).unwrap();
        assert!(check_replaceable(&path).is_ok());
        let link = directory.path().join("l");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(check_replaceable(&link).unwrap_err().to_string().contains("link"));
        assert!(check_replaceable(directory.path()).is_err());
    }
}
