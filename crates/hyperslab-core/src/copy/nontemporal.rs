//! Non-temporal copies: large copies of long runs that bypass the cache.
//!
//! Caching the result of a copy larger than the cache has no benefit, and costs: an ordinary store first reads the cache line it
//! overwrites (write-allocate). Non-temporal stores do not. Software prefetching made gathering runs with gaps faster when
//! measured, presumably because gaps defeat the hardware prefetcher.

/// Copies of at least this many bytes bypass the cache; the result of a smaller one may be read again soon.
pub(super) const STREAM_FROM: usize = 32 << 20;

/// Equal runs at a fixed stride, in both buffers.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) source: *const u8,
    pub(super) source_step: usize,
    pub(super) target: *mut u8,
    pub(super) target_step: usize,
    pub(super) count: usize,
    pub(super) len: usize,
}

/// Copies the grid with non-temporal stores and returns true, or returns false and copies nothing where that is not faster.
///
/// # Safety
/// Every run of the grid must be readable in the source and writable in the target, without overlap between the two
/// or between the runs of the target.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn copy_nontemporal(_grid: Grid) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::copy_nontemporal;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::Grid;
    use std::arch::x86_64::{
        __m128i, _MM_HINT_NTA, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128,
    };
    use std::ptr::copy_nonoverlapping;

    const LINE: usize = 64;
    /// Runs shorter than this have too few whole cache lines to gain from it.
    const SHORTEST: usize = 4 * LINE;
    /// Prefetch distance in bytes of runs: 512 to 4096 differed little on one machine (AMD EPYC).
    const AHEAD: usize = 1024;
    /// Prefetch distance in runs for the partial first and last cache lines of the target.
    const EDGES_AHEAD: usize = 4;

    /// Copies the grid with non-temporal stores and returns true, or returns false and copies nothing where that is not faster.
    ///
    /// # Safety
    /// Every run of the grid must be readable in the source and writable in the target, without overlap between the
    /// two or between the runs of the target.
    pub(in crate::copy) unsafe fn copy_nontemporal(grid: Grid) -> bool {
        if grid.len < SHORTEST {
            return false;
        }
        let whole_lines = [grid.target.addr(), grid.target_step, grid.len].iter().all(|n| n.is_multiple_of(LINE));
        // SAFETY: as the caller promises.
        unsafe {
            if whole_lines {
                copy_runs::<true>(grid);
            } else {
                copy_runs::<false>(grid);
            }
            // Non-temporal stores are weakly ordered; the fence makes them visible before any later store.
            if !cfg!(miri) {
                _mm_sfence();
            }
        }
        true
    }

    /// # Safety
    /// As for [`copy_nontemporal`]; with `WHOLE_LINES`, every run covers whole lines of the target.
    unsafe fn copy_runs<const WHOLE_LINES: bool>(grid: Grid) {
        let (runs_ahead, bytes_ahead) = (AHEAD / grid.len, AHEAD % grid.len);
        let source_of = |run: usize| grid.source.wrapping_add(run.wrapping_mul(grid.source_step));
        let target_of = |run: usize| grid.target.wrapping_add(run.wrapping_mul(grid.target_step));
        let edges = !WHOLE_LINES && grid.target_step != grid.len;
        for run in 0..grid.count {
            let (this, next) = (source_of(run + runs_ahead), source_of(run + runs_ahead + 1));
            let prefetch = |at: usize| {
                let at = at + bytes_ahead;
                let line = if at < grid.len { this.wrapping_add(at) } else { next.wrapping_add(at - grid.len) };
                // SAFETY: a prefetch of any address, even one past the buffer, has no effect but on the cache.
                unsafe { _mm_prefetch::<_MM_HINT_NTA>(line.cast()) };
            };
            if edges {
                let first = target_of(run + EDGES_AHEAD);
                // SAFETY: as above.
                unsafe {
                    _mm_prefetch::<_MM_HINT_T0>(first.cast());
                    _mm_prefetch::<_MM_HINT_T0>(first.wrapping_add(grid.len - 1).cast());
                }
            }
            // SAFETY: run < count, and every run lies inside both buffers, as the caller promises.
            unsafe { copy_run::<WHOLE_LINES>(source_of(run), target_of(run), grid.len, prefetch) };
        }
    }

    /// A non-temporal store. Under Miri, which has none, an ordinary store that checks the same address and alignment.
    ///
    /// # Safety
    /// The word must be writable at `to`, which is a multiple of its size.
    #[inline(always)]
    unsafe fn store(to: *mut __m128i, word: __m128i) {
        // SAFETY: as the caller promises; SSE2 is part of every x86-64.
        unsafe {
            if cfg!(miri) {
                to.write(word);
            } else {
                _mm_stream_si128(to, word);
            }
        }
    }

    /// Copies one run: whole cache lines of the target with non-temporal stores, the partial lines at both ends with ordinary
    /// ones, since a partially written write-combining buffer is slow. Calls `prefetch` with the offset of every line.
    ///
    /// # Safety
    /// `len` bytes must be readable at `from` and writable at `to`, and be at least a line; with `WHOLE_LINES`, they are
    /// whole lines.
    #[inline(always)]
    unsafe fn copy_run<const WHOLE_LINES: bool>(from: *const u8, to: *mut u8, len: usize, prefetch: impl Fn(usize)) {
        let mut at = if WHOLE_LINES { 0 } else { to.addr().wrapping_neg() % LINE };
        if !WHOLE_LINES {
            // SAFETY: less than a line.
            unsafe { copy_nonoverlapping(from, to, at) };
        }
        while at + LINE <= len {
            prefetch(at);
            // SAFETY: a line from `at` is inside the run, and begins a line of the target. SSE2 is part of every
            // x86-64.
            unsafe {
                let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
                let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
                for (i, word) in line.into_iter().enumerate() {
                    store(to.add(i), word);
                }
            }
            at += LINE;
        }
        if !WHOLE_LINES {
            // SAFETY: the rest of the run.
            unsafe { copy_nonoverlapping(from.add(at), to.add(at), len - at) };
        }
    }
}
