//! An open file of MPI.

use super::errors::call;
use super::filetype::Filetype;
use super::library;
use super::options::Options;
use hyperslab_core::{Error, ErrorKind, Result};
use mpi_sys as ffi;
use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Transfer direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Write,
    Read,
}

/// Which ranks take part in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Participants {
    /// This rank only: independent.
    ThisRank,
    /// All ranks that opened the file together: collective.
    AllRanks,
}

/// File region of a call.
#[derive(Debug)]
pub(super) enum FileRegion {
    /// Contiguous, from this offset.
    Run(u64),
    /// A file view with this datatype, from this offset.
    View(u64, Filetype),
}

/// An open MPI file of one or more ranks. Closed only by [`Handle::close`], which is collective.
#[derive(Debug)]
pub(super) struct Handle {
    file: ffi::MPI_File,
    /// Whether the view of this rank, or of another that has the file open with it, is other than all bytes from the
    /// first: the same on all of them.
    viewing: bool,
}

// SAFETY: any thread may use the handle while MPI runs at thread level "serialized" or higher and calls do not overlap:
// `library::turn` sees to that where MPI demands it, and owners lock each file.
unsafe impl Send for Handle {}

/// The datatype of all buffers.
fn byte() -> ffi::MPI_Datatype {
    // SAFETY: reading a constant of the library.
    unsafe { ffi::RSMPI_UINT8_T }
}

/// Hints, freed when dropped.
struct Info(ffi::MPI_Info);

impl Info {
    fn new(hints: &[(CString, CString)]) -> Result<Self> {
        // SAFETY: reading a constant of the library.
        let mut info = Self(unsafe { ffi::RSMPI_INFO_NULL });
        if hints.is_empty() {
            return Ok(info);
        }
        // SAFETY: writes one handle.
        call("set hints", || unsafe { ffi::MPI_Info_create(&raw mut info.0) })?;
        for (key, value) in hints {
            // SAFETY: the handle is live, the words end in NUL and are copied.
            call("set hints", || unsafe { ffi::MPI_Info_set(info.0, key.as_ptr(), value.as_ptr()) })?;
        }
        Ok(info)
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        // SAFETY: reading a constant, and freeing a live handle of ours.
        unsafe {
            if self.0 != ffi::RSMPI_INFO_NULL {
                ffi::MPI_Info_free(&raw mut self.0);
            }
        }
    }
}

