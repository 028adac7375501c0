//! Versions of the libraries that formats use.

use std::collections::BTreeMap;

/// Name and version of every compiled-in library.
pub fn library_versions() -> BTreeMap<String, String> {
    [
        #[cfg(feature = "hdf5")]
        ("hdf5", crate::hdf5::library_version()),
        #[cfg(feature = "mpi")]
        ("mpi", crate::mpiio::library_version()),
        #[cfg(feature = "zarr")]
        ("zarrs", zarrs::version::version_str().to_owned()),
    ]
    .into_iter()
    .map(|(name, version): (&str, String)| (name.to_owned(), version))
    .collect()
}
