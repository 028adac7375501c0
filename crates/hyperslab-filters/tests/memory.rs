//! Damaged chunks never make a decoder allocate more than a bound that follows from the size of chunks.

#![allow(clippy::unwrap_used)]

use hyperslab_filters::{Filter, FilterSpec, Pipeline, Workspace};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "support/damage.rs"]
mod damage;
#[path = "support/data.rs"]
#[allow(dead_code)]
mod data;

/// The system's memory, with a note of the largest piece that was asked for.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on as it is.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static WATCHED: Watched = Watched;

fn filters() -> Vec<FilterSpec> {
    let spec = |id, parameters: &[u32]| FilterSpec { id, optional: true, parameters: parameters.to_vec() };
    vec![
        spec(1, &[6]),
        spec(3, &[]),
        spec(32000, &[]),
        spec(32001, &[2, 2, 4, 0, 5, 1, 0]),
        spec(32001, &[2, 2, 4, 0, 5, 2, 5]),
        spec(32004, &[0]),
        spec(32008, &[0, 4, 4, 0, 2]),
        spec(32008, &[0, 4, 4, 0, 3]),
        spec(32015, &[]),
        spec(32026, &[1, 0, 4, 0, 5, 1, 5, 2, 50, 60]),
        spec(32026, &[1, 512, 4, 0, 5, 1, 1]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn stays_bounded(damages in proptest::collection::vec(damage::some_damage(), 20)) {
        let chunk = data::smooth(3000);
        for filter in filters() {
            let pipeline = Pipeline::new(std::slice::from_ref(&filter), chunk.len()).unwrap();
            let alone = Filter::new(&filter).unwrap();
            let stored = pipeline.encode(&chunk, &mut Workspace::default()).unwrap().bytes.to_vec();
            for damage in &damages {
                let (damaged, mut back, mut grown) = (damage.done_to(&stored), vec![0; chunk.len()], Vec::new());
                let mut workspace = Workspace::default();
                LARGEST.store(0, Ordering::Relaxed);
                let _ = pipeline.decode(&damaged, 0, &mut back, &mut workspace);
                let _ = alone.decode(&damaged, chunk.len(), 2 * chunk.len(), &mut grown, &mut workspace);
                // Messages, the table of places, and twice a chunk.
                let largest = LARGEST.load(Ordering::Relaxed);
                prop_assert!(largest <= 4 * chunk.len() + (64 << 10), "{filter:?} asked for {largest}");
            }
        }
    }
}
