//! What the `hdf5` format adds to libhdf5: the same H5Dwrite and H5Dread calls, made through the format and made
//! directly, taking turns call by call on two files in the page cache. Prints medians over all calls and their ratio.
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
use hyperslab_core::{
    Array, ArraySpec, Container, Datatype, MemoryView, MemoryViewMut, OpenMode, Selection, StackElement, TransferMode,
};
use hyperslab_formats::build;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const BYTES: u64 = 64 << 20;
/// Calls of each size and kind; their number makes the median steady.
const CALLS: u64 = 640;
const TARGET: f64 = 1.05;

/// One way to write and read a piece of the array.
trait Side {
    fn write(&self, piece: u64, data: &[u8]);
    fn read(&self, piece: u64, buffer: &mut [u8]);
    fn close(self: Box<Self>);
}

fn main() {
    let check = std::env::args().any(|arg| arg == "--check");
    let dir = tempfile::tempdir().unwrap();
    let mut missed = false;
    println!("{:6} {:>6} {:>12} {:>12} {:>7}", "what", "call", "direct", "format", "ratio");
    for call in [1u64 << 20, 16 << 20] {
        let data: Vec<u8> = (0..call).map(|i| (i % 251) as u8).collect();
        let mut buffer = vec![1u8; data.len()];
        let mut times: [[Vec<f64>; 2]; 2] = Default::default(); // by write or read, by side
        for pass in 0..=CALLS / (BYTES / call) {
            let paths = ["direct.h5", "format.h5"].map(|name| dir.path().join(name));
            let sides: [Box<dyn Side>; 2] =
                [Box::new(Direct::new(&paths[0], call)), Box::new(Through::new(&paths[1], call))];
            for (what, kept) in times.iter_mut().enumerate() {
                for piece in 0..BYTES / call {
                    // Who goes first changes, so that neither profits from the other.
                    let first = ((pass + piece) % 2) as usize;
                    for who in [first, 1 - first] {
                        let start = Instant::now();
                        match what {
                            0 => sides[who].write(piece, &data),
                            _ => sides[who].read(piece, &mut buffer),
                        }
                        if pass > 0 {
                            kept[who].push(start.elapsed().as_secs_f64());
                        }
                    }
                }
            }
            sides.into_iter().for_each(Side::close);
            paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        }
        for (what, [direct, format]) in ["write", "read"].iter().zip(&mut times) {
            let (direct, format) = (median(direct), median(format));
            let ratio = format / direct;
            missed |= ratio > TARGET;
            let speed = |seconds: f64| format!("{:.2} GiB/s", call as f64 / seconds / f64::from(1 << 30));
            println!("{what:6} {:>3}MiB {:>12} {:>12} {ratio:>7.3}", call >> 20, speed(direct), speed(format));
        }
    }
    println!("target: at most {TARGET}; medians of {CALLS} calls, page cache");
    if check && missed {
        std::process::exit(1);
    }
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Through the format.
struct Through {
    file: Arc<dyn Container>,
    array: Arc<dyn Array>,
    step: u64,
}

impl Through {
    fn new(path: &Path, call: u64) -> Self {
        let format = build(&StackElement::plain("hdf5")).unwrap();
        let file = format.open(path, OpenMode::Truncate, &Solo::shared()).unwrap();
        let array = file.create("a", &ArraySpec::new(Datatype::F32, &[BYTES / 4])).unwrap();
        Self { file, array, step: call / 4 }
    }

    fn slab(&self, piece: u64) -> Selection {
        Selection::dense(&[piece * self.step], &[self.step]).unwrap()
    }
}

impl Side for Through {
    fn write(&self, piece: u64, data: &[u8]) {
        self.array.write(&self.slab(piece), MemoryView::packed(data), TransferMode::Independent).unwrap();
    }

    fn read(&self, piece: u64, buffer: &mut [u8]) {
        self.array.read(&self.slab(piece), MemoryViewMut::packed(buffer), TransferMode::Independent).unwrap();
    }

    fn close(self: Box<Self>) {
        self.file.close().unwrap();
    }
}

/// With libhdf5 itself.
struct Direct {
    file: hid_t,
    array: hid_t,
    space: hid_t,
    memory: hid_t,
    step: u64,
}

impl Direct {
    fn new(path: &Path, call: u64) -> Self {
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let step = call / 4;
        let _guard = LOCK.lock();
        // SAFETY: plain use of libhdf5 under its lock.
        unsafe {
            H5open();
            let file = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
            let space = H5Screate_simple(1, [BYTES / 4].as_ptr(), std::ptr::null());
            let array = H5Dcreate2(file, c"a".as_ptr(), *H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
            let memory = H5Screate_simple(1, [step].as_ptr(), std::ptr::null());
            assert!(file >= 0 && space >= 0 && array >= 0 && memory >= 0);
            Self { file, array, space, memory, step }
        }
    }

    fn select(&self, piece: u64) {
        let (start, count, block) = ([piece * self.step], [1u64], [self.step]);
        // SAFETY: the space is live and has one dimension.
        let status = unsafe {
            H5Sselect_hyperslab(
                self.space,
                H5S_SELECT_SET,
                start.as_ptr(),
                std::ptr::null(),
                count.as_ptr(),
                block.as_ptr(),
            )
        };
        assert!(status >= 0);
    }
}

impl Side for Direct {
    fn write(&self, piece: u64, data: &[u8]) {
        assert_eq!(data.len() as u64, self.step * 4);
        let _guard = LOCK.lock();
        self.select(piece);
        // SAFETY: identifiers are live, the data has as many bytes as are selected.
        let status = unsafe {
            H5Dwrite(self.array, *H5T_NATIVE_FLOAT, self.memory, self.space, H5P_DEFAULT, data.as_ptr().cast())
        };
        assert!(status >= 0);
    }

    fn read(&self, piece: u64, buffer: &mut [u8]) {
        assert_eq!(buffer.len() as u64, self.step * 4);
        let _guard = LOCK.lock();
        self.select(piece);
        // SAFETY: identifiers are live, the buffer has as many bytes as are selected.
        let status = unsafe {
            H5Dread(self.array, *H5T_NATIVE_FLOAT, self.memory, self.space, H5P_DEFAULT, buffer.as_mut_ptr().cast())
        };
        assert!(status >= 0);
    }

    fn close(self: Box<Self>) {
        let _guard = LOCK.lock();
        // SAFETY: identifiers are live and not used again.
        let status =
            unsafe { [H5Sclose(self.memory), H5Sclose(self.space), H5Dclose(self.array), H5Fclose(self.file)] };
        assert!(status.iter().all(|&s| s >= 0));
    }
}
