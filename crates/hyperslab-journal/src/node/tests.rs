#![allow(clippy::unwrap_used)]

use super::*;
use crate::recover::{jobs, survey};
use crate::{Append, Header, Journal, Limits, find};
use hyperslab_core::{Datatype, Selection};
use std::fs;
use std::os::unix::fs::MetadataExt;

const RANKS: usize = 3;

fn place(rank: usize) -> NodePlace {
    NodePlace { job: Id([1; 16]), node: Id([2; 16]), rank, ranks: RANKS }
}

/// A journal of each rank, in one file.
fn journals(folder: &Path) -> Vec<Arc<Journal>> {
    let journal = |rank| {
        let files = Arc::new(NodeDirectory::join(folder, &place(rank)).unwrap());
        let header = Header::new(Id([1; 16]), rank, RANKS, "memory", "/data/x".into()).unwrap();
        Journal::create(files, header, Limits::new(64 << 20)).unwrap()
    };
    (0..RANKS).map(journal).collect()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Writes of all lengths, so that some cross blocks, by all ranks in turn.
fn append(journals: &[Arc<Journal>], writes: usize) -> Vec<crate::RecordHandle> {
    let mut all = Vec::new();
    for write in 0..writes {
        for (rank, journal) in journals.iter().enumerate() {
            let len = 10 + write * 70_001 % 900_000;
            let selection = Selection::dense(&[write as u64 * 1_000_000], &[len as u64]).unwrap();
            match journal.append("a", &Datatype::U8, &selection, &[&vec![(write + rank) as u8; len]]).unwrap() {
                Append::Logged(logged) => all.push(logged),
                other => panic!("{other:?}"),
            }
        }
    }
    all
}

#[test]
fn ranks_of_a_node_share_a_file_and_the_last_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut journals = journals(folder.path());
    let logged = append(&journals, 20);
    let files = names(folder.path());
    assert_eq!(files.iter().filter(|name| name.ends_with(ENDING)).count(), 1, "{files:?}");
    assert_eq!(files.len(), RANKS + 1, "one head for each rank: {files:?}");
    for (number, write) in logged.iter().enumerate() {
        let mut found = vec![0; write.len() as usize];
        write.read_into(&mut found).unwrap();
        assert!(found.iter().all(|byte| *byte as usize == number / RANKS + number % RANKS));
    }
    let node = folder.path().join(place(0).name());
    let before = fs::metadata(&node).unwrap().blocks();
    logged.iter().for_each(|write| write.done());
    drop(logged);
    journals.iter().for_each(|journal| journal.checkpoint().unwrap());
    let after = fs::metadata(&node).unwrap().blocks();
    assert!(after * 4 < before, "room is given back: {before} {after}");
    for left in (0..RANKS).rev() {
        journals.pop();
        assert_eq!(names(folder.path()).is_empty(), left == 0, "{left}");
    }
}

#[test]
fn what_dead_ranks_left_is_found_while_another_lives() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = journals(folder.path());
    drop(append(&all, 5));
    let living = all.pop().unwrap();
    drop(all);
    let files: Arc<dyn JournalStorage> = Arc::new(NodeDirectory::open(folder.path()).unwrap());
    let found = find(&*files).unwrap();
    assert_eq!(found.len(), RANKS);
    let left = survey(&files, false).unwrap();
    assert_eq!(left.iter().filter(|left| left.writes == 5).count(), RANKS - 1, "{left:?}");
    drop(left);
    // A cut in the last block of a rank is the end of its log.
    let shared = NodeFile::look_into(
        Arc::new(Directory::open(folder.path()).unwrap()),
        fs::File::options().read(true).write(true).open(folder.path().join(place(0).name())).unwrap(),
        "",
    );
    let segments = shared.scan().unwrap();
    assert_eq!(segments.len(), 2 * RANKS, "records and data of each: {segments:?}");
    let blocks: Vec<u64> = segments.values().flatten().copied().collect();
    assert_eq!(blocks.iter().collect::<std::collections::BTreeSet<_>>().len(), blocks.len(), "no block is used twice");
    drop(living);
    assert_eq!(jobs(survey(&files, false).unwrap()).0.len(), 1);
    let found = find(&*files).unwrap();
    for journal in &found {
        journal.remove(&*files).unwrap();
    }
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
}

#[test]
fn a_file_of_nonsense_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let mut seed = 1u64;
    let bytes: Vec<u8> = (0..3 * block::BLOCK + 77)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 40) as u8
        })
        .collect();
    let path = folder.path().join(format!("hyperslab-nonsense{ENDING}"));
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // And a long one of nothing.
    let hole = fs::File::create(folder.path().join(format!("hyperslab-hole{ENDING}"))).unwrap();
    hole.set_len(1 << 43).unwrap();
    hole.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let files = NodeDirectory::open(folder.path()).unwrap();
    assert!(!files.list().unwrap().iter().any(|name| crate::file_names::is_segment(name)));
    assert!(find(&files).unwrap().is_empty());
}
