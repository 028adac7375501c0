//! What `netcdf4` says of itself, also where libhdf5 is not compiled in.

pub(crate) mod options;
mod settings;

use crate::hdf5_entry;
use crate::registry::{Advice, Beginning, Build, CreationOrder, FormatEntry, MapFile, StoredSizes};
use hyperslab_core::storage::StorageRules;

#[cfg(feature = "hdf5")]
const BUILD: Option<Build> = Some(crate::netcdf4::build);
#[cfg(not(feature = "hdf5"))]
const BUILD: Option<Build> = None;

#[cfg(feature = "hdf5")]
const STORED_SIZES: Option<StoredSizes> = Some(crate::netcdf4::stored_sizes);
#[cfg(not(feature = "hdf5"))]
const STORED_SIZES: Option<StoredSizes> = None;

/// Paths of datasets are those of arrays, but where a dimension has the name already.
#[cfg(feature = "hdf5")]
const FILE_MAP: Option<MapFile> = Some(crate::netcdf4::file_map);
#[cfg(not(feature = "hdf5"))]
const FILE_MAP: Option<MapFile> = None;

#[cfg(feature = "hdf5")]
const CREATION_ORDER: Option<CreationOrder> = Some(crate::netcdf4::creation_order);
#[cfg(not(feature = "hdf5"))]
const CREATION_ORDER: Option<CreationOrder> = None;

/// Registry entry.
pub(crate) const ENTRY: FormatEntry = FormatEntry {
    name: "netcdf4",
    about: "NetCDF-4 files, as netCDF4-python and netcdf-c write them",
    options: options::SPECS,
    build: BUILD,
    how_to_build: "build with --features bundled-hdf5",
    extensions: &["nc", "nc4", "cdf4"],
    recognises: Some(recognises),
    describing: &["chunk", "align", "model", "fill"],
    interfaces: &["NC4"],
    storage: Some(|element| Ok(StorageRules::File(options::rules(element)?))),
    cost: Some(hdf5_entry::cost),
    advice: Advice {
        usual: false,
        forms: &[&[], &[("plane", "on")]],
        codecs: &[&[("shuffle", "yes"), ("deflate", "1")], &[("shuffle", "yes"), ("deflate", "6")]],
        cache_matters: hdf5_entry::cache_matters,
        remarks: hdf5_entry::ENTRY.advice.remarks,
        settings: settings::settings,
    },
    stored_sizes: STORED_SIZES,
    file_map: FILE_MAP,
    creation_order: CREATION_ORDER,
    join_parts: hdf5_entry::ENTRY.join_parts,
};

/// An HDF5 file that says that NetCDF wrote it, or has dimension scales.
fn recognises(file: &Beginning) -> bool {
    #[cfg(feature = "hdf5")]
    let has_dimensions = || crate::netcdf4::is_netcdf(&file.path).unwrap_or(false);
    #[cfg(not(feature = "hdf5"))]
    let has_dimensions = || false;
    hdf5_entry::recognises(file) && has_dimensions()
}
