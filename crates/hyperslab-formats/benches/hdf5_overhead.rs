//! What the `hdf5` format adds to libhdf5: the same H5Dwrite and H5Dread calls, made through the format and made
//! directly, taking turns in one run, on files in the page cache. Prints medians and their ratio.
//!
//! `cargo bench -p hyperslab-formats --bench hdf5_overhead -- --check` exits non-zero when the ratio misses the target.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hdf5_metno_sys::h5d::{H5Dclose, H5Dcreate2, H5Dread, H5Dwrite};
use hdf5_metno_sys::h5f::{H5F_ACC_TRUNC, H5Fclose, H5Fcreate};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5s::{H5S_SELECT_SET, H5Sclose, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::{H5T_IEEE_F32LE, H5T_NATIVE_FLOAT};
use hdf5_metno_sys::{LOCK, h5::H5open};
use hyperslab_comm::Solo;
use hyperslab_core::{ArraySpec, Datatype, MemoryView, MemoryViewMut, Open, Selection, StackElement, Transfer};
use hyperslab_formats::build;
use std::path::Path;
use std::time::Instant;

const BYTES: u64 = 64 << 20;
const REPETITIONS: usize = 15;
const TARGET: f64 = 1.05;

fn main() {
    let check = std::env::args().any(|arg| arg == "--check");
    let dir = tempfile::tempdir().unwrap();
    let mut missed = false;
    println!("{:6} {:>8} {:>12} {:>12} {:>8}", "what", "call", "direct", "format", "ratio");
    for call in [1 << 20, 16 << 20] {
        // The same memory for both sides: where a buffer lies matters more than what is measured here.
        let data: Vec<f32> = (0..call / 4).map(|i| i as f32).collect();
        let mut buffer = vec![1f32; data.len()];
        let (mut direct, mut format) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for repetition in 0..REPETITIONS + 2 {
            // Who goes first changes, so that neither profits from the other.
            let mut turn = [0, 1];
            turn.rotate_left(repetition % 2);
            for who in turn {
                let path = dir.path().join(format!("{who}.h5"));
                let times = if who == 0 {
                    direct_run(&path, &data, &mut buffer)
                } else {
                    format_run(&path, bytes(&data), bytes_mut(&mut buffer))
                };
                std::fs::remove_file(&path).unwrap();
                if repetition >= 2 {
                    let kept = if who == 0 { &mut direct } else { &mut format };
                    kept[0].push(times[0]);
                    kept[1].push(times[1]);
                }
            }
        }
        for (what, at) in [("write", 0), ("read", 1)] {
            let (a, b) = (median(&mut direct[at]), median(&mut format[at]));
            let ratio = b / a;
            missed |= ratio > TARGET;
            let speed = |seconds: f64| format!("{:.2} GiB/s", BYTES as f64 / seconds / f64::from(1 << 30));
            println!("{what:6} {:>5}MiB {:>12} {:>12} {ratio:>8.3}", call >> 20, speed(a), speed(b));
        }
    }
    println!("target: at most {TARGET}; {REPETITIONS} repetitions of {} MiB, medians, page cache", BYTES >> 20);
    if check && missed {
        std::process::exit(1);
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn bytes(data: &[f32]) -> &[u8] {
    // SAFETY: floats have no padding and need more alignment than bytes.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

fn bytes_mut(data: &mut [f32]) -> &mut [u8] {
    // SAFETY: as above, and any bytes are a valid float.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), size_of_val(data)) }
}

/// Seconds to write and to read everything through the format.
fn format_run(path: &Path, data: &[u8], buffer: &mut [u8]) -> [f64; 2] {
    let file = build(&StackElement::plain("hdf5")).unwrap().open(path, Open::Truncate, &Solo::shared()).unwrap();
    let array = file.create("a", &ArraySpec::new(Datatype::F32, &[BYTES / 4])).unwrap();
    let step = data.len() as u64 / 4;
    let start = Instant::now();
    for at in 0..BYTES / 4 / step {
        let slab = Selection::dense(&[at * step], &[step]).unwrap();
        array.write(&slab, MemoryView::packed(data), Transfer::Independent).unwrap();
    }
    let write = start.elapsed().as_secs_f64();
    let start = Instant::now();
    for at in 0..BYTES / 4 / step {
        let slab = Selection::dense(&[at * step], &[step]).unwrap();
        array.read(&slab, MemoryViewMut::packed(buffer), Transfer::Independent).unwrap();
    }
    let read = start.elapsed().as_secs_f64();
    file.close().unwrap();
    [write, read]
}

/// Seconds to write and to read everything with libhdf5 itself.
fn direct_run(path: &Path, data: &[f32], buffer: &mut [f32]) -> [f64; 2] {
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let _guard = LOCK.lock();
    let step = data.len() as u64;
    // SAFETY: plain use of libhdf5 under its lock; buffers have as many elements as each selection.
    unsafe {
        H5open();
        let file = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        let space = H5Screate_simple(1, [BYTES / 4].as_ptr(), std::ptr::null());
        let array = H5Dcreate2(file, c"a".as_ptr(), *H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        let memory = H5Screate_simple(1, [step].as_ptr(), std::ptr::null());
        let select = |at: u64| -> hid_t {
            let (start, one) = ([at * step], [1u64]);
            let status = H5Sselect_hyperslab(
                space,
                H5S_SELECT_SET,
                start.as_ptr(),
                std::ptr::null(),
                one.as_ptr(),
                [step].as_ptr(),
            );
            assert!(status >= 0);
            space
        };
        let start = Instant::now();
        for at in 0..BYTES / 4 / step {
            let status = H5Dwrite(array, *H5T_NATIVE_FLOAT, memory, select(at), H5P_DEFAULT, data.as_ptr().cast());
            assert!(status >= 0);
        }
        let write = start.elapsed().as_secs_f64();
        let start = Instant::now();
        for at in 0..BYTES / 4 / step {
            let into = buffer.as_mut_ptr().cast();
            assert!(H5Dread(array, *H5T_NATIVE_FLOAT, memory, select(at), H5P_DEFAULT, into) >= 0);
        }
        let read = start.elapsed().as_secs_f64();
        assert!(H5Sclose(memory) >= 0 && H5Sclose(space) >= 0 && H5Dclose(array) >= 0 && H5Fclose(file) >= 0);
        [write, read]
    }
}
