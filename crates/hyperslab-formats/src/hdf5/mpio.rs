//! Functions that only parallel libhdf5 has: the MPI-IO and subfiling drivers, and collective transfers.

use super::errors;
use super::library::{Id, c_text, done, hid_t};
use super::options::{ChunkIo, Concentrators, Options};
use super::properties;
use hdf5_metno_sys::h5d::H5D_mpio_actual_io_mode_t;
use hdf5_metno_sys::h5p::{self, H5FD_mpio_chunk_opt_t, H5FD_mpio_xfer_t};
use hyperslab_core::{Error, Result};
use mpi_sys::{MPI_Comm, MPI_Info};
use std::ffi::{CStr, c_int};

unsafe extern "C" {
    fn H5Pget_mpio_actual_io_mode(list: hid_t, mode: *mut H5D_mpio_actual_io_mode_t) -> c_int;
    fn H5Pget_mpio_no_collective_cause(list: hid_t, local: *mut u32, global: *mut u32) -> c_int;
}

/// `H5FD_subfiling_params_t`.
#[repr(C)]
#[derive(Default)]
struct Striping {
    selection: c_int,
    stripe_size: i64,
    stripe_count: i32,
}

/// `H5FD_subfiling_config_t`.
#[repr(C)]
#[derive(Default)]
struct SubfilingConfig {
    magic: u32,
    version: u32,
    concentrator_list: hid_t,
    require_concentrators: bool,
    striping: Striping,
}

/// `SELECT_IOC_EVERY_NTH_RANK`, where n is 1 unless the environment says otherwise.
const EVERY_NTH_RANK: c_int = 1;
/// `H5D_SELECTION_IO_MODE_OFF`.
const SELECTION_IO_OFF: c_int = 1;
/// Environment variables of libhdf5.
const PER_NODE: &str = "H5FD_SUBFILING_IOC_PER_NODE";
const ELSEWHERE: [&str; 2] = ["H5FD_SUBFILING_SUBFILE_PREFIX", "H5FD_SUBFILING_CONFIG_FILE_PREFIX"];

/// A function that not every build of libhdf5 has.
///
/// # Safety
/// `T` is the type of a pointer to that function.
unsafe fn symbol<T: Copy>(name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<*mut libc::c_void>()) };
    // SAFETY: the name ends in NUL; what is found is a function of type `T`, as the caller promises.
    unsafe {
        let found = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!found.is_null()).then(|| std::mem::transmute_copy(&found))
    }
}

/// Whether MPI has been started in this process, though it may have ended since.
pub(super) fn started() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time; the flag is a variable of our own.
    unsafe { mpi_sys::MPI_Initialized(&raw mut flag) };
    flag != 0
}

/// Whether MPI has ended, and libhdf5 with it.
pub(super) fn ended() -> bool {
    let mut flag = 0;
    // SAFETY: may be called at any time; the flag is a variable of our own.
    unsafe { mpi_sys::MPI_Finalized(&raw mut flag) };
    flag != 0
}

/// The communicator behind a handle.
fn communicator(handle: i32) -> MPI_Comm {
    // SAFETY: converts a number that MPI gave for a live communicator.
    unsafe { mpi_sys::RSMPI_Comm_f2c(handle) }
}

/// Hints for MPI-IO, given back when dropped.
struct Hints(MPI_Info);

impl Hints {
    fn new(pairs: &[(String, String)]) -> Result<Self> {
        // SAFETY: a constant of the MPI library.
        let mut hints = Self(unsafe { mpi_sys::RSMPI_INFO_NULL });
        if pairs.is_empty() {
            return Ok(hints);
        }
        let check = |status: c_int, what: &str| match status {
            0 => Ok(()),
            _ => Err(Error::invalid("open", format!("MPI does not take {what}")).hint("leave the option hints out")),
        };
        // SAFETY: MPI runs, texts end in NUL.
        unsafe {
            check(mpi_sys::MPI_Info_create(&raw mut hints.0), "hints")?;
            for (key, value) in pairs {
                let (key_text, value_text) = (c_text("open", key)?, c_text("open", value)?);
                check(mpi_sys::MPI_Info_set(hints.0, key_text.as_ptr(), value_text.as_ptr()), &format!("hint {key}"))?;
            }
        }
        Ok(hints)
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        // SAFETY: an info object of our own, freed once.
        unsafe {
            if self.0 != mpi_sys::RSMPI_INFO_NULL {
                mpi_sys::MPI_Info_free(&raw mut self.0);
            }
        }
    }
}

/// Makes a file access list use MPI-IO.
pub(super) fn use_mpio(list: &Id, handle: i32, options: &Options) -> Result<()> {
    let hints = Hints::new(&options.hints)?;
    // SAFETY: list, communicator and hints are live; libhdf5 makes copies of its own.
    done("open", unsafe { h5p::H5Pset_fapl_mpio(list.raw(), communicator(handle), hints.0) })
}

/// Whether this libhdf5 has the subfiling driver.
pub(super) fn has_subfiling() -> bool {
    // SAFETY: only asked for, never called.
    unsafe { symbol::<*const libc::c_void>(c"H5Pset_fapl_subfiling") }.is_some()
}

