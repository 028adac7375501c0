//! Persistence of histories in one JSON file per user, specified in docs/layers.md.

use super::history::History;
use super::storage_key::StorageKey;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const VERSION: u32 = 1;
const NAME: &str = "auto-history.json";
/// Maximum file size.
const MOST_BYTES: u64 = 16 << 20;
/// Maximum number of storage keys, most recently used.
const MOST_PLACES: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    hyperslab_auto_history: u32,
    places: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    place: StorageKey,
    /// Seconds since 1970.
    used: u64,
    history: History,
}

/// The version field alone, of files of any version.
#[derive(Deserialize)]
struct Version {
    hyperslab_auto_history: u32,
}

/// `$XDG_STATE_HOME/hyperslab`, or `~/.local/state/hyperslab`. `None` if the user has no home directory.
pub(super) fn usual_folder() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    base.map(|base| base.join("hyperslab"))
}

/// Loads the history of a storage key. A missing file is an empty history; the error says why a file is unusable.
pub(super) fn load(folder: &Path, place: &StorageKey) -> Result<History, String> {
    let entries = read(folder)?;
    Ok(entries.into_iter().find(|entry| entry.place == *place).map(|entry| entry.history).unwrap_or_default())
}

/// Saves the history of a storage key, keeping those of others. Concurrent jobs may lose each other's latest epochs, but
/// never the file.
pub(super) fn save(folder: &Path, place: &StorageKey, history: &History) -> Result<(), String> {
    let failed = |cause: &dyn std::fmt::Display| format!("{}: {cause}", folder.join(NAME).display());
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|cause| failed(&cause))?;
    // Replaces an unreadable file, unless a newer version wrote it.
    let mut entries = match read(folder) {
        Err(why) if why.contains(NEWER) => return Err(why),
        found => found.unwrap_or_default(),
    };
    entries.retain(|entry| entry.place != *place);
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
    entries.truncate(MOST_PLACES - 1);
    let used = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    entries.push(Entry { place: place.clone(), used, history: history.clone() });
    let stored = Stored { hyperslab_auto_history: VERSION, places: entries };
    let text = serde_json::to_vec(&stored).map_err(|cause| failed(&cause))?;
    replace(folder, &text).map_err(|cause| failed(&cause))
}

const NEWER: &str = "newer version";

fn read(folder: &Path) -> Result<Vec<Entry>, String> {
    let failed = |cause: &dyn std::fmt::Display| format!("{}: {cause}", folder.join(NAME).display());
    let file = match open(folder) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(Errno::LOOP) => return Err(failed(&"it is a link")),
        Err(cause) => return Err(failed(&cause)),
    };
    let about = file.metadata().map_err(|cause| failed(&cause))?;
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() || about.len() > MOST_BYTES {
        return Err(failed(&"it is no history of this user"));
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).map_err(|cause| failed(&cause))?;
    parse(&text).map_err(|cause| failed(&cause))
}

/// Parses the entries of a history file.
fn parse(text: &[u8]) -> Result<Vec<Entry>, String> {
    let version: Version = serde_json::from_slice(text).map_err(|cause| cause.to_string())?;
    match version.hyperslab_auto_history {
        VERSION => {}
        newer if newer > VERSION => return Err(format!("it is of a {NEWER} ({newer})")),
        older => return Err(format!("it is of version {older}")),
    }
    let stored: Stored = serde_json::from_slice(text).map_err(|cause| cause.to_string())?;
    match stored.places.len() <= MOST_PLACES && stored.places.iter().all(|entry| entry.history.is_sane()) {
        true => Ok(stored.places),
        false => Err("it has numbers that nobody can have measured".into()),
    }
}

/// Parses the text of a file, and encodes the same entries again.
pub(super) fn read_again(text: &[u8]) -> Result<(Vec<History>, Vec<u8>), String> {
    let stored = Stored { hyperslab_auto_history: VERSION, places: parse(text)? };
    let again = serde_json::to_vec(&stored).map_err(|cause| cause.to_string())?;
    Ok((stored.places.into_iter().map(|entry| entry.history).collect(), again))
}

fn directory(folder: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn open(folder: &Path) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::openat(directory(folder)?, NAME, flags, Mode::empty())?.into())
}

