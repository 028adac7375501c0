//! Copy kernels against memcpy, measured side by side in the same run.
//!
//! `cargo bench -p hyperslab-core --bench copy -- [--check] [--mib N] [--repeat N]`
//!
//! Each round times memcpy of as many bytes and then the case, on the same buffers, all touched before. Reported is the
//! median of the rounds; the ratio is the median of the rounds' own ratios, so that a slow moment of the machine hits
//! both sides.
//!
//! For rows of a matrix, what bounds them is shown too. Gathering cannot be faster than reading one word of every
//! cache line of the rows, which is measured. Scattering must fetch, and write back, a line of which a row covers only
//! a part: the bytes so moved over memory, in comparison with memcpy's, are counted. Where the bound lies above the
//! target, no copy can reach it here, and `--check` does not ask for it.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use hyperslab_core::{ChunkGrid, Datatype, Gather, MemoryLayout, MemoryView, MemoryViewMut, Scatter, Selection, Slab};
use std::hint::black_box;
use std::time::Instant;

/// What a case must reach.
enum Target {
    /// Time at most this multiple of memcpy's.
    AtMost(f64),
    /// Only reported.
    None,
}

struct Case {
    name: String,
    /// Bytes memcpy moves for comparison.
    reference: usize,
    layout: MemoryLayout,
    dtype: Datatype,
    elements: u64,
    target: Target,
    /// Bytes by which the memory lies off the start of a cache line.
    off: usize,
    /// Rows of a matrix: bytes of a row, and from one row to the next.
    rows: Option<(usize, usize)>,
}

/// Both begin at a cache line.
struct Buffers<'a> {
    memory: &'a mut [u8],
    packed: &'a mut [u8],
}

const LINE: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: usize| {
        let at = arguments.iter().position(|a| a == name);
        at.and_then(|i| arguments.get(i + 1)).and_then(|v| v.parse().ok()).unwrap_or(default)
    };
    let bytes = number("--mib", 256) << 20;
    let rounds = number("--repeat", 9);
    // Random-looking contents, so that no page stays untouched or shared.
    let fill = |n: usize| (0..n + LINE).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect::<Vec<u8>>();
    let (mut memory, mut packed) = (fill(2 * bytes + LINE), fill(bytes));
    let (at_memory, at_packed) = (memory.as_ptr().align_offset(LINE), packed.as_ptr().align_offset(LINE));
    let mut buffers = Buffers { memory: &mut memory[at_memory..], packed: &mut packed[at_packed..] };

    println!("{:<44} {:>9} {:>10} {:>9}  target", "case", "GB/s", "time/copy", "spread");
    let mut missed = false;
    for case in cases(bytes as u64) {
        for (way, scatter) in [("gather", false), ("scatter", true)] {
            let mut ratios = Vec::with_capacity(rounds);
            let mut times = Vec::with_capacity(rounds);
            let mut limits = Vec::with_capacity(rounds);
            for _ in 0..rounds {
                let base = copy(&mut buffers, case.reference, scatter);
                let time = run(&mut buffers, &case, scatter);
                ratios.push(time / base);
                times.push(time);
                if let (Some(rows), false) = (case.rows, scatter) {
                    limits.push(touch(&buffers, case.reference, rows) / base);
                }
            }
            limits.sort_by(f64::total_cmp);
            ratios.sort_by(f64::total_cmp);
            times.sort_by(f64::total_cmp);
            let (ratio, time) = (ratios[rounds / 2], times[rounds / 2]);
            let bound = match case.rows {
                Some(_) if !scatter => Some(limits[rounds / 2]),
                Some((row, every)) => Some(traffic(case.off + (every - row) / 2, row, every)),
                None => None,
            };
            let verdict = match case.target {
                Target::None => String::new(),
                Target::AtMost(limit) if ratio <= limit => format!("<= {limit:.2} ok"),
                Target::AtMost(limit) if bound.is_some_and(|bound| bound > limit) => {
                    format!("<= {limit:.2} out of reach")
                }
                Target::AtMost(limit) => {
                    missed = true;
                    format!("<= {limit:.2} missed")
                }
            };
            let alone = bound.map_or(String::new(), |l| {
                format!("  ({}: {l:.2})", if scatter { "memory traffic" } else { "only reading them" })
            });
            println!(
                "{:<44} {:>9.2} {:>10.2} {:>9}  {verdict}{alone}",
                format!("{way} {}", case.name),
                case.reference as f64 / time / 1e9,
                ratio,
                format!("{:.2}-{:.2}", ratios[0], ratios[rounds - 1]),
            );
        }
    }
    chunks(&mut buffers, bytes as u64, rounds);
    union_of_many();
    if missed && arguments.iter().any(|a| a == "--check") {
        std::process::exit(1);
    }
}

