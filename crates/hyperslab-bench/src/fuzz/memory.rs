//! How much memory something takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts what each thread holds.
struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The cells need no memory, and none is left without them: they have no destructor.
        let now = NOW.get().wrapping_add(layout.size());
        NOW.set(now);
        // Memory may be given back by another thread than took it; then the count goes below zero.
        if (now as isize) > PEAK.get() as isize {
            PEAK.set(now);
        }
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.set(NOW.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that this thread held at a time while it did `work`, beyond what it held before.
pub fn peak_during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    PEAK.set(before);
    let done = work();
    (done, PEAK.get().wrapping_sub(before))
}

#[test]
fn what_is_held_counts_and_what_is_given_back_does_not() {
    let (_, peak) = peak_during(|| (0..100).map(|_| vec![1u8; 1 << 16].len()).sum::<usize>());
    assert!((1 << 16..1 << 17).contains(&peak), "{peak}");
    let (_, peak) = peak_during(|| (0..10).map(|_| vec![1u8; 1 << 16]).collect::<Vec<_>>());
    assert!((10 << 16..11 << 16).contains(&peak), "{peak}");
}
