//! What is not ours is left alone, byte for byte.

use super::{Check, ensure, refused};
use crate::{OraclePair, Subject};
use hyperslab_core::{ArraySpec, Caps, Datatype, Error, MemoryLayout, OpenMode, Selection};
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let out = vec![
        Check::new("foreign/a file", |subject| {
            std::fs::write(subject.path("a"), "this is no container\n")?;
            untouched(subject)
        }),
        Check::new("foreign/an empty file", |subject| {
            std::fs::write(subject.path("a"), "")?;
            untouched(subject)
        }),
        Check::new("foreign/a directory with files", |subject| {
            std::fs::create_dir_all(subject.path("a").join("sub"))?;
            std::fs::write(subject.path("a").join("notes.txt"), "mine")?;
            std::fs::write(subject.path("a").join("sub/data"), [7; 100])?;
            untouched(subject)
        }),
        Check::new("foreign/files beside a container", beside),
        Check::new("foreign/a file inside a container", inside),
        Check::new("remove takes everything away", removed),
        Check::new("files exist and hold bytes", files),
        Check::new("dropped without closing, truncated and removed", dropped),
    ];
    out.into_iter().map(|check| check.needs(caps.data.persistent, "nothing on disk")).collect()
}

/// Everything below `root`: paths, and contents of files.
fn snapshot(root: &Path) -> Result<BTreeMap<PathBuf, Option<Vec<u8>>>, std::io::Error> {
    let mut out = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                todo.push(entry?.path());
            }
            out.insert(path, None);
        } else {
            let bytes = std::fs::read(&path)?;
            out.insert(path, Some(bytes));
        }
    }
    Ok(out)
}

fn untouched(subject: &Subject) -> Result<(), Failed> {
    let before = snapshot(subject.directory())?;
    let same = |what: &str| -> Result<(), Failed> {
        ensure!(snapshot(subject.directory())? == before, "{what} changed what is not its own");
        Ok(())
    };
    for how in [OpenMode::Truncate, OpenMode::Create, OpenMode::Read, OpenMode::Update] {
        refused(subject.open("a", how), &[], &format!("{how:?}"))?;
        same(&format!("{how:?}"))?;
    }
    refused(subject.format.remove(&subject.path("a")), &[], "remove")?;
    same("remove")?;
    ensure!(subject.format.exists(&subject.path("a"))?, "something is there that Create refuses");
    let _ = subject.format.files(&subject.path("a"));
    same("files")
}

fn fill(subject: &Subject, name: &str) -> Result<(), Error> {
    let pair = subject.pair(name, OpenMode::Create)?;
    for array in ["one", "deep/two"] {
        let spec = ArraySpec::new(Datatype::F64, &[20]);
        let twin = OraclePair::create(&pair.subject, &pair.oracle, array, &spec)?;
        twin.write(&Selection::all(&[20])?, &MemoryLayout::packed(), 4)?;
    }
    pair.close()
}

fn beside(subject: &Subject) -> Result<(), Failed> {
    fill(subject, "a")?;
    fill(subject, "ab")?;
    let path = subject.path("a");
    let mut strangers =
        vec![subject.directory().join("a.txt"), subject.directory().join("a.0"), subject.directory().join("a.d")];
    for suffix in [".0", ".bak", ".tmp", "~"] {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        strangers.push(name.into());
    }
    for stranger in &strangers {
        std::fs::write(stranger, "mine")?;
    }
    subject.open("a", OpenMode::Truncate)?.close()?;
    for stranger in &strangers {
        ensure!(std::fs::read(stranger)? == b"mine", "truncation changed {}", stranger.display());
    }
    subject.format.remove(&path)?;
    for stranger in &strangers {
        ensure!(std::fs::read(stranger)? == b"mine", "removal changed {}", stranger.display());
    }
    let pair = subject.pair("ab", OpenMode::Read)?;
    OraclePair::open(&pair.subject, &pair.oracle, "one")?.compare_all("a container beside the removed one")?;
    Ok(pair.close()?)
}

fn inside(subject: &Subject) -> Result<(), Failed> {
    fill(subject, "a")?;
    let path = subject.path("a");
    if !path.is_dir() {
        return Ok(());
    }
    let notes = path.join("notes.txt");
    std::fs::write(&notes, "mine")?;
    std::fs::create_dir(path.join("mine"))?;
    std::fs::write(path.join("mine/data"), "mine")?;
    let truncated = subject.open("a", OpenMode::Truncate).and_then(|container| container.close());
    let intact = || std::fs::read(&notes).is_ok_and(|t| t == b"mine") && path.join("mine/data").exists();
    ensure!(intact(), "truncation ({truncated:?}) took a foreign file with it");
    let removed = subject.format.remove(&path);
    ensure!(intact(), "removal ({removed:?}) took a foreign file with it");
    Ok(())
}

fn removed(subject: &Subject) -> Result<(), Failed> {
    fill(subject, "a")?;
    ensure!(subject.format.exists(&subject.path("a"))?, "it does not exist");
    subject.format.remove(&subject.path("a"))?;
    ensure!(!subject.format.exists(&subject.path("a"))?, "it still exists");
    let left = snapshot(subject.directory())?;
    ensure!(left.len() == 1 || subject.overrides.beside, "removal left {:?}", left.keys());
    refused(subject.format.remove(&subject.path("a")), &[hyperslab_core::ErrorKind::NotFound], "removing twice")?;
    Ok(subject.open("a", OpenMode::Create)?.close()?)
}

fn files(subject: &Subject) -> Result<(), Failed> {
    fill(subject, "a")?;
    let files = subject.format.files(&subject.path("a"))?;
    let mut sum = 0;
    for file in &files {
        let data = std::fs::metadata(file).map_err(|cause| format!("{}: {cause}", file.display()))?;
        ensure!(data.is_file(), "{} is not a file", file.display());
        sum += data.len();
    }
    ensure!(sum >= 2 * 160, "the files {files:?} hold {sum} bytes, the data has 320");
    Ok(())
}

fn dropped(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    container.create("array", &ArraySpec::new(Datatype::F64, &[20]))?;
    drop(container);
    subject.open("a", OpenMode::Truncate)?.close()?;
    subject.format.remove(&subject.path("a"))?;
    ensure!(!subject.format.exists(&subject.path("a"))?, "it still exists");
    Ok(())
}
