//! The superblock of HDF5 files, as far as a killed writer leaves it in a state that libhdf5 refuses.

use crate::io::{read_up_to, write_all};
use std::fs::File;
use std::io;

const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// A writer has the file open; a writer with concurrent readers has.
const OPEN_MARKS: u8 = 0x01 | 0x04;
const LONGEST: usize = 128;

/// A superblock and where it is.
#[derive(Debug)]
struct Superblock {
    at: u64,
    bytes: Vec<u8>,
}

impl Superblock {
    /// Looks at offsets 0, 512, 1024, and so on, as libhdf5 does; none if the file is not HDF5.
    fn find(file: &File) -> io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let mut at = 0;
        while at < length {
            let mut bytes = vec![0; LONGEST];
            let read = read_up_to(file, &mut bytes, at)?;
            bytes.truncate(read);
            if bytes.starts_with(&SIGNATURE) {
                return Ok(Some(Self { at, bytes }));
            }
            at = if at == 0 { 512 } else { at.saturating_mul(2) };
        }
        Ok(None)
    }

    fn version(&self) -> Option<u8> {
        self.bytes.get(8).copied()
    }

    /// A number of as many bytes as addresses have.
    fn address(&self, at: usize, size: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at + size).filter(|_| size <= 8)?;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Base address and end of file address.
    fn addresses(&self) -> Option<(u64, u64)> {
        let (size, base, end) = match self.version()? {
            version @ (0 | 1) => {
                let size = usize::from(*self.bytes.get(13)?);
                let base = if version == 0 { 24 } else { 28 };
                (size, base, base + 2 * size)
            }
            2 | 3 => {
                let size = usize::from(*self.bytes.get(9)?);
                (size, 12, 12 + 2 * size)
            }
            _ => return None,
        };
        Some((self.address(base, size)?, self.address(end, size)?))
    }

    /// Where the checksum is, of superblocks that have one.
    fn checksum_at(&self) -> Option<usize> {
        match self.version()? {
            2 | 3 => Some(12 + 4 * usize::from(*self.bytes.get(9)?)),
            _ => None,
        }
    }

    fn has_good_checksum(&self, at: usize) -> bool {
        let stored = self.bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
        stored.is_some_and(|stored| stored == lookup3(&self.bytes[..at]))
    }
}

/// Clears the marks by which libhdf5 knows files that are open for writing, and refuses them. Returns whether it did.
/// Only for files whose writer is known to be gone.
///
/// # Errors
/// Fails if the file cannot be read or written.
pub fn clear_marks(file: &File) -> io::Result<bool> {
    let Some(mut superblock) = Superblock::find(file)? else { return Ok(false) };
    let Some(at) = superblock.checksum_at() else { return Ok(false) };
    if !superblock.has_good_checksum(at) || superblock.bytes[11] & OPEN_MARKS == 0 {
        return Ok(false);
    }
    superblock.bytes[11] &= !OPEN_MARKS;
    let checksum = lookup3(&superblock.bytes[..at]).to_le_bytes();
    superblock.bytes[at..at + 4].copy_from_slice(&checksum);
    write_all(file, &superblock.bytes[..at + 4], superblock.at)?;
    Ok(true)
}

/// Extends a file to the end that its superblock names: libhdf5 refuses files that are shorter. Returns by how many bytes.
///
/// # Errors
/// Fails if the file cannot be read or extended.
pub fn extend_to_end(file: &File) -> io::Result<u64> {
    let Some(superblock) = Superblock::find(file)? else { return Ok(0) };
    if superblock.checksum_at().is_some_and(|at| !superblock.has_good_checksum(at)) {
        return Ok(0);
    }
    let Some((base, end)) = superblock.addresses() else { return Ok(0) };
    // A user block may have been put before the file, or cut off, since.
    let Some(end) = end.checked_sub(base).and_then(|end| end.checked_add(superblock.at)) else { return Ok(0) };
    let length = file.metadata()?.len();
    // Space that libhdf5 had not written yet: a file that lacks more than it has is another matter.
    if end <= length || end - length > length.max(1 << 30) {
        return Ok(0);
    }
    file.set_len(end)?;
    Ok(end - length)
}

/// Bob Jenkins' lookup3 `hashlittle` with initial value 0, HDF5's metadata checksum.
fn lookup3(bytes: &[u8]) -> u32 {
    let mut state = [0xdead_beef_u32.wrapping_add(bytes.len() as u32); 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        add(&mut state, block);
        mix(&mut state);
        rest = after;
    }
    if !rest.is_empty() {
        add(&mut state, rest);
        finish(&mut state);
    }
    state[2]
}

fn add(state: &mut [u32; 3], bytes: &[u8]) {
    for (at, byte) in bytes.iter().enumerate() {
        state[at / 4] = state[at / 4].wrapping_add(u32::from(*byte) << (8 * (at % 4)));
    }
}

fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, turn: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(turn);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: u32, turn: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(turn));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published values of the function.
    #[test]
    fn lookup3_gives_the_published_values() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    fn version_3(flags: u8, end: u64) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([3, 8, 8, flags]);
        for address in [0, u64::MAX, end, 48] {
            bytes.extend(address.to_le_bytes());
        }
        let checksum = lookup3(&bytes);
        bytes.extend(checksum.to_le_bytes());
        bytes
    }

    #[test]
    fn marks_are_cleared_and_the_end_is_mended() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("a");
        std::fs::write(&path, version_3(0x05, 900)).expect("write");
        let file = File::options().read(true).write(true).open(&path).expect("open");
        assert!(clear_marks(&file).expect("clear"));
        assert!(!clear_marks(&file).expect("again"));
        assert_eq!(std::fs::read(&path).expect("read"), version_3(0, 900));
        assert_eq!(extend_to_end(&file).expect("extend"), 900 - 48);
        assert_eq!(extend_to_end(&file).expect("again"), 0);
        assert_eq!(file.metadata().expect("length").len(), 900);
    }

    #[test]
    fn damaged_and_foreign_files_are_left_alone() {
        let folder = tempfile::tempdir().expect("folder");
        let mut damaged = version_3(0x05, 900);
        damaged[20] ^= 1;
        for bytes in [damaged, b"no HDF5 file".to_vec(), SIGNATURE.to_vec(), Vec::new()] {
            let path = folder.path().join("a");
            std::fs::write(&path, &bytes).expect("write");
            let file = File::options().read(true).write(true).open(&path).expect("open");
            assert!(!clear_marks(&file).expect("clear"));
            assert_eq!(extend_to_end(&file).expect("extend"), 0);
            assert_eq!(std::fs::read(&path).expect("read"), bytes);
        }
    }
}
