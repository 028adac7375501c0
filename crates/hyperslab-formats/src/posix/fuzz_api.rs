//! Entry points of the fuzz targets: decode metadata, and encode it again.

use super::metadata::{ArrayMetadata, GroupMetadata, Of, decode};
use super::rank_index;
use hyperslab_core::{Error, ErrorKind, Result};
use std::path::Path;

fn written(description: &impl serde::Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(description).map_err(|cause| Error::new(ErrorKind::Io, "write description", cause.to_string()))
}

/// Metadata of an array, with its attributes.
pub fn array(bytes: &[u8]) -> Result<Vec<u8>> {
    let description: ArrayMetadata = decode(bytes, Of::Array, Path::new("array.json"))?;
    description.spec()?;
    description.attributes.values().try_for_each(|attribute| attribute.restore().map(drop))?;
    written(&description)
}

/// Metadata of a container or group, with its attributes.
pub fn group(bytes: &[u8]) -> Result<Vec<u8>> {
    let path = Path::new("hyperslab.json");
    let description: GroupMetadata = decode(bytes, Of::Container, path).or_else(|_| decode(bytes, Of::Group, path))?;
    description.attributes.values().try_for_each(|attribute| attribute.restore().map(drop))?;
    written(&description)
}

/// A line of a rank's index.
pub fn index_line(bytes: &[u8], dimensions: usize) -> Result<()> {
    rank_index::check_line(bytes, dimensions)
}