/// Replaces the file atomically.
fn replace(folder: &Path, text: &[u8]) -> std::io::Result<()> {
    let folder = directory(folder)?;
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let name = format!(".{NAME}.{:016x}", u64::from_ne_bytes(random));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file: File = rustix::fs::openat(&folder, &name, flags, Mode::RUSR | Mode::WUSR)?.into();
    let written = file.write_all(text).and_then(|()| Ok(rustix::fs::renameat(&folder, &name, &folder, NAME)?));
    if written.is_err() {
        let _ = rustix::fs::unlinkat(&folder, &name, rustix::fs::AtFlags::empty());
    }
    written
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::choice::Choice;
    use super::super::history::Observed;
    use super::super::request_class::RequestClass;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place(stack: &str) -> StorageKey {
        StorageKey { file_system: "ef53-1".into(), stack: stack.into() }
    }

    fn history(seconds: f64) -> History {
        let mut history = History::default();
        let class = RequestClass::of(1 << 20, true);
        let (compute, room, calls) = (seconds, Some(seconds), seconds);
        let (choice, hand_over, behind, straight, fresh) = (Choice::Sync, calls, None, true, false);
        let (ranks, bytes) = (1, 1e6);
        let observed =
            Observed { choice, class, ranks, bytes, compute, room, calls, hand_over, behind, straight, fresh };
        history.learn(&observed);
        history
    }

    #[test]
    fn what_was_saved_is_there_again_for_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("a/b");
        assert_eq!(load(&folder, &place("posix")), Ok(History::default()), "there is none yet");
        save(&folder, &place("posix"), &history(0.5)).unwrap();
        save(&folder, &place("hdf5"), &history(0.25)).unwrap();
        save(&folder, &place("posix"), &history(0.125)).unwrap();
        assert_eq!(load(&folder, &place("posix")), Ok(history(0.125)));
        assert_eq!(load(&folder, &place("hdf5")), Ok(history(0.25)));
        assert_eq!(load(&folder, &place("zarr")), Ok(History::default()));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder.join(NAME)), mode(&folder)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_damaged_file_is_told_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, file) = (folder.path(), folder.path().join(NAME));
        save(folder, &place("posix"), &history(0.5)).unwrap();
        let good = std::fs::read_to_string(&file).unwrap();
        let endless = good.replace("\"epochs\":1", &format!("\"epochs\":{}", u64::MAX));
        assert_ne!(endless, good);
        let negative = good.replace("0.5", "-0.5");
        for bad in [&good[..good.len() / 2], "", "[]", &negative, &good.replace("\"used\"", "\"abused\""), &endless] {
            std::fs::write(&file, bad).unwrap();
            let why = load(folder, &place("posix")).unwrap_err();
            assert!(why.contains(NAME), "{why}");
            save(folder, &place("posix"), &history(0.5)).unwrap();
            assert_eq!(load(folder, &place("posix")), Ok(history(0.5)));
        }
    }

    #[test]
    fn another_version_is_left_alone_if_newer_and_forgotten_if_older() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, file) = (folder.path(), folder.path().join(NAME));
        std::fs::write(&file, r#"{"hyperslab_auto_history":2,"everything":"else"}"#).unwrap();
        assert!(load(folder, &place("posix")).unwrap_err().contains("newer version (2)"));
        assert!(save(folder, &place("posix"), &history(0.5)).is_err());
        assert!(std::fs::read_to_string(&file).unwrap().contains("everything"));
        std::fs::write(&file, r#"{"hyperslab_auto_history":0}"#).unwrap();
        assert!(load(folder, &place("posix")).unwrap_err().contains("version 0"));
        save(folder, &place("posix"), &history(0.5)).unwrap();
        assert_eq!(load(folder, &place("posix")), Ok(history(0.5)));
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, victim) = (folder.path().join("state"), folder.path().join("victim"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.join(NAME)).unwrap();
        assert!(load(&folder, &place("posix")).unwrap_err().contains("it is a link"));
        save(&folder, &place("posix"), &history(0.5)).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(load(&folder, &place("posix")), Ok(history(0.5)));
    }

    #[test]
    fn it_holds_the_latest_places() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MOST_PLACES + 5 {
            save(folder.path(), &place(&format!("stack-{number}")), &history(0.5)).unwrap();
        }
        assert_eq!(read(folder.path()).unwrap().len(), MOST_PLACES);
        assert_eq!(load(folder.path(), &place(&format!("stack-{}", MOST_PLACES + 4))), Ok(history(0.5)));
    }
}