fn cases(bytes: u64) -> Vec<Case> {
    let mut out = vec![Case {
        name: "packed".into(),
        reference: bytes as usize,
        layout: MemoryLayout::packed(),
        dtype: Datatype::F32,
        elements: bytes / 4,
        target: Target::AtMost(1.10),
        off: 0,
        rows: None,
    }];
    for (size, target) in [(32, Target::AtMost(1.5)), (12, Target::None)] {
        out.push(Case {
            name: format!("4 bytes of structures of {size}"),
            reference: bytes as usize / size * size,
            layout: MemoryLayout::member(size as u64, 4),
            dtype: Datatype::F32,
            elements: bytes / size as u64,
            target,
            off: 0,
            rows: None,
        });
    }
    let three = Datatype::packed_compound([("a", Datatype::F32), ("b", Datatype::F64), ("c", Datatype::F32)]).unwrap();
    out.push(Case {
        name: "3 members of structures of 32".into(),
        reference: bytes as usize,
        layout: MemoryLayout::fields(32, [("a", 0), ("b", 8), ("c", 28)]),
        dtype: three,
        elements: bytes / 32,
        target: Target::None,
        off: 0,
        rows: None,
    });
    // The inside of a block with a rim of an eighth of its width on either side; then every other block.
    for (row, every) in [(64, 80), (256, 320), (1024, 1280), (4096, 5120), (65536, 81920)] {
        out.push(rows_of(bytes, row, every, format!("rows of {row} bytes without their rim"), 0));
    }
    for (row, off) in [(8, 0), (64, 0), (256, 0), (256, 16), (1024, 0), (4096, 0), (65536, 0)] {
        let note = if off > 0 { ", off the line" } else { "" };
        out.push(rows_of(bytes, row, 2 * row, format!("rows of {row} bytes, every other{note}"), off));
    }
    out
}

fn rows_of(bytes: u64, row: u64, every: u64, name: String, off: usize) -> Case {
    let (columns, pitch, rows) = (row / 4, every / 4, bytes / row);
    let part = Selection::dense(&[0, (pitch - columns) / 2], &[rows, columns]).unwrap();
    Case {
        name,
        reference: (rows * row) as usize,
        layout: MemoryLayout::strided(&[rows, pitch], part),
        dtype: Datatype::F32,
        elements: rows * columns,
        target: if row >= 256 { Target::AtMost(1.25) } else { Target::None },
        off,
        rows: Some((row as usize, every as usize)),
    }
}

/// One load from every line of the rows: what no gather can be faster than.
fn touch(buffers: &Buffers<'_>, bytes: usize, (row, every): (usize, usize)) -> f64 {
    let begin = Instant::now();
    let mut sum = 0u8;
    for first in (0..bytes / row).map(|i| i * every) {
        for line in buffers.memory[first..first + row].chunks(LINE) {
            sum = sum.wrapping_add(line[0]);
        }
    }
    black_box(sum);
    begin.elapsed().as_secs_f64()
}

/// Bytes over memory of storing rows, per byte that memcpy moves: every byte is read once; lines covered whole are
/// written, others fetched and written.
fn traffic(first: usize, row: usize, every: usize) -> f64 {
    let rows = 2 * LINE; // The pattern of lines repeats after at most half as many.
    let mut covered = std::collections::BTreeMap::new();
    for begin in (0..rows).map(|i| first + i * every) {
        for line in begin / LINE..(begin + row).div_ceil(LINE) {
            let inside = (begin + row).min((line + 1) * LINE) - begin.max(line * LINE);
            *covered.entry(line).or_insert(0) += inside;
        }
    }
    let stored: usize = covered.values().map(|&inside| if inside == LINE { LINE } else { 2 * LINE }).sum();
    (rows * row + stored) as f64 / (2 * rows * row) as f64
}

