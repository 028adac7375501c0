//! The blob layout: what a rank has of a variable lies together, and the file says where each piece belongs.

use super::decomposition::{Decomposition, Run};
use hyperslab_core::workload::ArrayDeclaration;
use hyperslab_core::{ArraySpec, Datatype, Error, Fill, Result};

/// The most bytes of maps that a file of blobs holds here: they are part of the workload.
const MOST_BYTES: usize = 64 << 20;
/// The arrays that describe a map, in the order in which they are declared and written.
pub const TABLES: [&str; 5] = ["nreqs", "blob_start", "blob_count", "offsets", "lengths"];

/// The requests of each rank, in the order of its buffer.
fn blobs(map: &Decomposition, ranks: usize) -> Vec<Vec<Run>> {
    let of = |rank| map.requests[map.share(rank, ranks)].iter().flat_map(|requests| requests.data.clone()).collect();
    (0..ranks).map(of).collect()
}

/// First element and number of elements of the blob of each rank.
pub fn places(map: &Decomposition, ranks: usize) -> Vec<(u64, u64)> {
    let mut start = 0;
    let of = |rank| {
        let len = map.requests[map.share(rank, ranks)].iter().map(super::Requests::len).sum();
        let place = (start, len);
        start += len;
        place
    };
    (0..ranks).map(of).collect()
}

/// Five arrays for each map: requests of each blob, first element and number of elements of each, and offset and length of each
/// request, a row per blob.
pub fn declarations(maps: &[Decomposition], ranks: usize) -> Result<Vec<ArrayDeclaration>> {
    let mut all = Vec::with_capacity(maps.len() * TABLES.len());
    let mut bytes = 0;
    for map in maps {
        let blobs = blobs(map, ranks);
        let places = places(map, ranks);
        let width = blobs.iter().map(Vec::len).max().unwrap_or(0).max(1);
        bytes += (3 + 2 * width) * ranks * 8;
        if bytes > MOST_BYTES {
            return Err(Error::invalid("plan E3SM", "the maps are too large for a file of blobs")
                .hint("use a map of fewer ranks, or the layout log"));
        }
        let mut declare = |shape: &[u64], numbers: Vec<u64>| {
            let literal = numbers.into_iter().flat_map(|number| (number as i64).to_le_bytes()).collect();
            let spec = ArraySpec::new("<i8".parse()?, shape);
            all.push(ArrayDeclaration { spec, fill: Fill::Literal(literal) });
            Ok::<(), Error>(())
        };
        let row = |of: fn(&Run) -> u64| {
            let cell = move |blob: &Vec<Run>, at: usize| blob.get(at).map_or(0, of);
            blobs.iter().flat_map(|blob| (0..width).map(move |at| cell(blob, at)).collect::<Vec<_>>()).collect()
        };
        let count = ranks as u64;
        declare(&[count], blobs.iter().map(|blob| blob.len() as u64).collect())?;
        declare(&[count], places.iter().map(|place| place.0).collect())?;
        declare(&[count], places.iter().map(|place| place.1).collect())?;
        declare(&[count, width as u64], row(|run| run.0))?;
        declare(&[count, width as u64], row(|run| run.1))?;
    }
    debug_assert!(all.iter().all(|array| array.spec.dtype == Datatype::I64));
    Ok(all)
}
