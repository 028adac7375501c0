//! The journal's bytes (docs/rollback-format.md), and where a journal lies.

use crate::identity::FileIdentity;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// First bytes of a journal.
pub const MAGIC: [u8; 8] = *b"HSROLLB1";
/// Version of the form.
pub const VERSION: u32 = 2;
/// Bytes of the head; what was seen of the file follows.
pub const HEAD: usize = 80;
/// Where records begin.
pub const RECORDS: u64 = (HEAD + crate::sighting::SLOT) as u64;
/// Bytes of a record before its data.
pub const RECORD: usize = 40;
const RECORD_MAGIC: [u8; 8] = *b"oldbytes";
/// What the name of a journal ends in.
pub const SUFFIX: &str = ".hyperslab-rollback";
const CHECKSUM: usize = HEAD - 4;
const RECORD_CHECKSUM: usize = RECORD - 4;

/// State of the file at its last commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Which file.
    pub identity: FileIdentity,
    /// Its length.
    pub committed: u64,
    /// Records of another sequence are from before the commit. Begins at random.
    pub sequence: u64,
}

impl Head {
    /// Encodes the head.
    #[must_use]
    pub fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(HEAD as u32).to_le_bytes());
        bytes[16..56].copy_from_slice(&self.identity.encode());
        bytes[56..64].copy_from_slice(&self.committed.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.sequence.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM]);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a head, or says what is wrong with it.
    ///
    /// # Errors
    /// Names the first field that is not as it should be.
    pub fn decode(bytes: &[u8; HEAD]) -> Result<Self, &'static str> {
        if bytes[..8] != MAGIC {
            return Err("it does not begin as a rollback journal does");
        }
        if number(bytes, 8) as u32 != VERSION {
            return Err("it is of a version that is not known here");
        }
        if checksum(bytes, CHECKSUM) != crc32c::crc32c(&bytes[..CHECKSUM]) {
            return Err("the checksum of its head is wrong");
        }
        let identity: &[u8; FileIdentity::ENCODED] = bytes[16..56].try_into().map_err(|_| "its head is too short")?;
        let identity = FileIdentity::decode(identity).ok_or("it names no file")?;
        Ok(Self { identity, committed: number(bytes, 56), sequence: number(bytes, 64) })
    }
}

/// Old bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Sequence of the head that it belongs to.
    pub sequence: u64,
    /// Where they were.
    pub offset: u64,
    /// How many.
    pub length: u32,
    /// Their crc32c, with the head of the record before them.
    pub data_checksum: u32,
}

impl Record {
    /// The record of bytes at an offset.
    #[must_use]
    pub fn of(sequence: u64, offset: u64, data: &[u8]) -> Self {
        Self { sequence, offset, length: data.len() as u32, data_checksum: crc32c::crc32c(data) }
    }

    /// Encodes what stands before the data.
    #[must_use]
    pub fn encode(&self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..8].copy_from_slice(&RECORD_MAGIC);
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.data_checksum.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..RECORD_CHECKSUM]);
        bytes[RECORD_CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes what stands before the data; none if it is no record of this sequence.
    #[must_use]
    pub fn decode(bytes: &[u8; RECORD], sequence: u64) -> Option<Self> {
        let good = bytes[..8] == RECORD_MAGIC
            && checksum(bytes, RECORD_CHECKSUM) == crc32c::crc32c(&bytes[..RECORD_CHECKSUM])
            && number(bytes, 8) == sequence;
        let (length, data_checksum) = (checksum(bytes, 24), checksum(bytes, 28));
        good.then(|| Self { sequence, offset: number(bytes, 16), length, data_checksum })
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

fn checksum(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

/// The journal of a file: `.NAME.hyperslab-rollback` beside it. Symbolic links are followed first, so that every path to
/// the file through them finds the same journal.
#[must_use]
pub fn path_of(file: &Path) -> PathBuf {
    let file = file.canonicalize().or_else(|_| std::path::absolute(file)).unwrap_or_else(|_| file.to_owned());
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(SUFFIX);
    file.with_file_name(name)
}

/// The file that a journal of this path belongs to; none if the path is no journal's.
#[must_use]
pub fn file_of(journal: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let name = journal.file_name()?.as_bytes().strip_prefix(b".")?.strip_suffix(SUFFIX.as_bytes())?;
    (!name.is_empty()).then(|| journal.with_file_name(OsString::from_vec(name.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_and_records_come_back_and_damage_is_seen() {
        let identity = FileIdentity { device: 1, inode: 2, generation: Some([3; 16]) };
        let head = Head { identity, committed: 4, sequence: u64::MAX };
        let bytes = head.encode();
        assert_eq!(Head::decode(&bytes), Ok(head));
        let record = Record::of(5, 6, b"data");
        assert_eq!(Record::decode(&record.encode(), 5), Some(record));
        assert_eq!(Record::decode(&record.encode(), 6), None);
        for bit in 0..HEAD * 8 {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Head::decode(&wrong).is_err(), "bit {bit}");
        }
        for bit in 0..RECORD * 8 {
            let mut wrong = record.encode();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Record::decode(&wrong, 5), None, "bit {bit}");
        }
    }

    #[test]
    fn names_lead_from_file_to_journal_and_back() {
        let journal = path_of(Path::new("/no/such/a.h5"));
        assert_eq!(journal, Path::new("/no/such/.a.h5.hyperslab-rollback"));
        assert_eq!(file_of(&journal).as_deref(), Some(Path::new("/no/such/a.h5")));
        assert_eq!(file_of(Path::new("/no/such/..hyperslab-rollback")), None);
        assert_eq!(file_of(Path::new("/no/such/a.h5")), None);
    }
}
