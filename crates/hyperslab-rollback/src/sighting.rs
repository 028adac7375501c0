//! What the journaling process last saw of its file, so that a later change by another program is noticed whenever it came.

use crate::io::{read_up_to, write_all};
use crate::journal::HEAD;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Bytes of the slot, behind the head of the journal.
pub const SLOT: usize = 64;
const MAGIC: [u8; 8] = *b"SEENFILE";
const WRITING: u64 = 1;
const QUIET: u64 = 0;
const CHECKSUM: usize = SLOT - 4;

/// File systems of one machine, where the kernel sets a file's time when a write is made and not later (`statfs(2)`).
const LOCAL: [u64; 8] = [
    0xEF53,      // ext2, 3, 4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0x794C_7630, // overlay
];

/// Time of the last change and length of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileSighting {
    seconds: i64,
    nanoseconds: i64,
    length: u64,
}

impl FileSighting {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        Ok(Self { seconds: about.mtime(), nanoseconds: about.mtime_nsec(), length: about.len() })
    }
}

/// Whether sightings of a file mean anything.
pub(crate) fn are_exact(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|about| LOCAL.contains(&(about.f_type as u64 & 0xFFFF_FFFF)))
}

/// Writes into a journal what was seen; none while writes are under way, after which nothing is known.
pub(crate) fn write(journal: &File, seen: Option<FileSighting>) -> io::Result<()> {
    let mut bytes = [0; SLOT];
    bytes[..8].copy_from_slice(&MAGIC);
    let state = if seen.is_some() { QUIET } else { WRITING };
    bytes[8..16].copy_from_slice(&state.to_le_bytes());
    if let Some(seen) = seen {
        bytes[16..24].copy_from_slice(&seen.seconds.to_le_bytes());
        bytes[24..32].copy_from_slice(&seen.nanoseconds.to_le_bytes());
        bytes[32..40].copy_from_slice(&seen.length.to_le_bytes());
        bytes[40..56].copy_from_slice(&this_start());
    }
    let checksum = crc32c::crc32c(&bytes[..CHECKSUM]);
    bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
    write_all(journal, &bytes, HEAD as u64)
}

/// What the journal's process saw of its file after its last write; none if it was killed within one, or the machine was started
/// anew since, which may have taken back either.
pub(crate) fn read(journal: &File) -> io::Result<Option<FileSighting>> {
    let mut bytes = [0; SLOT];
    let whole = read_up_to(journal, &mut bytes, HEAD as u64)? == SLOT
        && bytes[..8] == MAGIC
        && crc32c::crc32c(&bytes[..CHECKSUM]).to_le_bytes() == bytes[CHECKSUM..];
    let number = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let start: [u8; 16] = bytes[40..56].try_into().unwrap_or_default();
    let known = whole && number(8) == QUIET && start != [0; 16] && start == this_start();
    Ok(known.then(|| FileSighting { seconds: number(16) as i64, nanoseconds: number(24) as i64, length: number(32) }))
}

/// The identity of the machine's start; zeros if it cannot be told.
fn this_start() -> [u8; 16] {
    static START: OnceLock<[u8; 16]> = OnceLock::new();
    *START.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        u128::from_str_radix(&digits, 16).unwrap_or_default().to_be_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sighting_comes_back_unless_it_is_damaged_or_of_a_write() {
        let journal = tempfile::tempfile().expect("journal");
        assert_eq!(read(&journal).expect("nothing"), None);
        let seen = FileSighting::of(&journal).expect("of");
        write(&journal, Some(seen)).expect("write");
        assert_eq!(read(&journal).expect("read"), Some(seen));
        assert_ne!(FileSighting::of(&journal).expect("of"), seen, "it grew");
        write_all(&journal, &[1], HEAD as u64 + 30).expect("damage");
        assert_eq!(read(&journal).expect("damaged"), None);
        write(&journal, None).expect("write");
        assert_eq!(read(&journal).expect("writing"), None);
    }
}
