//! Strided copy: the innermost loop, equal runs at a fixed stride from one buffer to another.

use super::nontemporal::{Grid, copy_nontemporal};
use crate::{DisjointWriteBuffer, Row};

/// Whether a copy should leave its result in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Through {
    /// Ordinary stores.
    Cache,
    /// Non-temporal stores where that is faster: the whole transfer is larger than any cache.
    Memory,
}

/// Copies `from.count` runs of `from.len` bytes. Both rows must have the same count and length and lie inside their
/// buffers; otherwise it panics before any byte is copied.
#[inline]
pub(crate) fn copy_rows(source: &[u8], from: Row, target: &mut [u8], to: Row, through: Through) {
    // SAFETY: the target is borrowed uniquely.
    unsafe { copy_rows_shared(source, from, DisjointWriteBuffer::new(target), to, through) }
}

/// As [`copy_rows`], to a buffer that other threads write concurrently.
///
/// # Safety
/// No other thread may access the bytes of the target's row during the call.
#[inline]
pub(crate) unsafe fn copy_rows_shared(
    source: &[u8],
    from: Row,
    target: DisjointWriteBuffer<'_>,
    to: Row,
    through: Through,
) {
    assert!(from.count == to.count && from.len == to.len, "rows differ");
    if from.count == 0 || from.len == 0 {
        return;
    }
    assert!(lies_inside(&from, source.len()) && lies_inside(&to, target.len()), "a row exceeds its buffer");
    // Every offset below fits in a usize, since it lies inside a buffer; a stride is not used when there is one run.
    let (count, len) = (from.count as usize, from.len as usize);
    let step = |row: &Row| if count == 1 { len } else { row.stride as usize };
    let (source_step, target_step) = (step(&from), step(&to));
    // SAFETY: the rows were just checked to end inside their buffers.
    let (source, target) =
        unsafe { (source.as_ptr().add(from.offset as usize), target.start().add(to.offset as usize)) };
    let grid = Grid { source, source_step, target, target_step, count, len };
    // SAFETY: run i occupies i * step .. + len of either row, which increases with i and was just checked to end inside
    // the buffer for the last i. The buffers do not overlap, since the target was borrowed uniquely.
    unsafe { copy_grid(grid, through) }
}

/// # Safety
/// Every run of the grid must be readable in the source and writable in the target, without overlap between the two.
unsafe fn copy_grid(grid: Grid, through: Through) {
    let Grid { source, source_step, target, target_step, count, len } = grid;
    // SAFETY: as the caller promises; runs of the target do not overlap where non-temporal stores need it.
    unsafe {
        if source_step == len && target_step == len {
            std::ptr::copy_nonoverlapping(source, target, count * len);
            return;
        }
        match len {
            1 => copy_fixed::<1>(grid),
            2 => copy_fixed::<2>(grid),
            4 => copy_fixed::<4>(grid),
            8 => copy_fixed::<8>(grid),
            16 => copy_fixed::<16>(grid),
            _ if through == Through::Memory && target_step >= len && copy_nontemporal(grid) => {}
            _ => copy_any(grid),
        }
    }
}

/// Whether the row ends inside a buffer of `size` bytes.
#[inline]
fn lies_inside(row: &Row, size: usize) -> bool {
    (row.count - 1)
        .checked_mul(row.stride)
        .and_then(|n| n.checked_add(row.offset))
        .and_then(|n| n.checked_add(row.len))
        .is_some_and(|end| end <= size as u64)
}

/// Copies runs of constant length: one unaligned load and store each.
///
/// # Safety
/// As for [`copy_grid`], with `N` for the length.
unsafe fn copy_fixed<const N: usize>(grid: Grid) {
    for i in 0..grid.count {
        // SAFETY: run i lies inside both buffers, as the caller promises; arrays of bytes need no alignment.
        unsafe {
            let value = grid.source.add(i * grid.source_step).cast::<[u8; N]>().read_unaligned();
            grid.target.add(i * grid.target_step).cast::<[u8; N]>().write_unaligned(value);
        }
    }
}

/// Copies runs of any length.
///
/// # Safety
/// As for [`copy_grid`].
unsafe fn copy_any(grid: Grid) {
    for i in 0..grid.count {
        // SAFETY: run i lies inside both buffers, as the caller promises.
        unsafe {
            let (from, to) = (grid.source.add(i * grid.source_step), grid.target.add(i * grid.target_step));
            std::ptr::copy_nonoverlapping(from, to, grid.len);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(source: &[u8], from: Row, target: &mut [u8], to: Row) {
        for i in 0..from.count {
            for b in 0..from.len {
                target[(to.offset + i * to.stride + b) as usize] = source[(from.offset + i * from.stride + b) as usize];
            }
        }
    }

    proptest! {
        #[test]
        fn rows_match_a_naive_loop(
            len in prop_oneof![0u64..40, 250u64..600, prop::sample::select(vec![1, 2, 4, 8, 16, 64, 256, 2048, 3000, 9000])],
            count in 0u64..40,
            (from_gap, to_gap) in prop_oneof![
                (0u64..70, 0u64..70),
                (Just(0u64), prop::sample::select(vec![0u64, 64, 256, 2048])),
                (prop::sample::select(vec![0u64, 64, 256, 2048]), Just(0u64)),
            ],
            (from_offset, to_offset) in (0u64..130, 0u64..130),
            memory in any::<bool>(),
        ) {
            let from = Row { offset: from_offset, len, count, stride: len + from_gap };
            let to = Row { offset: to_offset, len, count, stride: len + to_gap };
            let source: Vec<u8> = (0..from_offset + count * from.stride).map(|i| ((i * 131) >> 3) as u8).collect();
            let mut target = vec![0x77; (to_offset + count * to.stride) as usize];
            let mut expected = target.clone();
            naive(&source, from, &mut expected, to);
            copy_rows(&source, from, &mut target, to, if memory { Through::Memory } else { Through::Cache });
            prop_assert!(target == expected);
        }
    }

    #[test]
    fn rows_outside_their_buffer_are_caught() {
        let row = |offset, len, count, stride| Row { offset, len, count, stride };
        for (from, to) in [
            (row(0, 4, 4, 5), row(0, 4, 4, 4)),
            (row(0, 4, 4, 4), row(1, 4, 4, 4)),
            (row(u64::MAX, 4, 1, 4), row(0, 4, 1, 4)),
            (row(0, 4, u64::MAX, u64::MAX), row(0, 4, u64::MAX, 4)),
            (row(0, 4, 2, 4), row(0, 4, 3, 4)),
        ] {
            let caught = std::panic::catch_unwind(|| copy_rows(&[1; 16], from, &mut [0; 16], to, Through::Cache));
            assert!(caught.is_err());
        }
    }
}
