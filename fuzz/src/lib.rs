//! What several fuzz targets need: a directory in memory, and checksums that are right whatever the fuzzer changed.

pub mod checksums;
pub mod memory_files;

/// Asserts that what a decoder reads and writes again is read the same way again. What it refuses is fine.
pub fn read_again<E: std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<Vec<u8>, E>) {
    if let Ok(written) = read(bytes) {
        assert_eq!(read(&written).expect("what was written can be read"), written);
    }
}
