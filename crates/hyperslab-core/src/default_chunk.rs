//! Default chunk shapes, shared by formats and cost models.

use crate::{ArraySpec, Dims};

/// Target chunk size.
const CHUNK_BYTES: u64 = 1 << 20;
/// Extent assumed for a growable dimension.
const GROWS_TO: u64 = 1024;

/// About 1 MiB and as close to a cube as the extents allow, so that no direction of growth or access is slow.
pub fn near_cube(spec: &ArraySpec) -> Dims {
    let mut chunk: Dims = (0..spec.shape.len())
        .map(|d| match limit(spec, d) {
            Some(limit) if limit <= spec.shape[d] => limit.max(1),
            Some(limit) => spec.shape[d].max(GROWS_TO).min(limit),
            None => spec.shape[d].max(GROWS_TO),
        })
        .collect();
    let element = u128::from(spec.dtype.size());
    let bytes = |chunk: &Dims| chunk.iter().fold(element, |n, &d| n.saturating_mul(u128::from(d)));
    while bytes(&chunk) > u128::from(CHUNK_BYTES) {
        let Some(largest) = chunk.iter_mut().rev().max_by_key(|d| **d).filter(|d| **d > 1) else { break };
        *largest = largest.div_ceil(2);
    }
    chunk
}

/// About 1 MiB of whole rows: the fastest dimensions in full, as many of the slower ones as fit.
pub fn whole_rows(spec: &ArraySpec) -> Dims {
    let mut room = (CHUNK_BYTES / spec.dtype.size()).max(1);
    let mut chunk = Dims::from_elem(1, spec.shape.len());
    for d in (0..spec.shape.len()).rev() {
        let extent = limit(spec, d).unwrap_or(if d == 0 { u64::MAX } else { spec.shape[d] }).max(1);
        chunk[d] = extent.min(room);
        room = (room / chunk[d]).max(1);
    }
    chunk
}

/// A shard halved, slowest dimension first, until a part has at most 1 MiB or cannot be halved.
pub fn part_of_shard(shard: &[u64], element: u64) -> Dims {
    let mut chunk: Dims = shard.into();
    while chunk.iter().fold(element, |n, d| n.saturating_mul(*d)) > CHUNK_BYTES {
        match chunk.iter_mut().find(|extent| **extent % 2 == 0) {
            Some(extent) => *extent /= 2,
            None => break,
        }
    }
    chunk
}

/// Clips the chunk to the maximum extents of the array.
pub fn cut_to_fixed_extents(mut chunk: Dims, spec: &ArraySpec) -> Dims {
    for (d, extent) in chunk.iter_mut().enumerate() {
        if let Some(limit) = limit(spec, d) {
            *extent = (*extent).min(limit.max(1));
        }
    }
    chunk
}

/// Whether some extent can grow.
pub fn grows(spec: &ArraySpec) -> bool {
    spec.max_shape.as_ref().is_some_and(|max| max.iter().zip(&spec.shape).any(|(m, s)| m.is_none_or(|m| m > *s)))
}

/// The largest extent of a dimension; `None` when without limit.
fn limit(spec: &ArraySpec, dimension: usize) -> Option<u64> {
    spec.max_shape.as_ref().map_or(Some(spec.shape[dimension]), |max| max[dimension])
}
