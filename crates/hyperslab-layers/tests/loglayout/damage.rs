//! An index that is damaged, or was not finished.

use crate::{bytes, content, format, place, ranks, write};
use hyperslab_core::{Durability, ErrorKind, Format, OpenMode};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A container of two generations, and the files of these.
fn scene() -> (Arc<dyn Format>, tempfile::TempDir, PathBuf, Vec<PathBuf>) {
    let layered = format("loglayout/posix");
    let (folder, path) = place(&*layered);
    ranks(&*layered, &path, OpenMode::Create, 2, |comm, container| {
        let array = container.create("a", &bytes(20))?;
        let mine = comm.rank() as u64 * 10;
        write(&*array, mine, &[1; 10])?;
        container.flush(Durability::Visible)?;
        write(&*array, mine + 5, &[2; 5])?;
        array.close()
    });
    let mut files: Vec<PathBuf> = layered.files(&path).unwrap();
    files.retain(|file| file.display().to_string().contains("index") && file.extension().is_some_and(|e| e == "raw"));
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    (layered, folder, path, files)
}

fn refused(format: &dyn Format, path: &Path, generation: &str, what: &str) {
    let error = content(format, path, "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
    assert!(error.to_string().contains(generation), "{what}: {error}");
}

#[test]
fn a_damaged_index_is_refused_by_name() {
    let (layered, _folder, path, files) = scene();
    for (generation, file) in ["index/00000001", "index/00000002"].iter().zip(&files) {
        let good = fs::read(file).unwrap();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            fs::write(file, bad).unwrap();
            refused(&*layered, &path, generation, &format!("bit {bit}"));
        }
        fs::write(file, &good).unwrap();
    }
    assert_eq!(content(&*layered, &path, "a").unwrap(), [[1; 5], [2; 5], [1; 5], [2; 5]].concat());
}

#[test]
fn a_generation_that_was_not_finished_is_not_there() {
    let (layered, _folder, path, files) = scene();
    let good = fs::read(&files[1]).unwrap();
    let unfinished = [&[0; 48], &good[48..]].concat();
    fs::write(&files[1], &unfinished).unwrap();
    assert_eq!(content(&*layered, &path, "a").unwrap(), [1; 20]);
    // The next one has a number of its own.
    ranks(&*layered, &path, OpenMode::Update, 1, |_, container| write(&*container.array("a")?, 0, &[3; 2]));
    assert_eq!(content(&*layered, &path, "a").unwrap(), [&[3; 2][..], &[1; 18]].concat());
}

#[test]
fn a_generation_that_others_stand_on_must_be_there() {
    let (layered, _folder, path, files) = scene();
    let good = fs::read(&files[0]).unwrap();
    fs::write(&files[0], vec![0; good.len()]).unwrap();
    refused(&*layered, &path, "index/00000002", "head of zeros");
    assert!(content(&*layered, &path, "a").unwrap_err().to_string().contains("generation 1 of the index is lost"));
    fs::remove_file(&files[0]).unwrap();
    fs::remove_file(files[0].with_extension("json")).unwrap();
    refused(&*layered, &path, "index/00000002", "no file");
}

#[test]
fn a_log_that_is_missing_is_an_error() {
    let (layered, _folder, path, _) = scene();
    let logs = layered.files(&path).unwrap();
    let log = logs.iter().find(|file| file.display().to_string().contains("0-2") && file.ends_with("a.raw")).unwrap();
    fs::remove_file(log).unwrap();
    fs::remove_file(log.with_extension("json")).unwrap();
    let error = content(&*layered, &path, "a").unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains("volume 0"), "{error}");
}