/// memcpy in the same direction between the same buffers.
fn copy(buffers: &mut Buffers<'_>, bytes: usize, scatter: bool) -> f64 {
    let (memory, packed) = (&mut buffers.memory[..bytes], &mut buffers.packed[..bytes]);
    let (from, to) = if scatter { (packed, memory) } else { (memory, packed) };
    let begin = Instant::now();
    // SAFETY: both have `bytes` bytes and are parts of different vectors.
    unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), bytes) };
    black_box(to);
    begin.elapsed().as_secs_f64()
}

fn run(buffers: &mut Buffers<'_>, case: &Case, scatter: bool) -> f64 {
    let packed = (case.elements * case.dtype.size()) as usize;
    let need = case.layout.buffer_len(&case.dtype, case.elements).unwrap() as usize;
    let begin = Instant::now();
    if scatter {
        let view = MemoryViewMut { data: &mut buffers.memory[case.off..case.off + need], layout: &case.layout };
        Scatter::new(view, &case.dtype, case.elements).unwrap().next_from(&buffers.packed[..packed]);
        black_box(&mut buffers.memory);
    } else {
        let view = MemoryView { data: &buffers.memory[case.off..case.off + need], layout: &case.layout };
        Gather::new(view, &case.dtype, case.elements).unwrap().next_into(&mut buffers.packed[..packed]);
        black_box(&mut buffers.packed);
    }
    begin.elapsed().as_secs_f64()
}

/// A whole matrix into chunks, one chunk buffer used again and again.
fn chunks(buffers: &mut Buffers<'_>, bytes: u64, rounds: usize) {
    let (columns, element) = (8192, 4);
    let shape = [bytes / element / columns, columns];
    let selection = Selection::all(&shape).unwrap();
    for extent in [64, 512] {
        let grid = ChunkGrid::new(&shape, &[extent, extent]).unwrap();
        let mut buffer = vec![1u8; (extent * extent * element) as usize];
        let mut ratios: Vec<f64> = (0..rounds)
            .map(|_| {
                let base = copy(buffers, bytes as usize, false);
                let begin = Instant::now();
                for part in selection.split_by_chunk(&grid).unwrap() {
                    let packed = &buffers.memory[..bytes as usize];
                    part.unwrap().copy_to_chunk(packed, &mut buffer, element).unwrap();
                    black_box(&mut buffer);
                }
                begin.elapsed().as_secs_f64() / base
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        println!("{:<52} {:>17.2}", format!("matrix to chunks of {extent}x{extent}"), ratios[rounds / 2]);
    }
}

/// What one rank of a climate model owns: 175,000 single elements scattered over levels and columns.
fn union_of_many() {
    let shape = [72, 866_400];
    let mut state = 1u64;
    let pieces: Vec<Slab> = (0..175_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            Slab::dense(&[(state >> 33) % shape[0], (state >> 40) % shape[1]], &[1, 1]).unwrap().unwrap()
        })
        .collect();
    let timed = |name: &str, work: &mut dyn FnMut() -> usize| {
        let begin = Instant::now();
        let n = work();
        println!("{name:<52} {:>8.1} ms  {n}", begin.elapsed().as_secs_f64() * 1e3);
    };
    let mut selection = Selection::empty(2);
    timed("union of 175,000 elements: slabs", &mut || {
        selection = Selection::union(2, pieces.iter().cloned()).unwrap();
        selection.slabs().len()
    });
    timed("  its runs", &mut || selection.runs(&shape, 8).unwrap().count());
    let whole = Selection::all(&shape).unwrap();
    timed("  elements in a box", &mut || selection.intersect(&whole).unwrap().len() as usize);
    timed("  intersected with itself", &mut || selection.intersect(&selection).unwrap().len() as usize);
    let grid = ChunkGrid::new(&shape, &[8, 16384]).unwrap();
    timed("  its chunks of 8x16384", &mut || selection.split_by_chunk(&grid).unwrap().count());
    let columns: Vec<Slab> =
        pieces.iter().map(|p| Slab::dense(&[0, p.start()[1]], &[72, 1]).unwrap().unwrap()).collect();
    timed("union of 175,000 columns: slabs", &mut || {
        selection = Selection::union(2, columns.iter().cloned()).unwrap();
        selection.slabs().len()
    });
    timed("  its runs", &mut || selection.runs(&shape, 8).unwrap().count());
}
