//! What the suite adds to libhdf5: whole particle benchmarks through runner and `hdf5` format, and the same files made
//! and read by direct calls of libhdf5, in turns on files in the page cache. Observed time is everything from creating
//! or opening the file to its closing, without the making of data, on either side.
//!
//! `cargo bench -p hyperslab-run --bench suite_overhead -- [--check] [--repeat N]`
//!
//! Interleaved patterns are measured too: equal times show that libhdf5's own conversion is measured, not one of ours.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hdf5_metno_sys::LOCK;
use hdf5_metno_sys::h5::H5open;
use hdf5_metno_sys::h5a::{H5Aclose, H5Acreate2, H5Awrite};
use hdf5_metno_sys::h5d::{H5Dclose, H5Dcreate2, H5Dopen2, H5Dread, H5Dwrite};
use hdf5_metno_sys::h5f::{H5F_ACC_EXCL, H5F_ACC_RDONLY, H5F_scope_t, H5Fclose, H5Fcreate, H5Fflush, H5Fopen};
use hdf5_metno_sys::h5g::{H5Gclose, H5Gcreate2, H5Gopen2};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_SELECT_SET, H5S_class_t, H5Sclose, H5Screate, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::{H5T_NATIVE_FLOAT, H5T_NATIVE_INT32, H5T_NATIVE_INT64, H5T_class_t, H5Tcreate, H5Tinsert};
use hyperslab_core::Format;
use hyperslab_kernels::{FilePattern, MemoryPattern, Particles};
use hyperslab_run::{Case, Progress, run_case};
use std::ffi::CString;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As many as a rank has in h5bench's samples.
const PARTICLES: u64 = 4 << 20;
/// Few, so that the system does not begin to write pages out while they are made.
const STEPS: u64 = 1;
static SEED: i64 = 0;
const TARGET: f64 = 1.05;
const NAMES: [&str; 8] = ["x", "y", "z", "px", "py", "pz", "id_1", "id_2"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let repeat = arguments.iter().position(|a| a == "--repeat").and_then(|i| arguments.get(i + 1));
    let repeat: usize = repeat.and_then(|n| n.parse().ok()).unwrap_or(31);
    let format = hyperslab_formats::build(&hyperslab_core::StackElement::plain("hdf5")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    println!(
        "{} MiB per run; medians of {repeat} pairs, page cache\n\n{:<34} {:>14} {:>14} {:>7} {:>11}  target",
        (PARTICLES * STEPS * 32) >> 20,
        "memory to file",
        "direct",
        "suite",
        "ratio",
        "spread"
    );
    let mut missed = false;
    use FilePattern as F;
    use MemoryPattern as M;
    for (memory, pattern, name, target) in [
        (M::Contiguous, F::Contiguous, "contiguous to contiguous", true),
        (M::Contiguous, F::Interleaved, "contiguous to interleaved", false),
        (M::Interleaved, F::Contiguous, "interleaved to contiguous", false),
        (M::Interleaved, F::Interleaved, "interleaved to interleaved", false),
    ] {
        let particles = Particles { time_steps: STEPS, memory, pattern, ..Particles::new("suite.h5", 1, &[PARTICLES]) };
        let types = Types::new(memory, pattern);
        let path = directory.path().join("direct.h5");
        // By write or read: times of direct calls and of the suite.
        let mut times: [[Vec<f64>; 2]; 2] = Default::default();
        for pair in 0..=repeat {
            for (what, kept) in times.iter_mut().enumerate() {
                for who in [pair % 2, 1 - pair % 2] {
                    let seconds = match (who, what) {
                        (0, 0) => {
                            let _ = std::fs::remove_file(&path);
                            in_a_thread(|| types.write(&path))
                        }
                        (0, _) => in_a_thread(|| types.read(&path)),
                        (_, 0) => suite(&particles.write().unwrap(), &format, directory.path()),
                        (_, _) => suite(&particles.read().unwrap(), &format, directory.path()),
                    };
                    if pair > 0 {
                        kept[who].push(seconds);
                    }
                }
            }
        }
        for (what, [direct, suite]) in ["write", "read"].iter().zip(&mut times) {
            let mut ratios: Vec<f64> = suite.iter().zip(direct.iter()).map(|(s, d)| s / d).collect();
            let ratio = median(&mut ratios);
            let bytes = (PARTICLES * STEPS * 32) as f64;
            let speed = |seconds: f64| format!("{:.2} GiB/s", bytes / seconds / f64::from(1 << 30));
            let verdict = match target {
                true if ratio > TARGET => {
                    missed = true;
                    format!("<= {TARGET} missed")
                }
                true => format!("<= {TARGET} ok"),
                false => String::new(),
            };
            println!(
                "{:<34} {:>14} {:>14} {ratio:>7.3} {:>11}  {verdict}",
                format!("{what} {name}"),
                speed(median(direct)),
                speed(median(suite)),
                format!("{:.2}-{:.2}", ratios[0], ratios[ratios.len() - 1]),
            );
        }
    }
    if missed && arguments.iter().any(|a| a == "--check") {
        std::process::exit(1);
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The suite gives every rank a new thread; the direct calls get one too, with as little in its caches.
fn in_a_thread(work: impl FnOnce() -> f64 + Send) -> f64 {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Observed seconds of one run through the suite.
fn suite(workload: &hyperslab_core::workload::Workload, format: &Arc<dyn Format>, directory: &Path) -> f64 {
    let outcome =
        run_case(&Case { overwrite: true, ..Case::new(workload, format.clone(), directory, &Progress::default()) });
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    outcome.repetitions[0].ranks[0].observed
}

/// The transfers of a time step, made by hand.
struct Types {
    /// Name and type of each dataset in the file.
    datasets: Vec<(CString, hid_t)>,
    /// Dataset and memory type of each transfer.
    transfers: Vec<(usize, hid_t)>,
    /// Bytes of an element in memory.
    element: usize,
}

fn ok(id: hid_t) -> hid_t {
    assert!(id >= 0, "libhdf5 failed");
    id
}

fn done(status: i32) {
    assert!(status >= 0, "libhdf5 failed");
}

/// A compound of `size` bytes with fields at offsets.
unsafe fn compound(size: usize, fields: &[(usize, usize)]) -> hid_t {
    // SAFETY: names end with NUL, types are live.
    unsafe {
        let id = ok(H5Tcreate(H5T_class_t::H5T_COMPOUND, size));
        for &(field, offset) in fields {
            let name = CString::new(NAMES[field]).unwrap();
            done(H5Tinsert(id, name.as_ptr(), offset, number(field)));
        }
        id
    }
}

fn number(field: usize) -> hid_t {
    if NAMES[field] == "id_1" { *H5T_NATIVE_INT32 } else { *H5T_NATIVE_FLOAT }
}

impl Types {
    fn new(memory: MemoryPattern, pattern: FilePattern) -> Self {
        let _guard = LOCK.lock();
        let all: Vec<(usize, usize)> = (0..8).map(|field| (field, 4 * field)).collect();
        let name = |field: usize| CString::new(NAMES[field]).unwrap();
        use FilePattern as F;
        use MemoryPattern as M;
        // SAFETY: plain use of libhdf5 under its lock.
        unsafe {
            done(H5open());
            let (datasets, transfers) = match (memory, pattern) {
                (M::Contiguous, F::Contiguous) => {
                    ((0..8).map(|f| (name(f), number(f))).collect(), (0..8).map(|f| (f, number(f))).collect())
                }
                (M::Contiguous, F::Interleaved) => (
                    vec![(c"particles".into(), compound(32, &all))],
                    (0..8).map(|f| (0, compound(4, &[(f, 0)]))).collect(),
                ),
                (M::Interleaved, F::Contiguous) => (
                    (0..8).map(|f| (name(f), compound(4, &[(f, 0)]))).collect(),
                    (0..8).map(|f| (f, compound(32, &[(f, 4 * f)]))).collect(),
                ),
                (M::Interleaved, F::Interleaved) => {
                    (vec![(c"particles".into(), compound(32, &all))], vec![(0, compound(32, &all))])
                }
            };
            let element = if memory == M::Contiguous { 4 } else { 32 };
            Self { datasets, transfers, element }
        }
    }

    /// Makes the file; seconds without the making of data.
    fn write(&self, path: &Path) -> f64 {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let mut data = vec![1u8; self.element * PARTICLES as usize];
        let mut excluded = Duration::ZERO;
        let _guard = LOCK.lock();
        let begin = Instant::now();
        // SAFETY: identifiers are live, the data has as many bytes as are selected.
        unsafe {
            let file = ok(H5Fcreate(name.as_ptr(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
            // The suite marks its files. Without the mark, data would begin at other offsets, and how fast the system
            // copies depends on them.
            let scalar = ok(H5Screate(H5S_class_t::H5S_SCALAR));
            let mark = c"hyperslab_seed".as_ptr();
            let mark = ok(H5Acreate2(file, mark, *H5T_NATIVE_INT64, scalar, H5P_DEFAULT, H5P_DEFAULT));
            done(H5Awrite(mark, *H5T_NATIVE_INT64, (&raw const SEED).cast()));
            done(H5Aclose(mark));
            done(H5Sclose(scalar));
            for step in 0..STEPS {
                let group = CString::new(format!("Timestep_{step}")).unwrap();
                let group = ok(H5Gcreate2(file, group.as_ptr(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
                let space = ok(H5Screate_simple(1, [PARTICLES].as_ptr(), std::ptr::null()));
                let datasets: Vec<hid_t> = self
                    .datasets
                    .iter()
                    .map(|(name, dtype)| {
                        ok(H5Dcreate2(group, name.as_ptr(), *dtype, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT))
                    })
                    .collect();
                select_all(space);
                for (dataset, dtype) in &self.transfers {
                    // The suite makes new data before every write; so that caches are alike, so does this.
                    let making = Instant::now();
                    let value = step as u8 ^ *dataset as u8;
                    data.iter_mut().for_each(|byte| *byte = byte.wrapping_add(value));
                    black_box(&mut data);
                    excluded += making.elapsed();
                    done(H5Dwrite(datasets[*dataset], *dtype, space, space, H5P_DEFAULT, data.as_ptr().cast()));
                }
                datasets.into_iter().for_each(|dataset| done(H5Dclose(dataset)));
                done(H5Sclose(space));
                done(H5Gclose(group));
            }
            done(H5Fflush(file, H5F_scope_t::H5F_SCOPE_LOCAL));
            done(H5Fclose(file));
        }
        (begin.elapsed() - excluded).as_secs_f64()
    }

    /// Reads the file; seconds.
    fn read(&self, path: &Path) -> f64 {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let mut data = vec![1u8; self.element * PARTICLES as usize];
        let _guard = LOCK.lock();
        let begin = Instant::now();
        // SAFETY: identifiers are live, the buffer has as many bytes as are selected.
        unsafe {
            let file = ok(H5Fopen(name.as_ptr(), H5F_ACC_RDONLY, H5P_DEFAULT));
            for step in 0..STEPS {
                let group = CString::new(format!("Timestep_{step}")).unwrap();
                let group = ok(H5Gopen2(file, group.as_ptr(), H5P_DEFAULT));
                let datasets: Vec<hid_t> =
                    self.datasets.iter().map(|(name, _)| ok(H5Dopen2(group, name.as_ptr(), H5P_DEFAULT))).collect();
                let space = ok(H5Screate_simple(1, [PARTICLES].as_ptr(), std::ptr::null()));
                select_all(space);
                for (dataset, dtype) in &self.transfers {
                    done(H5Dread(datasets[*dataset], *dtype, space, space, H5P_DEFAULT, data.as_mut_ptr().cast()));
                    black_box(&mut data);
                }
                datasets.into_iter().for_each(|dataset| done(H5Dclose(dataset)));
                done(H5Sclose(space));
                done(H5Gclose(group));
            }
            done(H5Fclose(file));
        }
        begin.elapsed().as_secs_f64()
    }
}

/// Selects all particles as a hyperslab, as a rank does.
unsafe fn select_all(space: hid_t) {
    let (start, count, block) = ([0u64], [1u64], [PARTICLES]);
    // SAFETY: the space is live and has one dimension.
    done(unsafe {
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start.as_ptr(), std::ptr::null(), count.as_ptr(), block.as_ptr())
    });
}
