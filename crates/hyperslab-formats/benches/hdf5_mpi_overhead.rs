//! What the `hdf5` format adds to parallel libhdf5: two ranks write and read their halves of 8 arrays of one dimension,
//! collectively and independently, through the format and by the bare H5Dwrite and H5Dread calls on a file of the mpio
//! driver, taking turns array by array on two files in the page cache. Prints medians of the slower rank's time and their
//! ratio. Starts itself under `mpirun -n 2`.
//!
//! `cargo bench -p hyperslab-formats --no-default-features --features parallel-hdf5 --bench hdf5_mpi_overhead -- --check`
//! exits non-zero when the ratio misses the target.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hdf5_metno_sys::h5d::{H5Dclose, H5Dcreate2, H5Dread, H5Dwrite};
use hdf5_metno_sys::h5f::{H5F_ACC_TRUNC, H5Fclose, H5Fcreate};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{
    H5FD_mpio_xfer_t, H5P_CLS_DATASET_XFER, H5P_CLS_FILE_ACCESS, H5P_DEFAULT, H5Pclose, H5Pcreate, H5Pset_alignment,
    H5Pset_dxpl_mpio, H5Pset_fapl_mpio,
};
use hdf5_metno_sys::h5s::{H5S_SELECT_SET, H5Sclose, H5Screate_simple, H5Sselect_hyperslab};
use hdf5_metno_sys::h5t::H5T_IEEE_F32LE;
use hdf5_metno_sys::{LOCK, h5::H5open};
use hyperslab_comm::MpiJob;
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, MemoryView, MemoryViewMut, OpenMode, Reduce, Selection, Stack,
    TransferMode,
};
use hyperslab_formats::build;
use hyperslab_testkit::under_mpi;
use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ARRAYS: usize = 8;
/// Bytes of each rank in each array.
const BYTES: u64 = 8 << 20;
const PASSES: usize = 21;
const TARGET: f64 = 1.05;

/// One way to write and read this rank's part of an array.
trait Side {
    fn write(&self, array: usize, data: &[u8], transfer: TransferMode);
    fn read(&self, array: usize, buffer: &mut [u8], transfer: TransferMode);
    fn close(self: Box<Self>);
}

fn main() {
    if let Some(task) = under_mpi::task() {
        let (check, folder) = task.split_once(' ').unwrap();
        return measure(Path::new(folder), check == "check");
    }
    let folder = tempfile::tempdir().unwrap();
    let check = if std::env::args().any(|arg| arg == "--check") { "check" } else { "-" };
    let task = format!("{check} {}", folder.path().display());
    let ended = under_mpi::run(2, &task, Duration::from_secs(600)).unwrap();
    print!("{}", ended.stdout);
    assert!(ended.success(), "missed or failed: {}\n{}", ended.status, ended.stderr);
}

fn measure(folder: &Path, check: bool) {
    let job = MpiJob::start().unwrap();
    let comm = job.world();
    let data: Vec<u8> = (0..BYTES).map(|i| (i % 251) as u8).collect();
    let mut buffer = vec![1u8; data.len()];
    let paths = ["direct.h5", "format.h5"].map(|name| folder.join(name));
    let mut missed = false;
    if comm.rank() == 0 {
        println!("{:12} {:6} {:>12} {:>12} {:>7}", "transfer", "what", "direct", "format", "ratio");
    }
    for transfer in [TransferMode::Collective, TransferMode::Independent] {
        let mut times: [[Vec<f64>; 2]; 2] = Default::default(); // by write or read, by side
        for pass in 0..=PASSES {
            let sides: [Box<dyn Side>; 2] =
                [Box::new(Direct::new(&paths[0], &comm)), Box::new(Through::new(&paths[1], &comm))];
            for (what, kept) in times.iter_mut().enumerate() {
                for array in 0..ARRAYS {
                    // Who goes first changes, so that neither profits from the other.
                    let first = (pass + array) % 2;
                    for who in [first, 1 - first] {
                        comm.barrier().unwrap();
                        let start = Instant::now();
                        match what {
                            0 => sides[who].write(array, &data, transfer),
                            _ => sides[who].read(array, &mut buffer, transfer),
                        }
                        let mut slowest = [start.elapsed().as_secs_f64()];
                        comm.all_reduce_f64(&mut slowest, Reduce::Max).unwrap();
                        if pass > 0 {
                            kept[who].push(slowest[0]);
                        }
                    }
                }
            }
            assert!(buffer == data);
            sides.into_iter().for_each(Side::close);
        }
        for (what, [direct, format]) in ["write", "read"].iter().zip(&mut times) {
            let (direct, format) = (median(direct), median(format));
            let ratio = format / direct;
            missed |= ratio > TARGET;
            let speed = |seconds: f64| format!("{:.2} GiB/s", 2.0 * BYTES as f64 / seconds / f64::from(1 << 30));
            if comm.rank() == 0 {
                let transfer = format!("{transfer:?}");
                println!("{transfer:12} {what:6} {:>12} {:>12} {ratio:>7.3}", speed(direct), speed(format));
            }
        }
    }
    if comm.rank() == 0 {
        println!(
            "target: at most {TARGET}; medians of {} transfers of {} MiB by each of {} ranks, page cache",
            PASSES * ARRAYS,
            BYTES >> 20,
            comm.size()
        );
    }
    drop(comm);
    drop(job);
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
    arrays: Vec<Arc<dyn Array>>,
    mine: Selection,
}

