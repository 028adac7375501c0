//! Journals from strangers: heads, segments, records and data of any content are read or refused. No panic, no memory out of
//! proportion, no endless loop.
#![allow(clippy::unwrap_used)]

#[path = "../../hyperslab-bench/src/fuzz/memory.rs"]
mod memory;

use hyperslab_core::{Datatype, Selection};
use hyperslab_journal::recover::survey;
use hyperslab_journal::{Append, Directory, Header, Id, Journal, JournalStorage, Limits, find};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What reading needs for itself, whatever is in the files.
const MOST_MEMORY: usize = 8 << 20;
const MOST_TIME: Duration = Duration::from_secs(20);
/// Bytes of a segment's head, of a record before its body, and of a checksum.
const SEGMENT: usize = 60;
const FIXED: usize = 16;
const CHECKSUM: usize = 4;

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 8
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// A file of a journal: its name and what is in it.
type Content = (String, Vec<u8>);

/// A journal of several segments, with records of all kinds.
fn sample(folder: &Path) -> (Id, Vec<Content>) {
    let files: Arc<dyn JournalStorage> = Arc::new(Directory::open(folder).unwrap());
    let header = Header::new(Id([7; 16]), 0, 2, "posix", "/somewhere/x".into()).unwrap();
    let id = header.journal;
    let journal = Journal::create(files, header, Limits { segment: 20_000, ..Limits::new(1 << 20) }).unwrap();
    let particle = Datatype::packed_compound([("id", Datatype::I32), ("mass", Datatype::F64)]).unwrap();
    let mut kept = Vec::new();
    for n in 0..12u64 {
        let (dtype, selection) = match n % 3 {
            0 => (particle.clone(), Selection::strided(&[1, n], &[4, 3], &[2, 3], &[2, 1]).unwrap()),
            1 => (Datatype::Opaque(1), Selection::dense(&[n], &[17_000]).unwrap()),
            _ => {
                let corners = [[0u64, n], [9, 9 + n]].map(|at| Selection::dense(&at, &[1, 1]).unwrap());
                (Datatype::F32, corners[0].union_with(&corners[1]).unwrap())
            }
        };
        let bytes = vec![n as u8 + 1; (selection.len() * dtype.size()) as usize];
        match journal.append(["a", "b/c", "d"][n as usize % 3], &dtype, &selection, &[&bytes]).unwrap() {
            Append::Logged(logged) => kept.push(logged),
            other => panic!("{other:?}"),
        }
        if n == 5 {
            kept[0].done();
            journal.checkpoint().unwrap();
        }
    }
    drop(journal);
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut files: Vec<Content> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files.iter().for_each(|(name, _)| fs::remove_file(folder.join(name)).unwrap());
    (id, files)
}

/// Changes some bytes, or the length.
fn mutate(bytes: &mut Vec<u8>, from: usize, dice: &mut Dice) {
    if bytes.len() <= from {
        return;
    }
    let at = from + dice.below(bytes.len() - from);
    match dice.below(8) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[at] = dice.next() as u8,
        2 => {
            // A number at the edge of what it can be.
            let edge =
                [0u64, 1, u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32, u64::from(u32::MAX), 32 << 20][dice.below(8)];
            let width = [2, 4, 8][dice.below(3)].min(bytes.len() - at);
            bytes[at..at + width].copy_from_slice(&edge.to_le_bytes()[..width]);
        }
        3 => bytes.truncate(at),
        4 => {
            let more: Vec<u8> = (0..dice.below(64)).map(|_| dice.next() as u8).collect();
            drop(bytes.splice(at..at, more));
        }
        5 => {
            let end = (at + dice.below(64)).min(bytes.len());
            let copy = bytes[at..end].to_vec();
            drop(bytes.splice(at..at, copy));
        }
        6 => {
            let end = (at + dice.below(64)).min(bytes.len());
            bytes[at..end].fill(0);
        }
        _ => {
            let end = (at + dice.below(64)).min(bytes.len());
            drop(bytes.drain(at..end));
        }
    }
}

fn put_checksum(bytes: &mut [u8], seed: u32) {
    if let Some(end) = bytes.len().checked_sub(CHECKSUM) {
        let crc = crc32c::crc32c_append(seed, &bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&crc);
    }
}

/// Changes the content of a head, and makes its length and checksum right.
fn mutate_head(bytes: &mut Vec<u8>, dice: &mut Dice) {
    mutate(bytes, 8, dice);
    if bytes.len() >= 20 {
        let len = (bytes.len() as u32).to_le_bytes();
        bytes[12..16].copy_from_slice(&len);
        put_checksum(bytes, 0);
    }
}

