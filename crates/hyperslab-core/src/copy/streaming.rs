//! Large copies of long runs past the cache.
//!
//! A copy larger than the cache gains nothing from leaving its result there, and pays for it: an ordinary store first
//! reads the line it overwrites. Non-temporal stores do not. And one core has more memory traffic under way when it
//! follows several streams, so runs of a few pages are copied in lanes, a cache line of each in turn.

/// Copies of at least this many bytes go past the cache; smaller ones may be wanted there by whoever comes next.
pub(super) const STREAM_FROM: usize = 32 << 20;

/// Equal runs at regular distances, in both buffers.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) source: *const u8,
    pub(super) source_step: usize,
    pub(super) target: *mut u8,
    pub(super) target_step: usize,
    pub(super) count: usize,
    pub(super) len: usize,
}

/// Copies the first runs past the cache and returns how many; the others are for ordinary copying.
/// Takes none where it would not be faster.
///
/// # Safety
/// Every run of the grid must be readable in the source and writable in the target, without overlap between the two
/// or between the runs of the target.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn copy_streaming(_grid: Grid) -> usize {
    0
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::copy_streaming;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::Grid;
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    const LINE: usize = 64;
    // The numbers below were found by trying a few on one machine (AMD Zen 3); others may prefer others.
    /// Runs from this length are copied in lanes.
    const LANES_FROM: usize = 2048;
    /// How far apart lanes are. Runs of 64 KiB in lanes were several times slower than one after the other.
    const APART: usize = 16 << 10;
    const LANES: usize = 4;

    /// Copies the first runs past the cache and returns how many; the others are for ordinary copying.
    /// Takes none where it would not be faster.
    ///
    /// # Safety
    /// Every run of the grid must be readable in the source and writable in the target, without overlap between the
    /// two or between the runs of the target.
    pub(in crate::copy) unsafe fn copy_streaming(grid: Grid) -> usize {
        if grid.len < shortest_run(&grid) {
            return 0;
        }
        let step = grid.source_step.max(grid.target_step);
        // SAFETY: as the caller promises.
        let done = unsafe {
            if grid.len >= LANES_FROM && step <= APART {
                copy_in_lanes::<LANES>(grid, APART / step)
            } else {
                copy_in_lanes::<1>(grid, 1)
            }
        };
        // Non-temporal stores are not ordered with later ones; whoever is told of this copy must see it.
        // SAFETY: sfence exists on every x86-64.
        unsafe { _mm_sfence() };
        done
    }

    /// From which length runs gain. A line that a run covers in part is stored the ordinary way, so short runs need
    /// whole lines. Where the target has no gaps, runs of 256 and 1024 bytes gained nothing reliable when measured.
    fn shortest_run(grid: &Grid) -> usize {
        if grid.target_step == grid.len {
            LANES_FROM
        } else if grid.target.align_offset(LINE) == 0 && grid.target_step.is_multiple_of(LINE) {
            4 * LINE
        } else {
            8 * LINE
        }
    }

    /// Copies runs in `N` lanes of `per_lane` runs, as long as all lanes are full.
    ///
    /// # Safety
    /// As for [`copy_streaming`].
    unsafe fn copy_in_lanes<const N: usize>(grid: Grid, per_lane: usize) -> usize {
        let mut first = 0;
        while grid.count - first >= N * per_lane {
            for i in 0..per_lane {
                let lanes: [(*const u8, *mut u8); N] = std::array::from_fn(|lane| {
                    let run = first + lane * per_lane + i;
                    // SAFETY: run < count, and every run lies inside both buffers, as the caller promises.
                    unsafe { (grid.source.add(run * grid.source_step), grid.target.add(run * grid.target_step)) }
                });
                // SAFETY: each lane is a whole run, and no two runs of the target overlap.
                unsafe { copy_runs(lanes, grid.len) };
            }
            first += N * per_lane;
        }
        first
    }

    /// Copies one run per lane, line by line in turn.
    ///
    /// # Safety
    /// `len` bytes must be readable and writable at the lanes' ends, without overlap of any two.
    #[inline]
    unsafe fn copy_runs<const N: usize>(mut lanes: [(*const u8, *mut u8); N], len: usize) {
        let mut left = [len; N];
        for ((from, to), left) in lanes.iter_mut().zip(&mut left) {
            // What comes before the first whole line of the target.
            let head = to.align_offset(LINE).min(len);
            // SAFETY: `head` bytes are inside the run.
            unsafe {
                std::ptr::copy_nonoverlapping(*from, *to, head);
                (*from, *to) = (from.add(head), to.add(head));
            }
            *left -= head;
        }
        let common = left.iter().min().map_or(0, |shortest| shortest / LINE);
        for line in 0..common {
            for (from, to) in lanes {
                // SAFETY: `common` lines are inside every lane; `to` is at the start of a line.
                unsafe { copy_line(from.add(line * LINE), to.add(line * LINE)) };
            }
        }
        let done = common * LINE;
        for ((from, to), left) in lanes.into_iter().zip(left) {
            // SAFETY: what is left of the run after the head and the common lines.
            unsafe { std::ptr::copy_nonoverlapping(from.add(done), to.add(done), left - done) };
        }
    }

    /// Copies one cache line past the cache.
    ///
    /// # Safety
    /// 64 bytes must be readable at `from` and writable at `to`, which is a multiple of 16.
    #[inline]
    unsafe fn copy_line(from: *const u8, to: *mut u8) {
        let (from, to) = (from.cast::<__m128i>(), to.cast::<__m128i>());
        // SAFETY: four times 16 bytes, read unaligned and written aligned, as the caller promises. SSE2 is part of
        // every x86-64.
        unsafe {
            let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
            for (i, part) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(i), part);
            }
        }
    }
}
