//! Extents and coordinates: up to 32 dimensions, products checked for overflow.

use crate::{Error, Result};
use smallvec::SmallVec;

/// Extents or coordinates, slowest dimension first. Up to four stay off the heap.
pub type Dims = SmallVec<[u64; 4]>;

/// The most dimensions an array may have (the limit of HDF5 and of numpy before 2.0).
pub const MAX_RANK: usize = 32;

/// The number of elements of `shape`; 1 for a scalar. Refuses too many dimensions and overflow.
pub fn element_count(shape: &[u64]) -> Result<u64> {
    if shape.len() > MAX_RANK {
        return Err(Error::invalid(
            "check shape",
            format!("{} dimensions; at most {MAX_RANK} are possible", shape.len()),
        ));
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1u64, |n, &d| n.checked_mul(d))
        .ok_or_else(|| Error::invalid("check shape", format!("{} has more than 2^64 elements", display(shape))))
}

/// The bytes of an array of `shape` with elements of `element` bytes, checked to fit in an `i64` file offset.
pub fn byte_count(shape: &[u64], element: u64) -> Result<u64> {
    element_count(shape)?.checked_mul(element).filter(|&n| n <= i64::MAX as u64).ok_or_else(|| {
        Error::invalid("check shape", format!("{} elements of {element} bytes exceed 2^63 bytes", display(shape)))
    })
}

/// Elements to skip for one step in each dimension (row-major).
/// The shape must have passed [`element_count`].
pub fn pitches(shape: &[u64]) -> Dims {
    let mut pitch = 1u64;
    let mut out: Dims = shape
        .iter()
        .rev()
        .map(|&d| {
            let p = pitch;
            pitch = pitch.wrapping_mul(d);
            p
        })
        .collect();
    out.reverse();
    out
}

/// `64x32x8`, or `scalar`.
pub fn display(dims: &[u64]) -> String {
    if dims.is_empty() {
        return "scalar".into();
    }
    dims.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_checked() {
        assert_eq!(element_count(&[]).unwrap(), 1);
        assert_eq!(element_count(&[3, 4]).unwrap(), 12);
        assert_eq!(element_count(&[u64::MAX, 0, 5]).unwrap(), 0);
        assert!(element_count(&[u64::MAX, 2]).is_err());
        assert!(element_count(&[1; 33]).is_err());
        assert!(byte_count(&[1 << 61], 8).is_err());
    }

    #[test]
    fn pitches_are_row_major() {
        assert_eq!(pitches(&[2, 3, 4]).as_slice(), [12, 4, 1]);
    }
}
