//! Default chunk shapes, shared by formats and cost models.

use crate::{ArraySpec, Dims};

use std::ops::RangeInclusive;

/// Target chunk size.
pub const CHUNK_BYTES: u64 = 1 << 20;
/// Alignments of a file that chunks are made to fit.
const FITTED_ALIGNMENTS: RangeInclusive<u64> = 64 << 10..=16 << 20;

/// The bytes that a chunk of a growing array aims at, in a file whose objects begin at multiples of `align`.
pub fn target_bytes(align: u64) -> u64 {
    if FITTED_ALIGNMENTS.contains(&align) { align } else { CHUNK_BYTES }
}

/// For an array that grows, at most `target` bytes unless one element has more: fixed dimensions in full, and as many
/// equal steps along each growing one as there is room for. Where the fixed dimensions alone are too large, one step of
/// growth, with the fixed dimensions cut into even pieces from the slowest on. A dimension that grows up to a limit
/// counts as fixed.
pub fn for_growth(spec: &ArraySpec, target: u64) -> Dims {
    let target = u128::from(target.max(1));
    let limits: Vec<Option<u64>> = (0..spec.shape.len()).map(|d| limit(spec, d).map(|limit| limit.max(1))).collect();
    let element = u128::from(spec.dtype.size().max(1));
    let fixed = limits.iter().flatten().fold(element, |bytes, &n| bytes.saturating_mul(u128::from(n)));
    let growing = limits.iter().filter(|limit| limit.is_none()).count() as u32;
    if fixed < target {
        let step = root((target / fixed) as u64, growing);
        return limits.iter().map(|limit| limit.unwrap_or(step)).collect();
    }
    let (mut left, mut chunk) = (fixed, Dims::new());
    for limit in limits {
        let Some(extent) = limit else {
            chunk.push(1);
            continue;
        };
        let pieces = left.div_ceil(target).min(u128::from(extent)) as u64;
        let cut = extent.div_ceil(pieces);
        left = left / u128::from(extent) * u128::from(cut);
        chunk.push(cut);
    }
    chunk
}

/// The largest number whose `degree`-th power is at most `n`, at least 1.
fn root(n: u64, degree: u32) -> u64 {
    let fits = |r: u64| r.checked_pow(degree).is_some_and(|power| power <= n);
    let mut root = (n as f64).powf(1.0 / f64::from(degree.max(1))) as u64;
    while root > 1 && !fits(root) {
        root -= 1;
    }
    while degree > 0 && fits(root + 1) {
        root += 1;
    }
    root.max(1)
}

/// About 1 MiB and as close to a cube as the extents allow, so that no direction of access is slow.
pub fn near_cube(spec: &ArraySpec) -> Dims {
    let mut chunk: Dims = (0..spec.shape.len()).map(|d| limit(spec, d).unwrap_or(spec.shape[d]).max(1)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datatype;

    /// `0` grows without limit.
    fn growing(dtype: &str, extents: &[u64]) -> ArraySpec {
        let mut spec = ArraySpec::new(dtype.parse().unwrap_or(Datatype::U8), extents);
        spec.max_shape = Some(extents.iter().map(|&n| (n > 0).then_some(n)).collect());
        spec
    }

    #[test]
    fn chunks_of_growing_arrays_follow_the_rule() {
        const U: u64 = 0;
        let rows: [(&str, &[u64], &[u64]); 12] = [
            ("|i1", &[U], &[1_048_576]),
            ("<f4", &[U], &[262_144]),
            ("<f8", &[U], &[131_072]),
            ("<f4", &[U, U], &[512, 512]),
            ("<f8", &[U, U, U], &[50, 50, 50]),
            ("<f4", &[U, 10], &[26_214, 10]),
            ("<f4", &[U, 1000, 1000], &[1, 250, 1000]),
            ("|i1", &[U, 10 << 20], &[1, 1_048_576]),
            ("<f4", &[U, 721, 1440], &[1, 181, 1440]),
            ("<f4", &[U, 37, 721, 1440], &[1, 1, 181, 1440]),
            ("<f8", &[100, U], &[100, 1310]),
            ("<f4", &[U, U, 100], &[51, 51, 100]),
        ];
        for (dtype, extents, expected) in rows {
            let chunk = for_growth(&growing(dtype, extents), CHUNK_BYTES);
            assert_eq!(chunk.as_slice(), expected, "{dtype} {extents:?}");
        }
    }

    #[test]
    fn chunks_of_growing_arrays_fit_an_alignment() {
        assert_eq!([1, 4096, 65536, 4 << 20, 16 << 20, 32 << 20].map(target_bytes), {
            [CHUNK_BYTES, CHUNK_BYTES, 65536, 4 << 20, 16 << 20, CHUNK_BYTES]
        });
        assert_eq!(for_growth(&growing("|u1", &[0]), target_bytes(4 << 20)).as_slice(), [4 << 20]);
    }

    #[test]
    fn unusual_arrays_get_chunks_too() {
        let mut limited = growing("|u1", &[3]);
        limited.max_shape = Some(vec![Some(7)]);
        assert_eq!(for_growth(&limited, CHUNK_BYTES).as_slice(), [7]);
        limited.max_shape = Some(vec![Some(u64::MAX)]);
        assert_eq!(for_growth(&limited, CHUNK_BYTES).as_slice(), [1 << 20]);
        assert!(for_growth(&ArraySpec::new(Datatype::U8, &[]), CHUNK_BYTES).is_empty());
        assert_eq!(for_growth(&growing("|V3000000", &[0, 5]), CHUNK_BYTES).as_slice(), [1, 1]);
        let mut wide = ArraySpec::new(Datatype::U8, &[0; 40]);
        wide.max_shape = Some(vec![None; 40]);
        assert!(for_growth(&wide, CHUNK_BYTES).iter().all(|&n| n == 1));
    }

    #[test]
    fn roots_are_exact() {
        for (n, degree, expected) in
            [(1 << 20, 1, 1 << 20), (262_144, 2, 512), (131_072, 3, 50), (125, 3, 5), (0, 2, 1)]
        {
            assert_eq!(root(n, degree), expected, "{n} {degree}");
        }
        assert_eq!(root(u64::MAX, 2), (1 << 32) - 1);
    }
}
