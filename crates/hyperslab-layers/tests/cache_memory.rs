//! `cache` holds no more memory than it may, whatever is read, counted by the allocator.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Datatype, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection, Stack, TransferMode,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts what is allocated.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(live, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SHAPE: [u64; 2] = [4096, 2048];
/// What a read needs for the time of the call, on each thread: the plan of its parts.
const BESIDE: usize = 96 << 10;
/// What may be held for writes and reads ahead.
const STAGE: usize = 64 << 10;
const THREADS: u64 = 3;

/// The most bytes held while threads read through a stack, and those that are left when all is closed.
fn held(stack: &str) -> (usize, usize) {
    let directory = tempfile::tempdir().unwrap();
    let stack: Stack = stack.parse().unwrap();
    let below = hyperslab_formats::build(&stack.format).unwrap();
    let format = hyperslab_layers::build(&stack, below).unwrap();
    let container = format.open(&directory.path().join("a"), OpenMode::Create, &Solo::shared()).unwrap();
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &SHAPE)).unwrap();
    let data = vec![1; (SHAPE[0] * SHAPE[1]) as usize];
    array.write(&Selection::all(&SHAPE).unwrap(), MemoryView::packed(&data), TransferMode::Independent).unwrap();
    drop(data);
    let mut buffers: Vec<Vec<u8>> = (0..THREADS).map(|_| vec![0; 3 << 20]).collect();
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    std::thread::scope(|scope| {
        for (thread, buffer) in buffers.iter_mut().enumerate() {
            let array = &array;
            scope.spawn(move || reads(array, buffer, thread as u64));
        }
    });
    let held = MOST.load(Relaxed) - before;
    container.close().unwrap();
    (held, LIVE.load(Relaxed).saturating_sub(before))
}

#[test]
fn memory_stays_within_what_is_allowed() {
    let (alone, _) = held("posix(buffer=4KiB)");
    for (layer, most) in [
        ("cache(memory=1MiB)", 1 << 20),
        ("cache(memory=1MiB,block=1KiB)", 1 << 20),
        ("cache(memory=256KiB,block=128)", 256 << 10),
        ("cache(memory=4MiB,block=64x2048)", 4 << 20),
        ("cache(memory=2MiB,block=256KiB)", 2 << 20),
        ("cache(memory=64MiB)", 64 << 20),
    ] {
        let stack = format!("{}/posix(buffer=4KiB)", layer.replace(')', ",stage=64KiB)"));
        let (held, left) = held(&stack);
        assert!(
            held <= most + STAGE + alone + BESIDE * THREADS as usize,
            "{layer}: {held} bytes were held, {alone} without"
        );
        assert!(held >= most.min(2 << 20) / 2, "{layer}: only {held} bytes were of use");
        assert!(left < BESIDE, "{layer}: {left} bytes are still held after closing");
    }
}

/// Rows, boxes, large parts and small ones, and memory with gaps.
fn reads(array: &Arc<dyn Array>, buffer: &mut [u8], seed: u64) {
    let mut state = seed;
    let mut below = |limit: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    for turn in 0..600 {
        let rows = [1, 2, 17, 64, 300][below(5) as usize];
        let columns = [5, 100, 1024, 2048][below(4) as usize];
        let start = [below(SHAPE[0] / 4 - rows), below(SHAPE[1] - columns + 1)];
        let selection = Selection::dense(&start, &[rows, columns]).unwrap();
        let layout = match turn % 3 {
            0 => MemoryLayout::strided(&[rows, columns + 7], Selection::dense(&[0, 3], &[rows, columns]).unwrap()),
            _ => MemoryLayout::packed(),
        };
        let bytes = layout.buffer_len(&Datatype::U8, selection.len()).unwrap() as usize;
        let view = MemoryViewMut { data: &mut buffer[..bytes], layout: &layout };
        array.read(&selection, view, TransferMode::Independent).unwrap();
    }
}
