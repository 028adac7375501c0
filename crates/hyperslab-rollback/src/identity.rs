//! Which file a log or journal belongs to: device, inode and a random generation stamp.
//!
//! An inode number is used again after its file is gone, and device numbers may differ after a restart of the machine.
//! The stamp is random and kept in an extended attribute of the file, so it names one file for good where the file system
//! has such attributes. It survives truncation: a program that makes a file anew with `O_TRUNC` keeps it, so the time of
//! the last change has to be compared as well.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::XattrFlags;
use rustix::io::Errno;

/// The extended attribute that holds the generation stamp: 16 random bytes.
pub const ATTRIBUTE: &str = "user.hyperslab.generation";

/// A file's identity at the time of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// The stamp, if the file has one.
    pub generation: Option<[u8; 16]>,
}

impl FileIdentity {
    /// Bytes of the encoded form.
    pub const ENCODED: usize = 40;

    /// The identity of an open file. Changes nothing.
    ///
    /// # Errors
    /// Fails if the file cannot be examined. A file system without extended attributes is no error.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { device: metadata.dev(), inode: metadata.ino(), generation: generation(file)? })
    }

    /// The identity of an open file, which is given a stamp first if it has none and can have one. Of several processes
    /// that stamp a file at the same time one succeeds, and all see its stamp.
    ///
    /// # Errors
    /// Fails if the file cannot be examined. A file that cannot be stamped is no error.
    pub fn stamp(file: &File) -> io::Result<Self> {
        let identity = Self::of(file)?;
        if identity.generation.is_some() {
            return Ok(identity);
        }
        match rustix::fs::fsetxattr(file, ATTRIBUTE, &random()?, XattrFlags::CREATE) {
            Ok(()) | Err(Errno::EXIST) => Self::of(file),
            // No room for it, no such attributes, or not allowed: device and inode alone identify the file.
            Err(_) => Ok(identity),
        }
    }

    /// Whether the file identified by `now` is the one that `self` was recorded of. With stamps on both sides, inode and
    /// stamp decide: device numbers are not constant. A copy has another inode. A stamp on one side only is a difference.
    #[must_use]
    pub fn matches(&self, now: &Self) -> bool {
        match (self.generation, now.generation) {
            (Some(recorded), Some(found)) => self.inode == now.inode && recorded == found,
            (None, None) => self.inode == now.inode && self.device == now.device,
            _ => false,
        }
    }

    /// Little-endian: device, inode, 1 if there is a stamp (8 bytes each), then the stamp or zeros (16 bytes).
    #[must_use]
    pub fn encode(&self) -> [u8; Self::ENCODED] {
        let mut bytes = [0; Self::ENCODED];
        bytes[..8].copy_from_slice(&self.device.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.inode.to_le_bytes());
        bytes[16..24].copy_from_slice(&u64::from(self.generation.is_some()).to_le_bytes());
        bytes[24..].copy_from_slice(&self.generation.unwrap_or_default());
        bytes
    }

    /// The identity that `encode` wrote, or none if the bytes are not of that form.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::ENCODED]) -> Option<Self> {
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let stamp: [u8; 16] = bytes[24..].try_into().ok()?;
        let generation = match (number(16)?, stamp) {
            (1, stamp) => Some(stamp),
            (0, [0, ..]) if stamp == [0; 16] => None,
            _ => return None,
        };
        Some(Self { device: number(0)?, inode: number(8)?, generation })
    }
}

/// The stamp of a file. An attribute of another length is nobody's stamp.
fn generation(file: &File) -> io::Result<Option<[u8; 16]>> {
    let mut stamp = [0; 16];
    match rustix::fs::fgetxattr(file, ATTRIBUTE, &mut stamp[..]) {
        Ok(16) => Ok(Some(stamp)),
        Ok(_) | Err(Errno::NODATA | Errno::NOTSUP | Errno::RANGE | Errno::PERM | Errno::ACCESS | Errno::NOSYS) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_stays_through_truncation_and_differs_between_files() {
        let folder = tempfile::tempdir().expect("folder");
        let first = File::create(folder.path().join("a")).expect("a");
        let second = File::create(folder.path().join("b")).expect("b");
        let stamped = FileIdentity::stamp(&first).expect("stamp");
        assert_eq!(FileIdentity::stamp(&first).expect("again"), stamped);
        assert!(!stamped.matches(&FileIdentity::stamp(&second).expect("stamp")));
        first.set_len(0).expect("truncate");
        assert!(stamped.matches(&FileIdentity::of(&first).expect("of")));
    }

    #[test]
    fn encoded_identities_come_back() {
        for generation in [None, Some([7; 16]), Some([0; 16])] {
            let identity = FileIdentity { device: 1, inode: u64::MAX, generation };
            assert_eq!(FileIdentity::decode(&identity.encode()), Some(identity));
        }
        let mut wrong = FileIdentity { device: 1, inode: 2, generation: None }.encode();
        wrong[30] = 1;
        assert_eq!(FileIdentity::decode(&wrong), None);
    }

    #[test]
    fn devices_matter_only_without_stamps() {
        let identity = |device, inode, generation| FileIdentity { device, inode, generation };
        assert!(identity(1, 2, Some([3; 16])).matches(&identity(9, 2, Some([3; 16]))));
        assert!(!identity(1, 2, Some([3; 16])).matches(&identity(1, 4, Some([3; 16]))));
        assert!(!identity(1, 2, None).matches(&identity(9, 2, None)));
        assert!(!identity(1, 2, None).matches(&identity(1, 2, Some([3; 16]))));
        assert!(!identity(1, 2, Some([3; 16])).matches(&identity(1, 2, None)));
    }
}