impl Handle {
    /// Opens a file that exists, on all ranks of `comm` together.
    pub fn open(comm: ffi::MPI_Comm, path: &Path, writable: bool, options: &Options) -> Result<Self> {
        library::check_running("open data file")?;
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| Error::invalid("open data file", "the path has a NUL in it"))?;
        let mode = if writable { ffi::MPI_MODE_RDWR } else { ffi::MPI_MODE_RDONLY } as c_int;
        let _turn = library::turn();
        let info = Info::new(&options.hints)?;
        // SAFETY: reading a constant of the library.
        let mut opened = Self { file: unsafe { ffi::RSMPI_FILE_NULL }, viewing: false };
        // SAFETY: errors of opening go by the handler of the null file, and are to be returned; the communicator,
        // the name and the hints are live.
        call("open data file", || unsafe {
            ffi::MPI_File_set_errhandler(ffi::RSMPI_FILE_NULL, ffi::RSMPI_ERRORS_RETURN);
            ffi::MPI_File_open(comm, name.as_ptr(), mode, info.0, &raw mut opened.file)
        })?;
        // SAFETY: the file is open.
        let set =
            call("open data file", || unsafe { ffi::MPI_File_set_errhandler(opened.file, ffi::RSMPI_ERRORS_RETURN) });
        let set_atomic = || {
            // SAFETY: the file is open, and every rank has the same options.
            call("set atomic mode", || unsafe { ffi::MPI_File_set_atomicity(opened.file, 1) })
        };
        let set = if options.atomic && writable { set.and_then(|()| set_atomic()) } else { set };
        match set {
            Ok(()) => Ok(opened),
            Err(error) => opened.close_in_turn().and(Err(error)),
        }
    }

    /// Moves `len` bytes between the file and memory at `address`; 0 bytes take part in a collective call. The view of
    /// a file that several ranks have open together is set by all of them: `view` says that they do.
    ///
    /// # Safety
    /// `len` bytes at `address` are valid for reading, and when the direction is [`Direction::Read`] for writing.
    pub unsafe fn transfer(
        &mut self,
        (direction, who): (Direction, Participants),
        place: FileRegion,
        view: bool,
        address: *mut c_void,
        len: u64,
    ) -> Result<()> {
        let operation = if direction == Direction::Write { "write" } else { "read" };
        library::check_running(operation)?;
        let turn = library::turn();
        let count = c_int::try_from(len).map_err(|_| Error::invalid(operation, "more bytes than MPI can count"))?;
        let (offset, viewed) = match &place {
            FileRegion::Run(offset) => {
                let reset = view || self.viewing;
                self.viewing = view;
                let viewed = if reset { self.set_view(0, byte()) } else { Ok(()) };
                (*offset as ffi::MPI_Offset, viewed)
            }
            FileRegion::View(first, filetype) => {
                self.viewing = true;
                (0, self.set_view(*first, filetype.handle()))
            }
        };
        // The others of a collective call wait for this rank, whatever became of its view.
        let count = match (&viewed, who) {
            (Ok(()), _) => count,
            (Err(_), Participants::AllRanks) => 0,
            (Err(_), Participants::ThisRank) => return viewed,
        };
        // SAFETY: plain data for which all zeros is a valid value.
        let mut status: ffi::MPI_Status = unsafe { std::mem::zeroed() };
        let (file, status_at) = (self.file, &raw mut status);
        // SAFETY: the file is open, and the caller vouches for the memory.
        call(operation, || unsafe {
            match (direction, who) {
                (Direction::Write, Participants::ThisRank) => {
                    ffi::MPI_File_write_at(file, offset, address, count, byte(), status_at)
                }
                (Direction::Write, Participants::AllRanks) => {
                    ffi::MPI_File_write_at_all(file, offset, address, count, byte(), status_at)
                }
                (Direction::Read, Participants::ThisRank) => {
                    ffi::MPI_File_read_at(file, offset, address, count, byte(), status_at)
                }
                (Direction::Read, Participants::AllRanks) => {
                    ffi::MPI_File_read_at_all(file, offset, address, count, byte(), status_at)
                }
            }
        })
        .and(viewed)?;
        // Some libraries call it a success that nothing was written, and only the system says why.
        let said = Error::io(operation, std::io::Error::last_os_error());
        let mut moved = 0;
        // SAFETY: the status is that of the call above.
        call(operation, || unsafe { ffi::MPI_Get_count(status_at, byte(), &raw mut moved) })?;
        if count > 0 && moved != count {
            if let (Direction::Write, Participants::ThisRank, FileRegion::Run(offset), 1..) =
                (direction, who, &place, moved)
            {
                // The next call says why, or finishes.
                let (next, rest) = (FileRegion::Run(offset + moved as u64), len - moved as u64);
                drop(turn);
                // SAFETY: what is left of the caller's memory.
                return unsafe { self.transfer((direction, who), next, view, address.byte_add(moved as usize), rest) };
            }
            if direction == Direction::Write && said.kind() == ErrorKind::NoSpace {
                return Err(said);
            }
            let kind = if direction == Direction::Write { ErrorKind::Io } else { ErrorKind::Corrupt };
            let error = Error::new(kind, operation, format!("MPI moved {moved} of {count} bytes"));
            return Err(if kind == ErrorKind::Io { error.hint("see whether the device is full") } else { error });
        }
        Ok(())
    }

    fn set_view(&mut self, first: u64, filetype: ffi::MPI_Datatype) -> Result<()> {
        // SAFETY: the file is open, the types are committed, and the name of the representation ends in NUL.
        call("set view", || unsafe {
            ffi::MPI_File_set_view(
                self.file,
                first as ffi::MPI_Offset,
                byte(),
                filetype,
                c"native".as_ptr(),
                ffi::RSMPI_INFO_NULL,
            )
        })
    }

    /// Makes previous writes durable. Collective.
    pub fn sync(&mut self) -> Result<()> {
        library::check_running("flush")?;
        let _turn = library::turn();
        // SAFETY: the file is open.
        call("flush", || unsafe { ffi::MPI_File_sync(self.file) })
    }

    /// Closes the file. Collective.
    pub fn close(self) -> Result<()> {
        if !library::running() {
            return Ok(()); // MPI took it along
        }
        let _turn = library::turn();
        self.close_in_turn()
    }

    fn close_in_turn(mut self) -> Result<()> {
        // SAFETY: the file is open, and is gone with `self`.
        call("close", || unsafe { ffi::MPI_File_close(&raw mut self.file) })
    }
}