/// Changes one record, or the head of a segment, and makes the checksums right.
fn mutate_record(bytes: &mut Vec<u8>, id: &Id, segment: u64, dice: &mut Dice) {
    let seed = crc32c::crc32c_append(crc32c::crc32c(&id.0), &segment.to_le_bytes());
    if dice.below(8) == 0 {
        let mut head = bytes[..SEGMENT].to_vec();
        mutate(&mut head, 8, dice);
        put_checksum(&mut head, 0);
        drop(bytes.splice(..SEGMENT, head));
        return;
    }
    // Where records begin.
    let mut places = Vec::new();
    let mut at = SEGMENT;
    while let Some(len) = bytes.get(at..at + 4) {
        let len = u32::from_le_bytes(len.try_into().unwrap()) as usize;
        let Some(record) = bytes.get(at..at + len).filter(|record| record.len() >= FIXED + CHECKSUM) else { break };
        places.push((at, len));
        at += len;
        if record[4] == 2 && record[20] == 0 {
            at += u64::from_le_bytes(record[32..40].try_into().unwrap()) as usize + 4;
        }
    }
    let (at, len) = places[dice.below(places.len())];
    let mut record = bytes[at..at + len].to_vec();
    mutate(&mut record, if dice.below(4) == 0 { 4 } else { FIXED }, dice);
    record.resize(record.len().max(FIXED + CHECKSUM), 0);
    let len = (record.len() as u32).to_le_bytes();
    record[..4].copy_from_slice(&len);
    let check = crc32c::crc32c_append(crc32c::crc32c_append(seed, &record[..6]), &record[8..FIXED]) as u16;
    record[6..8].copy_from_slice(&check.to_le_bytes());
    put_checksum(&mut record, seed);
    drop(bytes.splice(at..at + places.iter().find(|place| place.0 == at).unwrap().1, record));
}

/// Reads everything. Errors are fine. Returns the number of writes.
fn read(folder: &Path) -> u64 {
    let files: Arc<dyn JournalStorage> = Arc::new(Directory::open(folder).unwrap());
    let mut writes = 0;
    for left in survey(&files, true).unwrap() {
        writes += left.writes;
    }
    for found in find(&*files).unwrap() {
        let Ok((head, _)) = found.open(&*files) else { continue };
        let Ok(header) = found.header(&*files, &*head) else { continue };
        let mut reader = found.reader(&files, &header);
        while let Ok(Some(write)) = reader.next_write(0) {
            // As long as a file of the journal, at most.
            assert!(write.len() < 1 << 20);
            write.read_into(&mut vec![0; write.len() as usize]).unwrap();
        }
    }
    writes
}

fn fuzz(seed: u64, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (id, files) = sample(folder.path());
    for (name, bytes) in &files {
        put(folder.path(), name, bytes);
    }
    assert_eq!(read(folder.path()), 11, "the sample itself");
    let mut dice = Dice(seed | 1);
    (0..20).for_each(|_| _ = dice.next());
    let mut in_part = 0;
    for round in 0..rounds {
        let (name, good) = &files[dice.below(files.len())];
        let mut bytes = good.clone();
        for _ in 0..1 + dice.below(3) {
            let segment = name.split('.').nth(1).and_then(|number| number.parse().ok());
            match (dice.below(4), segment) {
                (1.., Some(segment))
                    if name.ends_with(".meta") && bytes.len() > SEGMENT + FIXED + CHECKSUM && bytes == *good =>
                {
                    mutate_record(&mut bytes, &id, segment, &mut dice);
                }
                (1.., None) => mutate_head(&mut bytes, &mut dice),
                _ => mutate(&mut bytes, 0, &mut dice),
            }
        }
        put(folder.path(), name, &bytes);
        let begun = Instant::now();
        let (writes, peak) = memory::peak_during(|| read(folder.path()));
        assert!(peak < MOST_MEMORY, "seed {seed}, round {round}: {peak} bytes for {name}");
        assert!(begun.elapsed() < MOST_TIME, "seed {seed}, round {round}: {:?}", begun.elapsed());
        in_part += u64::from((1..11).contains(&writes));
        put(folder.path(), name, good);
    }
    assert!(in_part as usize > rounds / 10, "{in_part} of {rounds} were read in part");
}

fn put(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    File::open(&path).unwrap().set_permissions(Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn changed_journals_are_read_or_refused() {
    (1..=4).for_each(|seed| fuzz(seed * 0x9E37_79B9, 500));
}

/// The long form: `cargo test -p hyperslab-journal --test journal_fuzz -- --ignored`.
#[test]
#[ignore = "takes minutes: cargo xtask test --long"]
fn many_changed_journals_are_read_or_refused() {
    (1000..1100).for_each(|seed| fuzz(seed * 0x9E37_79B9, 1000));
}
