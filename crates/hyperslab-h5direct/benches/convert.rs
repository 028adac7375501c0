//! Conversions against memcpy and against libhdf5's own, measured side by side in the same run.
//!
//! `cargo bench -p hyperslab-h5direct --bench convert -- [--check] [--all] [--elements N]`
//!
//! Rates count the bytes read and written. memcpy moves as many: half of the sum. libhdf5 converts in place, in a buffer
//! that was filled anew outside the measurement; since it is slow, only 32 Ki elements, and the best of three times of both count. Values are finite and fit the target, which is the usual case. Without `--all`,
//! single lines are shown for some pairs, and the slowest for the rest.

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

#[path = "../tests/convert/library.rs"]
mod library;

use hyperslab_core::Datatype;
use hyperslab_h5direct::Conversion;
use library::LibraryType;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 7;
const NAMES: [&str; 11] = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"];
const SHOWN: [&str; 18] = [
    ">i2 <i2", ">i4 <i4", ">f8 <f8", "<f4 <i4", "<i4 <f4", "<f8 <i8", "<i8 <f8", "<i4 <u4", "<u8 <i8", "<f8 <f4",
    "<f4 <f8", "<i4 <i2", "<u2 <f4", ">f8 <f4", ">f4 <f8", ">f4 <i4", "<f2 <f4", "<f4 <f2",
];

struct Measured {
    name: String,
    gib: f64,
    to_memcpy: f64,
    to_library: f64,
    same_width: bool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let at = arguments.iter().position(|argument| argument == "--elements");
    let elements = at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(256 << 10);
    println!("{:<14} {:>8} {:>13} {:>16}", "pair", "GiB/s", "time/memcpy", "libhdf5's/time");
    let mut all = Vec::new();
    for (from_order, to_order) in [("<", "<"), (">", "<"), ("<", ">")] {
        for (from, to) in NAMES.iter().flat_map(|from| NAMES.iter().map(move |to| (from, to))) {
            let names = (format!("{from_order}{from}"), format!("{to_order}{to}"));
            let (from, to) = (names.0.parse().unwrap(), names.1.parse().unwrap());
            let Some(conversion) = Conversion::new(&from, &to).unwrap() else { continue };
            let mut measured = measure(&conversion, &from, &to, elements);
            measured.name = format!("{} {}", names.0, names.1);
            if given("--all") || SHOWN.contains(&measured.name.as_str()) {
                show(&measured);
            }
            all.push(measured);
        }
    }
    compound(elements);
    let missed = summarise(&all);
    if given("--check") && missed {
        std::process::exit(1);
    }
}

fn show(measured: &Measured) {
    let Measured { name, gib, to_memcpy, to_library, .. } = measured;
    println!("{name:<14} {gib:>8.2} {to_memcpy:>13.2} {to_library:>16.1}");
}

fn summarise(all: &[Measured]) -> bool {
    let mut same: Vec<&Measured> = all.iter().filter(|measured| measured.same_width).collect();
    same.sort_by(|a, b| b.to_memcpy.total_cmp(&a.to_memcpy));
    println!("\nslowest of {} pairs of one width, in comparison with memcpy", same.len());
    same.iter().take(8).for_each(|measured| show(measured));
    let mut library: Vec<&Measured> = all.iter().collect();
    library.sort_by(|a, b| a.to_library.total_cmp(&b.to_library));
    println!("\nleast gain over libhdf5 of {} pairs", library.len());
    library.iter().take(8).for_each(|measured| show(measured));
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let slow = same.iter().filter(|measured| measured.to_memcpy > 2.0).count();
    println!(
        "\nmedians: {:.1} GiB/s, {:.1} times as fast as libhdf5; {} of {} pairs of one width take more than twice memcpy's time",
        middle(&mut all.iter().map(|measured| measured.gib).collect()),
        middle(&mut all.iter().map(|measured| measured.to_library).collect()),
        slow,
        same.len(),
    );
    library[0].to_library < 0.5
}

/// Small numbers of a type, so that they fit every target; converted from bytes by libhdf5 itself.
fn numbers(dtype: &Datatype, elements: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..elements).map(|at| ((at.wrapping_mul(0x9E37_79B9) >> 13) % 100) as u8).collect();
    LibraryType::new(&Datatype::U8).convert(LibraryType::new(dtype), &bytes, &[])
}

fn measure(conversion: &Conversion, from: &Datatype, to: &Datatype, elements: usize) -> Measured {
    let source = numbers(from, elements);
    let (from_bytes, to_bytes) = (source.len(), elements * to.size() as usize);
    let mut target = vec![1; to_bytes];
    let moved = (from_bytes + to_bytes) / 2;
    let (copy_from, mut copy_to) = (vec![2u8; moved], vec![1u8; moved]);
    let (mut own, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        copies.push(timed(|| black_box(&mut copy_to).copy_from_slice(black_box(&copy_from))));
        own.push(timed(|| conversion.convert(black_box(&source), black_box(&mut target)).unwrap()));
    }
    let few = elements.min(32 << 10);
    let (library_from, library_to) = (LibraryType::new(from), LibraryType::new(to));
    let mut buffer = vec![0; few * from.size().max(to.size()) as usize];
    let mut background = vec![0; few * to.size() as usize];
    let library = (0..3).map(|_| {
        buffer[..few * from.size() as usize].copy_from_slice(&source[..few * from.size() as usize]);
        timed(|| library_from.convert_in_place(library_to, few, black_box(&mut buffer), &mut background))
    });
    let library = library.fold(f64::MAX, f64::min);
    let some = &source[..few * from.size() as usize];
    let beside = (0..3).map(|_| timed(|| conversion.convert(black_box(some), black_box(&mut background)).unwrap()));
    let beside = beside.fold(f64::MAX, f64::min);
    let (own, copy) = (median(own), median(copies));
    Measured {
        name: String::new(),
        gib: (from_bytes + to_bytes) as f64 / own / (1u64 << 30) as f64,
        to_memcpy: own / copy,
        to_library: library / beside,
        same_width: from_bytes == to_bytes,
    }
}

/// Three of four fields, two of them as another type.
fn compound(elements: usize) {
    let of = |fields: [(&str, &str); 4]| {
        Datatype::packed_compound(fields.map(|(name, dtype)| (name, dtype.parse().unwrap()))).unwrap()
    };
    let from = of([("x", "<f8"), ("y", "<f8"), ("id", "<i8"), ("weight", "<f4")]);
    let to = of([("id", "<i4"), ("x", "<f4"), ("weight", "<f4"), ("other", "<i4")]);
    let conversion = Conversion::new(&from, &to).unwrap().unwrap();
    let source = vec![0u8; elements * from.size() as usize];
    let mut target = vec![1u8; elements * to.size() as usize];
    let own = median(
        (0..ROUNDS)
            .map(|_| timed(|| conversion.convert(black_box(&source), black_box(&mut target)).unwrap()))
            .collect(),
    );
    let (library_from, library_to) = (LibraryType::new(&from), LibraryType::new(&to));
    let library = timed(|| {
        let mut buffer = source.clone();
        library_from.convert_in_place(library_to, elements, &mut buffer, &mut target);
    });
    let bytes = source.len() + target.len();
    println!("{:<14} {:>8.2} {:>13} {:>16.1}", "4 fields", bytes as f64 / own / (1u64 << 30) as f64, "", library / own);
}

fn timed(work: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    work();
    begin.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