/// Makes a file access list use several files.
pub(super) fn use_subfiling(list: &Id, handle: i32, options: &Options) -> Result<()> {
    type SetParameters = unsafe extern "C" fn(hid_t, MPI_Comm, MPI_Info) -> c_int;
    type GetConfig = unsafe extern "C" fn(hid_t, *mut SubfilingConfig) -> c_int;
    type SetConfig = unsafe extern "C" fn(hid_t, *const SubfilingConfig) -> c_int;
    // SAFETY: the types are those of libhdf5's header.
    let functions = unsafe {
        (
            symbol::<SetParameters>(c"H5Pset_mpi_params"),
            symbol::<GetConfig>(c"H5Pget_fapl_subfiling"),
            symbol::<SetConfig>(c"H5Pset_fapl_subfiling"),
        )
    };
    let (Some(set_parameters), Some(get), Some(set)) = functions else {
        return Err(Error::unsupported("open", "this libhdf5 was built without the subfiling driver")
            .hint("use driver=mpio, or libhdf5 built with HDF5_ENABLE_SUBFILING_VFD"));
    };
    let hints = Hints::new(&options.hints)?;
    let mut config = SubfilingConfig::default();
    // SAFETY: list, communicator and hints are live, the structure is libhdf5's; the list inside is ours to close.
    unsafe {
        done("open", set_parameters(list.raw(), communicator(handle), hints.0))?;
        done("open", get(list.raw(), &raw mut config))?;
        let _concentrators = Id::take("open", config.concentrator_list)?;
        if options.ioc_selection == Some(Concentrators::Rank) {
            config.striping.selection = EVERY_NTH_RANK;
        }
        if let Some(size) = options.stripe_size {
            config.striping.stripe_size = size as i64;
        }
        if let Some(count) = options.stripe_count {
            config.striping.stripe_count = count as i32;
        }
        done("open", set(list.raw(), &raw const config))
    }
}

/// Refuses subfiling where the process around does not allow it, which may differ from rank to rank.
pub(super) fn refuse_surroundings(options: &Options) -> Result<()> {
    let mut level = 0;
    // SAFETY: MPI runs; the level is a variable of our own.
    let enough = unsafe {
        mpi_sys::MPI_Query_thread(&raw mut level);
        level >= mpi_sys::RSMPI_THREAD_MULTIPLE
    };
    if !enough {
        return Err(Error::unsupported("open", "driver=subfiling needs MPI with thread level MPI_THREAD_MULTIPLE")
            .hint("use driver=mpio, or an MPI library with full thread support"));
    }
    if let Some(name) = ELSEWHERE.iter().find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Err(Error::unsupported("open", format!("{name} would put subfiles where they are not found again"))
            .hint(format!("unset {name}; subfiles lie beside the file")));
    }
    if let Some(wanted) = options.ioc_per_node
        && std::env::var(PER_NODE).ok().and_then(|value| value.trim().parse().ok()) != Some(wanted)
    {
        return Err(Error::unsupported("open", "libhdf5 takes ioc_per_node from the environment only")
            .hint(format!("start the ranks with {PER_NODE}={wanted}, for example mpirun -x {PER_NODE}={wanted}")));
    }
    Ok(())
}

/// Makes metadata reads collective in calls with this access list.
pub(super) fn collective_metadata_reads(list: &Id) -> Result<()> {
    // SAFETY: a live access list.
    done("open", unsafe { h5p::H5Pset_all_coll_metadata_ops(list.raw(), 1) })
}

/// Makes metadata writes collective, for a file access list.
pub(super) fn collective_metadata_writes(list: &Id) -> Result<()> {
    // SAFETY: a live file access list.
    done("open", unsafe { h5p::H5Pset_coll_metadata_write(list.raw(), 1) })
}

/// A transfer list for collective transfers.
pub(super) fn collective_transfer(options: &Options) -> Result<Id> {
    const DOING: &str = "open";
    let list = properties::new(DOING, *h5p::H5P_CLS_DATASET_XFER)?;
    // SAFETY: a live transfer list.
    unsafe {
        done(DOING, h5p::H5Pset_dxpl_mpio(list.raw(), H5FD_mpio_xfer_t::H5FD_MPIO_COLLECTIVE))?;
        if let Some(chunk_io) = options.chunk_io {
            let mode = match chunk_io {
                ChunkIo::One => H5FD_mpio_chunk_opt_t::H5FD_MPIO_CHUNK_ONE_IO,
                ChunkIo::Multi => H5FD_mpio_chunk_opt_t::H5FD_MPIO_CHUNK_MULTI_IO,
            };
            done(DOING, h5p::H5Pset_dxpl_mpio_chunk_opt(list.raw(), mode))?;
            // libhdf5 1.14 and later hands whole selections to the driver, and then never asks for this mode.
            if let Some(set) = symbol::<unsafe extern "C" fn(hid_t, c_int) -> c_int>(c"H5Pset_selection_io") {
                done(DOING, set(list.raw(), SELECTION_IO_OFF))?;
            }
        }
    }
    Ok(list)
}

/// How the last transfer with this list ran: libhdf5's mode, and the causes if it was not collective.
pub(super) fn outcome(list: &Id) -> Result<(u32, u32)> {
    let mut mode = H5D_mpio_actual_io_mode_t::H5D_MPIO_NO_COLLECTIVE;
    let (mut local, mut global) = (0, 0);
    // SAFETY: a live transfer list and variables of our own.
    unsafe {
        if H5Pget_mpio_actual_io_mode(list.raw(), &raw mut mode) < 0
            || H5Pget_mpio_no_collective_cause(list.raw(), &raw mut local, &raw mut global) < 0
        {
            return Err(errors::last("transfer"));
        }
    }
    Ok((mode as u32, global))
}
