//! The format: opening, finding and removing files.

use super::container::Hdf5Container;
use super::library::{self, Id, truth};
use super::options::Options;
use super::properties;
use super::storage::MOST_CHUNKED_DIMENSIONS;
use hdf5_metno_sys::h5f;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hyperslab_core::{
    Caps, Communicator, Container, Error, ErrorKind, Format, MAX_RANK, Open, Result, StackElement, agree,
};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// HDF5 with its options chosen.
#[derive(Debug, Clone, Default)]
pub struct Hdf5 {
    options: Arc<Options>,
}

impl Hdf5 {
    /// With the options of a stack element.
    pub fn new(element: &StackElement) -> Result<Self> {
        Ok(Self { options: Arc::new(Options::parse(element)?) })
    }

    pub(super) fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
        Ok(Arc::new(Self::new(element)?))
    }

    /// One rank's part of opening: rank 0 creates, everyone else opens.
    fn open_file(&self, path: &Path, how: Open) -> Result<Id> {
        let name = c_path(path)?;
        if how == Open::Truncate {
            refuse_strangers("truncate", path)?;
        }
        library::with(|| {
            let access = properties::file_access(&self.options)?;
            let flags = match how {
                Open::Read => h5f::H5F_ACC_RDONLY,
                Open::Update => h5f::H5F_ACC_RDWR,
                Open::Create => h5f::H5F_ACC_EXCL,
                Open::Truncate => h5f::H5F_ACC_TRUNC,
            };
            // SAFETY: the name ends in NUL, the list is live.
            let raw = unsafe {
                match how {
                    Open::Read | Open::Update => h5f::H5Fopen(name.as_ptr(), flags, access.raw()),
                    Open::Create | Open::Truncate => h5f::H5Fcreate(name.as_ptr(), flags, H5P_DEFAULT, access.raw()),
                }
            };
            Id::take(if how == Open::Create { "create" } else { "open" }, raw)
        })
    }
}

/// The path as C wants it.
fn c_path(path: &Path) -> Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::invalid("open", "the path contains a NUL byte"))
}

/// Refuses what is at `path` unless it is an HDF5 file or nothing.
fn refuse_strangers(operation: &'static str, path: &Path) -> Result<()> {
    if found(operation, path)? && !is_hdf5(operation, path)? {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            operation,
            "what is there is not an HDF5 file, and is left alone",
        )
        .hint("choose another name"));
    }
    Ok(())
}

/// Refuses to update an empty file: libhdf5 would take it for one it has just made, and fill it.
fn refuse_empty(path: &Path, how: Open) -> Result<()> {
    if how == Open::Update && path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
        return Err(Error::new(ErrorKind::Corrupt, "open", "the file is empty, and no HDF5 file")
            .hint("remove it, or create the container under another name"));
    }
    Ok(())
}

fn found(operation: &'static str, path: &Path) -> Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io(operation, e)),
    }
}

fn is_hdf5(operation: &'static str, path: &Path) -> Result<bool> {
    if !path.metadata().map_err(|e| Error::io(operation, e))?.is_file() {
        return Ok(false);
    }
    let name = c_path(path)?;
    // SAFETY: the name ends in NUL.
    library::with(|| truth(operation, unsafe { h5f::H5Fis_accessible(name.as_ptr(), H5P_DEFAULT) }))
}

impl Format for Hdf5 {
    fn name(&self) -> &'static str {
        super::NAME
    }

    fn caps(&self) -> Caps {
        let chunks = self.options.may_chunk();
        Caps {
            stores: true,
            persistent: true,
            resize: chunks,
            chunks,
            compound: true,
            partial_fields: true,
            fill_value: self.options.fills(),
            attributes: true,
            groups: true,
            concurrent_writers: true,
            serialises_ranks: true,
            collective: false,
            many_processes: false,
            deflate: chunks,
            shuffle: chunks,
            fletcher32: chunks,
            zstd: false,
            blosc: false,
            max_rank: if self.options.always_chunks() { MOST_CHUNKED_DIMENSIONS } else { MAX_RANK },
        }
    }

    fn extension(&self) -> &'static str {
        "h5"
    }

    fn open(&self, path: &Path, how: Open, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let mark = |error: Error| error.backend(super::NAME).target(path.display());
        if comm.size() > 1 && !comm.one_process() {
            return Err(mark(
                Error::unsupported("open", "ranks in several processes need parallel HDF5, which this build lacks")
                    .hint("use thread ranks, or a build with the feature mpi"),
            ));
        }
        let creates = matches!(how, Open::Create | Open::Truncate);
        let opened = |how| refuse_empty(path, how).and_then(|()| self.open_file(path, how));
        let first = if comm.rank() == 0 || !creates { opened(how).map(Some) } else { Ok(None) };
        let file = match agree(&**comm, first.map_err(mark))? {
            Some(file) => Ok(file),
            None => self.open_file(path, Open::Update).map_err(mark),
        };
        let mine = file.and_then(|file| {
            let (comm, options) = (comm.clone(), self.options.clone());
            Hdf5Container::new(path, file, comm, options, how != Open::Read, creates).map_err(mark)
        });
        let mine = agree(&**comm, mine)?;
        Ok(Arc::new(mine))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        found("look", path).map_err(|error| error.backend(super::NAME).target(path.display()))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let remove = || {
            if !is_hdf5("remove", path)? {
                return Err(Error::invalid("remove", "this is not an HDF5 file, and is left alone"));
            }
            std::fs::remove_file(path).map_err(|e| Error::io("remove", e))
        };
        remove().map_err(|error| error.backend(super::NAME).target(path.display()))
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        Ok(vec![path.into()])
    }
}
