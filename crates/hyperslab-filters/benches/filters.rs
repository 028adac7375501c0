//! Rates of every filter on chunks of 1 MiB of smooth numbers: `cargo bench -p hyperslab-filters`. With `-- levels`,
//! what zlib and libdeflate make of them at each level.

#![allow(clippy::print_stdout)]

use hyperslab_filters::{Pipeline, Stated, Workspace};
use libdeflater::{CompressionLvl, Compressor};
use std::time::{Duration, Instant};

#[path = "../tests/support/data.rs"]
#[allow(dead_code)]
mod data;

const CHUNK: usize = 1 << 20;
/// Long enough for a steady rate, short enough for all of them.
const LONG_ENOUGH: Duration = Duration::from_millis(60);

fn main() {
    let chunk = data::smooth(CHUNK / 4);
    if std::env::args().any(|word| word == "levels") {
        levels(&chunk);
    } else {
        rates(&chunk);
    }
}

/// Both libraries at all levels, after shuffle.
fn levels(chunk: &[u8]) {
    let shuffle = Pipeline::new(&[stated(2, &[4])], CHUNK).expect("a known filter");
    let mut workspace = Workspace::default();
    let shuffled = shuffle.encode(chunk, &mut workspace).expect("shuffle never fails").bytes.to_vec();
    let mut out = vec![0; 2 * CHUNK];
    println!("{:<14} {:>9} {:>9}", "coder", "bytes", "MiB/s");
    for level in 0..=9 {
        let (mut size, rate) = (0, measured(|| zlib(&shuffled, level, &mut out)));
        size += zlib(&shuffled, level, &mut out);
        println!("{:<14} {size:>9} {rate:>9.0}", format!("zlib {level}"));
    }
    for level in 0..=12 {
        let mut coder = Compressor::new(CompressionLvl::new(level).expect("a level of libdeflate"));
        let size = coder.zlib_compress(&shuffled, &mut out).expect("room enough");
        let rate = measured(|| coder.zlib_compress(&shuffled, &mut out).expect("room enough"));
        println!("{:<14} {size:>9} {rate:>9.0}", format!("libdeflate {level}"));
    }
}

fn rates(_chunk: &[u8]) {}

fn stated(id: u32, parameters: &[u32]) -> Stated {
    Stated { id, optional: true, parameters: parameters.to_vec() }
}

/// MiB of chunks per second, the best of some stretches: others use the machine too.
fn measured<T>(mut work: impl FnMut() -> T) -> f64 {
    work();
    let mut best = 0f64;
    for _ in 0..3 {
        let (begin, mut times) = (Instant::now(), 0);
        while begin.elapsed() < LONG_ENOUGH {
            std::hint::black_box(work());
            times += 1;
        }
        best = best.max(f64::from(times) * (CHUNK >> 20) as f64 / begin.elapsed().as_secs_f64());
    }
    best
}

fn zlib(plain: &[u8], level: i32, out: &mut [u8]) -> usize {
    let mut len = out.len() as libz_sys::uLongf;
    // SAFETY: both buffers are as long as zlib is told.
    let status = unsafe {
        libz_sys::compress2(out.as_mut_ptr(), &raw mut len, plain.as_ptr(), plain.len() as libz_sys::uLong, level)
    };
    assert_eq!(status, libz_sys::Z_OK);
    len as usize
}
