//! Large copies of long runs past the cache.
//!
//! A copy larger than the cache gains nothing from leaving its result there, and pays for it: an ordinary store first
//! reads the line it overwrites. Non-temporal stores do not. And asking for what is needed next by name made
//! gathering runs with gaps faster when tried, presumably because gaps mislead the processor's own prefetching.

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

/// Copies the grid past the cache and returns true, or leaves it alone where that would not be faster.
///
/// # Safety
/// Every run of the grid must be readable in the source and writable in the target, without overlap between the two
/// or between the runs of the target.
#[cfg(not(target_arch = "x86_64"))]
pub(super) unsafe fn copy_streaming(_grid: Grid) -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::copy_streaming;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::Grid;
    use std::arch::x86_64::{__m128i, _MM_HINT_NTA, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_stream_si128};

    const LINE: usize = 64;
    /// What one store moves; the target must be aligned to it.
    const WORD: usize = size_of::<__m128i>();
    /// How many bytes of runs ahead are asked for: 512 to 4096 differed little on one machine (AMD EPYC).
    const AHEAD: usize = 1024;

    /// Copies the grid past the cache and returns true, or leaves it alone where that would not be faster.
    ///
    /// # Safety
    /// Every run of the grid must be readable in the source and writable in the target, without overlap between the
    /// two or between the runs of the target.
    pub(in crate::copy) unsafe fn copy_streaming(grid: Grid) -> bool {
        if !gains(&grid) {
            return false;
        }
        let (runs_ahead, bytes_ahead) = (AHEAD / grid.len, AHEAD % grid.len);
        let source_of = |run: usize| grid.source.wrapping_add(run.wrapping_mul(grid.source_step));
        for run in 0..grid.count {
            let (this, next) = (source_of(run + runs_ahead), source_of(run + runs_ahead + 1));
            let prefetch = |at: usize| {
                let at = at + bytes_ahead;
                let line = if at < grid.len { this.wrapping_add(at) } else { next.wrapping_add(at - grid.len) };
                // SAFETY: a prefetch of any address, even one past the buffer, has no effect but on the cache.
                unsafe { _mm_prefetch::<_MM_HINT_NTA>(line.cast()) };
            };
            // SAFETY: run < count, and every run lies inside both buffers, as the caller promises. Target, its step
            // and the length are multiples of WORD, as `gains` has checked.
            unsafe { copy_run(source_of(run), grid.target.add(run * grid.target_step), grid.len, prefetch) };
        }
        // Non-temporal stores are not ordered with later ones; whoever is told of this copy must see it.
        // SAFETY: sfence exists on every x86-64.
        unsafe { _mm_sfence() };
        true
    }

    /// Whether streaming is possible and pays. Lines of the target that no store completes are slow, so runs must
    /// leave no such lines, or few in comparison.
    fn gains(grid: &Grid) -> bool {
        let possible = [grid.len, grid.target_step, grid.target.addr()].iter().all(|n| n.is_multiple_of(WORD));
        let gapless = grid.target_step == grid.len;
        let whole_lines = [grid.len, grid.target_step, grid.target.addr()].iter().all(|n| n.is_multiple_of(LINE));
        let shortest = if gapless || whole_lines { 4 * LINE } else { 16 * LINE };
        possible && grid.len >= shortest
    }

    /// Copies one run, calling `prefetch` with the offset of every line.
    ///
    /// # Safety
    /// `len` bytes must be readable at `from` and writable at `to`; `to` and `len` are multiples of [`WORD`].
    #[inline(always)]
    unsafe fn copy_run(from: *const u8, to: *mut u8, len: usize, prefetch: impl Fn(usize)) {
        let mut at = 0;
        while at + LINE <= len {
            prefetch(at);
            // SAFETY: a line from `at` is inside the run. SSE2 is part of every x86-64.
            unsafe {
                let (from, to) = (from.add(at).cast::<__m128i>(), to.add(at).cast::<__m128i>());
                let line = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
                for (i, word) in line.into_iter().enumerate() {
                    _mm_stream_si128(to.add(i), word);
                }
            }
            at += LINE;
        }
        while at < len {
            // SAFETY: what is left is a multiple of a word.
            unsafe { _mm_stream_si128(to.add(at).cast(), _mm_loadu_si128(from.add(at).cast())) };
            at += WORD;
        }
    }
}
