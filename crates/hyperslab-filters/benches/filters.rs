//! Rates of every filter on chunks of 1 MiB of smooth numbers: `cargo bench -p hyperslab-filters`. With `-- levels`,
//! what zlib and libdeflate make of them at each level.

#![allow(clippy::print_stdout)]

use hyperslab_filters::{BitshuffleCodec, BloscCodec, BloscShuffle, FilterSpec, Pipeline, Workspace};
use libdeflater::{CompressionLvl, Compressor};
use std::time::{Duration, Instant};

#[path = "../tests/support/data.rs"]
#[allow(dead_code)]
mod data;

const CHUNK: usize = 1 << 20;
/// Long enough for a steady rate, short enough for all of them.
const LONG_ENOUGH: Duration = Duration::from_millis(40);

fn main() {
    if std::env::args().any(|word| word == "levels") {
        for noise in [0.0, 1e-6, 1e-4, 1e-2] {
            println!("noise of {noise}");
            levels(&data::curve(CHUNK / 4, noise));
        }
    } else {
        rates(&data::smooth(CHUNK / 4));
    }
}

/// Both libraries at all levels, after shuffle; and at each of zlib the one that stands for it, side by side.
fn levels(chunk: &[u8]) {
    let shuffle = Pipeline::new(&[FilterSpec::shuffle(4)], CHUNK).expect("a known filter");
    let mut workspace = Workspace::default();
    let shuffled = shuffle.encode(chunk, &mut workspace).expect("shuffle never fails").bytes.to_vec();
    let mut out = vec![0; 2 * CHUNK];
    for level in 0..=12 {
        let mut coder = Compressor::new(CompressionLvl::new(level).expect("a level of libdeflate"));
        let size = coder.zlib_compress(&shuffled, &mut out).expect("room enough");
        let rate = measured(|| coder.zlib_compress(&shuffled, &mut out).expect("room enough"));
        println!("libdeflate {level:<2} {size:>9} bytes {rate:>6.0} MiB/s");
    }
    for level in 0..=9 {
        let mandatory = FilterSpec { optional: false, ..FilterSpec::deflate(level) };
        let ours = Pipeline::new(&[mandatory], CHUNK).expect("a known filter");
        let size = ours.encode(&shuffled, &mut workspace).expect("good data").bytes.len();
        let their_size = zlib(&shuffled, level as i32, &mut out);
        let (mut rate, mut their_rate) = (0f64, 0f64);
        for _ in 0..3 {
            rate = rate.max(measured(|| ours.encode(&shuffled, &mut workspace).map(|_| ()).expect("good data")));
            their_rate = their_rate.max(measured(|| zlib(&shuffled, level as i32, &mut out)));
        }
        println!(
            "deflate {level}: {:.3} of zlib's bytes, {:.1} times its rate ({size} and {their_size} bytes, {rate:.0} and {their_rate:.0} MiB/s)",
            size as f64 / their_size as f64,
            rate / their_rate,
        );
    }
}

/// Every filter, and shuffle with those that profit from it.
fn rates(chunk: &[u8]) {
    let (element, bytes) = (4, CHUNK as u32);
    let shuffle = || FilterSpec::shuffle(element);
    let mut cases = vec![
        ("fletcher32".to_owned(), vec![FilterSpec::fletcher32()]),
        ("lzf".to_owned(), vec![shuffle(), FilterSpec::lzf(bytes)]),
        ("lz4".to_owned(), vec![shuffle(), FilterSpec::lz4(0)]),
        ("zstd 3".to_owned(), vec![shuffle(), FilterSpec::zstd(3)]),
        ("bitshuffle".to_owned(), vec![FilterSpec::bitshuffle(element, BitshuffleCodec::None)]),
        ("bitshuffle lz4".to_owned(), vec![FilterSpec::bitshuffle(element, BitshuffleCodec::Lz4)]),
        ("bitshuffle zstd 3".to_owned(), vec![FilterSpec::bitshuffle(element, BitshuffleCodec::Zstd(3))]),
        ("deflate 4, fletcher32".to_owned(), vec![shuffle(), FilterSpec::deflate(4), FilterSpec::fletcher32()]),
    ];
    cases.extend([2, 4, 8, 16, 12].map(|element| (format!("shuffle {element}"), vec![FilterSpec::shuffle(element)])));
    cases
        .extend([0, 1, 4, 6, 9].map(|level| (format!("deflate {level}"), vec![shuffle(), FilterSpec::deflate(level)])));
    let codecs = [BloscCodec::BloscLz, BloscCodec::Lz4, BloscCodec::Lz4Hc, BloscCodec::Zlib, BloscCodec::Zstd];
    for codec in codecs {
        let one = FilterSpec::blosc(element, bytes, 5, BloscShuffle::Bytes, codec);
        let two = FilterSpec::blosc2(element, &[bytes / element], 5, BloscShuffle::Bytes, codec);
        cases.extend([(format!("blosc 5 {codec:?}"), vec![one]), (format!("blosc2 5 {codec:?}"), vec![two])]);
    }
    println!("{:<24} {:>9} {:>9} {:>9}   MiB/s of chunks", "filters", "bytes", "encode", "decode");
    for (name, filters) in cases {
        let pipeline = Pipeline::new(&filters, CHUNK).expect("known filters");
        let (mut workspace, mut back) = (Workspace::default(), vec![0; CHUNK]);
        let encoded = pipeline.encode(chunk, &mut workspace).expect("good data");
        let (stored, mask) = (encoded.bytes.to_vec(), encoded.mask);
        let encode =
            measured(|| pipeline.encode(chunk, &mut workspace).map(|encoded| encoded.bytes.len()).expect("good data"));
        let decode = measured(|| pipeline.decode(&stored, mask, &mut back, &mut workspace).expect("good data"));
        let shuffled = if filters.len() > 1 && filters[0].id == 2 { "shuffle, " } else { "" };
        println!("{:<24} {:>9} {encode:>9.0} {decode:>9.0}", format!("{shuffled}{name}"), stored.len());
    }
    zlib_rates(chunk);
}

/// zlib itself, with our shuffle.
fn zlib_rates(chunk: &[u8]) {
    let pipeline = Pipeline::new(&[FilterSpec::shuffle(4)], CHUNK).expect("a known filter");
    let (mut workspace, mut out, mut back) = (Workspace::default(), vec![0; 2 * CHUNK], vec![0; CHUNK]);
    for level in [1, 4, 6, 9] {
        let mut len = 0;
        let encode = measured(|| {
            let shuffled = pipeline.encode(chunk, &mut workspace).expect("shuffle never fails").bytes;
            len = zlib(shuffled, level, &mut out);
        });
        let mut workspace = Workspace::default();
        let mut plain = vec![0; CHUNK];
        let decode = measured(|| {
            unzlib(&out[..len], &mut plain);
            pipeline.decode(&plain, 0, &mut back, &mut workspace).expect("shuffle never fails");
        });
        assert!(back == chunk);
        println!("{:<24} {len:>9} {encode:>9.0} {decode:>9.0}", format!("shuffle, zlib {level}"));
    }
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

fn unzlib(stored: &[u8], plain: &mut [u8]) {
    let mut len = plain.len() as libz_sys::uLongf;
    // SAFETY: both buffers are as long as zlib is told.
    let status = unsafe {
        libz_sys::uncompress(plain.as_mut_ptr(), &raw mut len, stored.as_ptr(), stored.len() as libz_sys::uLong)
    };
    assert_eq!((status, len as usize), (libz_sys::Z_OK, plain.len()));
}
