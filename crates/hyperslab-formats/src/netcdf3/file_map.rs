//! Where the bytes of a classic NetCDF file lie: it follows from the header.

use super::arrays::Array;
use super::header_file;
use crate::file_map::{FileMap, FilePiece, MappedArray};
use hyperslab_core::{Dims, Error, Result};
use std::fs::File;
use std::path::Path;

/// The map of the file at `path`.
pub(crate) fn file_map(path: &Path) -> Result<FileMap> {
    let fail = |cause| Error::io("map file", cause).target(path.display());
    let file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let (bytes, _) = header_file::load(path, &file)?;
    let header = header_file::parse(path, &bytes, size)?.header;
    let metadata = bytes.len() as u64;
    let mut map = FileMap { size, metadata: Some(metadata), ..FileMap::default() };
    map.add(FilePiece { start: 0, len: metadata, array: None, origin: Dims::new() })?;
    for variable in &header.variables {
        let array = Array::of(&header, variable);
        let mut block = array.spec(&header, variable).shape;
        let (number, len) = (Some(map.arrays.len()), header.inner_bytes(variable));
        let mut origin = Dims::from_elem(0, block.len());
        let records = header.has_records(variable);
        if records {
            block[0] = 1;
        }
        map.arrays.push(MappedArray { name: array.name.clone(), block, plain: true });
        for record in 0..if records { header.records } else { 1 } {
            if records {
                origin[0] = record;
            }
            let start = variable.begin + if records { record * header.record_size() } else { 0 };
            map.add(FilePiece { start, len, array: number, origin: origin.clone() })?;
        }
    }
    Ok(map.sorted())
}
