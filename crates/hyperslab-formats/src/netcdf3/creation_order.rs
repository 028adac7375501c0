//! In which order a classic NetCDF file lists its variables and attributes, which is that in which they were made.

use super::arrays::Array;
use super::header::CdfAttribute;
use super::header_file;
use hyperslab_core::{Error, Result};
use std::fs::File;
use std::path::Path;

/// Arrays, each with its attributes.
pub(crate) fn creation_order(path: &Path) -> Result<Vec<(String, Vec<String>)>> {
    let fail = |cause| Error::io("read creation order", cause).target(path.display());
    let file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let (bytes, _) = header_file::load(path, &file)?;
    let header = header_file::parse(path, &bytes, size)?.header;
    let names = |attributes: &[CdfAttribute]| attributes.iter().map(|attribute| attribute.name.clone()).collect();
    let mut order = vec![(String::new(), names(&header.attributes))];
    order.extend(
        header.variables.iter().map(|variable| (Array::of(&header, variable).name, names(&variable.attributes))),
    );
    Ok(order)
}
