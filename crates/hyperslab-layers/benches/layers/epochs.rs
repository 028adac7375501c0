//! What reads from the memory of `cache` cost: shuffled samples of a whole data set, from the second epoch on, beside
//! copies of as many bytes from a buffer as large as the data set to the same memory. Epochs and copies take turns; the
//! best of each counts. Also an epoch without the layer, and the first with it, which reads everything and keeps it; and what a
//! read takes longer than its copy, which is the time of finding its block.

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Datatype, Format, MemoryView, MemoryViewMut, OpenMode, PageBuffer, Selection, Stack, TransferMode,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const BYTES: u64 = 256 << 20;
const ROUNDS: usize = 9;
/// Samples whose memory is filled before the first is used again.
const BATCH: u64 = 32;
/// The rate of a copy that shuffled samples must reach.
const TARGET: f64 = 0.7;

/// Samples of a data set.
struct Case {
    name: &'static str,
    dtype: Datatype,
    sample: &'static [u64],
    /// Samples in a chunk; 0 for an array without chunks.
    chunk: u64,
    /// Whether `--check` looks at it.
    counts: bool,
}

fn cases() -> [Case; 6] {
    let case = |name, dtype, sample, chunk, counts| Case { name, dtype, sample, chunk, counts };
    [
        case("images", Datatype::U8, &[224, 224, 3], 0, true),
        case("volumes", Datatype::F32, &[64, 64, 64], 0, true),
        case("chunks of one", Datatype::F32, &[64, 64, 64], 1, true),
        case("chunks of 8", Datatype::U8, &[224, 224, 3], 8, true),
        case("64 KiB", Datatype::F32, &[16384], 0, false),
        case("1 KiB", Datatype::F32, &[256], 0, false),
    ]
}

pub fn run() -> Vec<String> {
    let (directory, mut missed) = (tempfile::tempdir().unwrap(), Vec::new());
    println!(
        "\n{} MiB of shuffled samples through cache/hdf5; best of {ROUNDS}\n\n{:14} {:>8} {:>12} {:>12} {:>12} {:>12} {:>6} {:>10}",
        BYTES >> 20,
        "samples",
        "bytes",
        "without",
        "first epoch",
        "from memory",
        "memcpy",
        "ratio",
        "a read"
    );
    for case in cases() {
        let sample = case.sample.iter().product::<u64>() * case.dtype.size();
        let number = BYTES / sample;
        let [without, first, cached, copied] = measure(&case, &directory.path().join("samples"), number, sample);
        let speed = |seconds: f64| format!("{:.2} GiB/s", (number * sample) as f64 / seconds / f64::from(1 << 30));
        let (ratio, more) = (copied / cached, (cached - copied) * 1e9 / number as f64);
        if case.counts && ratio < TARGET {
            missed.push(format!("{}: {ratio:.2} of the rate of memcpy, target {TARGET}", case.name));
        }
        println!(
            "{:14} {sample:>8} {:>12} {:>12} {:>12} {:>12} {ratio:>6.2} {:>10}",
            case.name,
            speed(without),
            speed(first),
            speed(cached),
            speed(copied),
            format!("{more:+.0} ns")
        );
    }
    println!("target: samples of 100 KiB and more at {TARGET} of the rate of memcpy at least");
    missed
}

/// Seconds of an epoch without the layer, of the first with it, and of the best later epoch and copy.
fn measure(case: &Case, path: &Path, number: u64, sample: u64) -> [f64; 4] {
    let stack: Stack = "cache(memory=1GiB)/hdf5".parse().unwrap();
    let below = hyperslab_formats::build(&stack.format).unwrap();
    let source = create(&*below, case, path, number, sample);
    let mut batch = PageBuffer::new((BATCH * sample) as usize).unwrap();
    let orders: Vec<Vec<u64>> = (0..=ROUNDS as u64).map(|round| shuffled(number, round)).collect();
    let alone = below.open(path, OpenMode::Read, &Solo::shared()).unwrap();
    let array = alone.array("samples").unwrap();
    let without = epoch(&array, case, &orders[0], sample, &mut batch);
    alone.close().unwrap();
    let format = hyperslab_layers::build(&stack, below.clone()).unwrap();
    let container = format.open(path, OpenMode::Read, &Solo::shared()).unwrap();
    let array = container.array("samples").unwrap();
    let first = epoch(&array, case, &orders[0], sample, &mut batch);
    let (mut cached, mut copied) = (f64::MAX, f64::MAX);
    for order in &orders[1..] {
        cached = cached.min(epoch(&array, case, order, sample, &mut batch));
        copied = copied.min(copies(&source, order, sample, &mut batch));
    }
    container.close().unwrap();
    below.remove(path).unwrap();
    [without, first, cached, copied]
}

/// Writes the data set, and returns it.
fn create(format: &dyn Format, case: &Case, path: &Path, number: u64, sample: u64) -> PageBuffer {
    let mut data = PageBuffer::new((number * sample) as usize).unwrap();
    for (at, word) in data.chunks_mut(4).enumerate() {
        word.copy_from_slice(&(at as u32).wrapping_mul(0x9E37_79B1).to_le_bytes()[..word.len()]);
    }
    let shape: Vec<u64> = [number].iter().chain(case.sample).copied().collect();
    let mut spec = ArraySpec::new(case.dtype.clone(), &shape);
    if case.chunk > 0 {
        spec.chunk = Some([case.chunk].iter().chain(case.sample).copied().collect());
    }
    let container = format.open(path, OpenMode::Create, &Solo::shared()).unwrap();
    let array = container.create("samples", &spec).unwrap();
    array.write(&Selection::all(&shape).unwrap(), MemoryView::packed(&data), TransferMode::Independent).unwrap();
    container.close().unwrap();
    data
}

/// The samples in some order.
fn shuffled(number: u64, seed: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..number).collect();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for at in (1..order.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(at, ((state >> 33) % (at as u64 + 1)) as usize);
    }
    order
}

/// The place of the next sample in the batch.
fn place(turn: usize, sample: u64) -> std::ops::Range<usize> {
    let from = (turn as u64 % BATCH * sample) as usize;
    from..from + sample as usize
}

fn epoch(array: &Arc<dyn Array>, case: &Case, order: &[u64], sample: u64, batch: &mut [u8]) -> f64 {
    let begin = Instant::now();
    let mut start = vec![0; case.sample.len() + 1];
    let count: Vec<u64> = [1].iter().chain(case.sample).copied().collect();
    for (turn, number) in order.iter().enumerate() {
        start[0] = *number;
        let selection = Selection::dense(&start, &count).unwrap();
        let memory = MemoryViewMut::packed(&mut batch[place(turn, sample)]);
        array.read(&selection, memory, TransferMode::Independent).unwrap();
    }
    begin.elapsed().as_secs_f64()
}

fn copies(source: &[u8], order: &[u64], sample: u64, batch: &mut [u8]) -> f64 {
    let begin = Instant::now();
    for (turn, number) in order.iter().enumerate() {
        let from = (number * sample) as usize;
        batch[place(turn, sample)].copy_from_slice(&source[from..from + sample as usize]);
        std::hint::black_box(&mut *batch);
    }
    begin.elapsed().as_secs_f64()
}