impl Through {
    fn new(path: &Path, comm: &Arc<dyn Communicator>) -> Self {
        let format = build(&"hdf5(align=1MiB)".parse::<Stack>().unwrap().format).unwrap();
        let file = format.open(path, OpenMode::Truncate, comm).unwrap();
        let elements = BYTES / 4;
        let spec = ArraySpec::new(Datatype::F32, &[elements * comm.size() as u64]);
        let arrays = (0..ARRAYS).map(|n| file.create(&format!("a{n}"), &spec).unwrap()).collect();
        let mine = Selection::dense(&[comm.rank() as u64 * elements], &[elements]).unwrap();
        Self { file, arrays, mine }
    }
}

impl Side for Through {
    fn write(&self, array: usize, data: &[u8], transfer: TransferMode) {
        self.arrays[array].write(&self.mine, MemoryView::packed(data), transfer).unwrap();
    }

    fn read(&self, array: usize, buffer: &mut [u8], transfer: TransferMode) {
        self.arrays[array].read(&self.mine, MemoryViewMut::packed(buffer), transfer).unwrap();
    }

    fn close(self: Box<Self>) {
        assert!(self.file.diagnostics().is_empty());
        self.file.close().unwrap();
    }
}

/// With libhdf5 itself.
struct Direct {
    file: hid_t,
    arrays: Vec<hid_t>,
    space: hid_t,
    memory: hid_t,
    collective: hid_t,
}

impl Direct {
    fn new(path: &Path, comm: &Arc<dyn Communicator>) -> Self {
        let name = CString::new(path.to_str().unwrap()).unwrap();
        let elements = BYTES / 4;
        let _guard = LOCK.lock();
        // SAFETY: plain use of libhdf5 under its lock, on a live communicator.
        unsafe {
            H5open();
            let access = H5Pcreate(*H5P_CLS_FILE_ACCESS);
            let group = mpi_sys::RSMPI_Comm_f2c(comm.mpi_handle().unwrap());
            assert!(H5Pset_fapl_mpio(access, group, mpi_sys::RSMPI_INFO_NULL) >= 0);
            // Alike for both, so that copies to and from the page cache are.
            assert!(H5Pset_alignment(access, 64 << 10, 1 << 20) >= 0);
            let file = H5Fcreate(name.as_ptr(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
            let space = H5Screate_simple(1, [elements * comm.size() as u64].as_ptr(), std::ptr::null());
            let arrays: Vec<hid_t> = (0..ARRAYS)
                .map(|n| {
                    let name = CString::new(format!("a{n}")).unwrap();
                    H5Dcreate2(file, name.as_ptr(), *H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                })
                .collect();
            let memory = H5Screate_simple(1, [elements].as_ptr(), std::ptr::null());
            let (start, count) = ([comm.rank() as u64 * elements], [1u64]);
            let none = std::ptr::null();
            let block = [elements];
            let selected =
                H5Sselect_hyperslab(space, H5S_SELECT_SET, start.as_ptr(), none, count.as_ptr(), block.as_ptr());
            let collective = H5Pcreate(*H5P_CLS_DATASET_XFER);
            assert!(H5Pset_dxpl_mpio(collective, H5FD_mpio_xfer_t::H5FD_MPIO_COLLECTIVE) >= 0);
            assert!(file >= 0 && space >= 0 && memory >= 0 && selected >= 0 && arrays.iter().all(|&a| a >= 0));
            H5Pclose(access);
            Self { file, arrays, space, memory, collective }
        }
    }

    fn list(&self, transfer: TransferMode) -> hid_t {
        if transfer == TransferMode::Collective { self.collective } else { H5P_DEFAULT }
    }
}

impl Side for Direct {
    fn write(&self, array: usize, data: &[u8], transfer: TransferMode) {
        assert_eq!(data.len() as u64, BYTES);
        let (array, list) = (self.arrays[array], self.list(transfer));
        let _guard = LOCK.lock();
        // SAFETY: identifiers are live, the data has as many bytes as are selected.
        let status = unsafe { H5Dwrite(array, *H5T_IEEE_F32LE, self.memory, self.space, list, data.as_ptr().cast()) };
        assert!(status >= 0);
    }

    fn read(&self, array: usize, buffer: &mut [u8], transfer: TransferMode) {
        assert_eq!(buffer.len() as u64, BYTES);
        let (array, list) = (self.arrays[array], self.list(transfer));
        let _guard = LOCK.lock();
        // SAFETY: identifiers are live, the buffer has as many bytes as are selected.
        let status =
            unsafe { H5Dread(array, *H5T_IEEE_F32LE, self.memory, self.space, list, buffer.as_mut_ptr().cast()) };
        assert!(status >= 0);
    }

    fn close(self: Box<Self>) {
        let _guard = LOCK.lock();
        // SAFETY: identifiers are live and not used again.
        let status = unsafe {
            let arrays = self.arrays.iter().all(|&array| H5Dclose(array) >= 0);
            let rest = [H5Sclose(self.memory), H5Sclose(self.space), H5Pclose(self.collective), H5Fclose(self.file)];
            arrays && rest.iter().all(|&s| s >= 0)
        };
        assert!(status);
    }
}
