//! What several fuzz targets need: a directory in memory, checksums that are right whatever the fuzzer changed, a child
//! process for what may die, and the contents of HDF5 files.

pub mod alone;
pub mod checksums;
pub mod hdf5_contents;
pub mod memory_files;

/// Asserts that what a decoder reads and writes again is read the same way again. What it refuses is fine.
pub fn read_again<E: std::fmt::Debug>(bytes: &[u8], read: impl Fn(&[u8]) -> Result<Vec<u8>, E>) {
    if let Ok(written) = read(bytes) {
        assert_eq!(read(&written).expect("what was written can be read"), written);
    }
}
