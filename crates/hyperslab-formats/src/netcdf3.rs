//! Classic NetCDF files: CDF-1, CDF-2 and CDF-5, as netcdf-c and PnetCDF write them.
//!
//! A container is one file: a header that says where the elements of each array lie, and the elements, big-endian and in
//! row-major order; `docs/netcdf.md` tells what is written. Elements go to the operating system before a write returns, at
//! places that follow from the header alone, so ranks write different elements of one array at once without locks. The header
//! is written by rank 0, when the container is flushed, closed or resized: until then others do not see what is new.
//!
//! Definitions are collective. One that needs the place of elements writes the file anew and renames it; any other changes the
//! header in place, so that a crash leaves the old one or the new one. Memory is bounded by two staging buffers and the header.

mod array;
mod arrays;
mod container;
mod creation_order;
mod decode;
mod define;
mod encode;
mod file_map;
mod fill;
#[doc(hidden)]
pub mod fuzz_api;
mod header;
mod header_file;
mod journal;
mod layout;
mod names;
mod options;
mod relocate;
mod state;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod types;
mod values;

use crate::FormatEntry;
use crate::posix::buffer_pool::BufferPool;
use crate::posix::data_file::{Access, DataFile};
use crate::posix::options::BUFFER_SPEC;
use container::CdfContainer;
use header::Header;
use hyperslab_core::storage::StorageRules;
use hyperslab_core::{
    Caps, Communicator, Container, DataModel, Error, ErrorKind, Execution, FilterSet, Format, MAX_RANK, OpenMode,
    Result, StackElement, TransferCost, agree,
};
use options::Options;
use state::Shared;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The registry's line.
pub const ENTRY: FormatEntry = FormatEntry {
    name: "netcdf3",
    about: "classic NetCDF files (CDF-1, CDF-2, CDF-5)",
    options: options::SPECS,
    build: Some(build),
    extensions: &["nc3", "cdf", "nc5", "nc"],
    recognises: Some(|file| [b"CDF\x01", b"CDF\x02", b"CDF\x05"].iter().any(|magic| file.bytes.starts_with(*magic))),
    describing: &["version"],
    interfaces: &["NCMPI"],
    storage: Some(|_| Ok(StorageRules::Raw)),
    cost: Some(|element| Ok(TransferCost::RawFile { buffer: element.size_or_default(&BUFFER_SPEC)? })),
    file_map: Some(file_map::file_map),
    creation_order: Some(creation_order::creation_order),
    ..FormatEntry::NONE
};

fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(Netcdf3 { options: Options::parse(element)? }))
}

/// The format of classic NetCDF files.
#[derive(Debug, Clone, Copy)]
pub struct Netcdf3 {
    options: Options,
}

fn fail(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |cause| Error::io(operation, cause).target(path.display())
}

/// Opens what is at `path` for looking at it; refuses what is no file.
fn look_at(operation: &'static str, path: &Path) -> Result<File> {
    let flags = libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(fail(operation, path))?;
    if !file.metadata().map_err(fail(operation, path))?.is_file() {
        let message = "it is no file, so no classic NetCDF file";
        return Err(Error::new(ErrorKind::InvalidInput, operation, message).target(path.display()));
    }
    Ok(file)
}

/// Refuses what is no classic NetCDF file.
fn check_file(operation: &'static str, path: &Path) -> Result<()> {
    let file = look_at(operation, path)?;
    let (bytes, _) = header_file::load(path, &file)?;
    header_file::parse(path, &bytes, 0).map(drop)
}

/// Takes the file away, and what an interrupted change left beside it.
fn remove_file(path: &Path) -> Result<()> {
    std::fs::remove_file(path).map_err(fail("remove", path))?;
    for beside in [journal::beside(path), relocate::unfinished(path)] {
        match std::fs::remove_file(&beside) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(fail("remove", &beside)(cause)),
            _ => {}
        }
    }
    Ok(())
}

/// Makes an empty file. On rank 0.
fn make(path: &Path, options: &Options) -> Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(fail("create", path))?;
    file.write_all(&encode::encode(&Header::empty(options.version))).map_err(|cause| {
        // Empty, it would be nothing that this format knows.
        let _ = std::fs::remove_file(path);
        fail("create", path)(cause)
    })
}

fn exists(path: &Path) -> Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(fail("look up", path)(cause)),
    }
}

/// The file that symbolic links lead to: it is renamed over, not they.
fn real_path(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.into())
}

/// Makes or finds the file and its header. On rank 0. Returns the bytes of its header.
fn prepare(path: &Path, how: OpenMode, options: &Options) -> Result<Vec<u8>> {
    let real = real_path(path);
    let path = real.as_path();
    match how {
        OpenMode::Read | OpenMode::Update => {}
        OpenMode::Create => make(path, options)?,
        OpenMode::Truncate => {
            if exists(path)? {
                check_file("truncate", path)?;
                remove_file(path)?;
            }
            make(path, options)?;
        }
    }
    let file = look_at("open", path)?;
    let (header, repairs) = header_file::load(path, &file)?;
    if how == OpenMode::Update {
        let size = file.metadata().map_err(fail("open", path))?.len();
        if let Some(message) = relocate::check_size(&header_file::parse(path, &header, size)?.header, size) {
            return Err(Error::new(ErrorKind::Corrupt, "open", message)
                .target(path.display())
                .hint("open it for reading to save what is there"));
        }
        let staging = Arc::new(BufferPool::new(4096, 64));
        let writable = DataFile::open(path, Access::Write, false, &staging)?;
        if repairs { header_file::repair(path, &writable, &header)? } else { journal::remove(path)? }
    }
    Ok(header)
}

/// Opens the container. Collective.
fn open(path: &Path, how: OpenMode, options: Options, comm: &Arc<dyn Communicator>) -> Result<CdfContainer> {
    let root = comm.rank() == 0;
    let prepared = if root { prepare(path, how, &options) } else { Ok(Vec::new()) };
    let mut bytes = agree(&**comm, prepared)?;
    comm.broadcast(0, &mut bytes)?;
    let path = &*real_path(path);
    let shared = Shared::new(path, comm, options, how != OpenMode::Read);
    let begin = || {
        let file = shared.open_file()?;
        let decoded = header_file::parse(path, &bytes, file.len()?)?;
        let existed = how == OpenMode::Update;
        shared.touched.store(existed && !decoded.header.variables.is_empty(), Ordering::Release);
        let mut state = state::Open::new(file, decoded.header, bytes.clone(), existed);
        state.changed |= decoded.streaming;
        shared.begin(state);
        Ok(())
    };
    agree(&**comm, begin())?;
    Ok(CdfContainer { shared: Arc::new(shared) })
}

impl Format for Netcdf3 {
    fn name(&self) -> &'static str {
        "netcdf3"
    }

    fn caps(&self) -> Caps {
        Caps {
            data: DataModel {
                readable: true,
                persistent: true,
                resize: true,
                shared_growth: true,
                chunks: false,
                compound: false,
                strings: false,
                partial_fields: false,
                fill_value: true,
                attributes: true,
                groups: false,
                dimension_names: true,
                max_rank: MAX_RANK,
            },
            execution: Execution {
                concurrent_writers: true,
                serialises_ranks: false,
                collective: false,
                many_processes: true,
                prefetch: false,
                relocates_chunks: false,
            },
            filters: FilterSet::NONE,
        }
    }

    fn extension(&self) -> &'static str {
        "nc"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        let opened = open(path, how, self.options, comm);
        let opened = opened.map_err(|error| error.backend("netcdf3").target(path.display()))?;
        Ok(Arc::new(opened))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        exists(path).map_err(|error| error.backend("netcdf3"))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let remove = || {
            check_file("remove", path)?;
            remove_file(path)
        };
        remove().map_err(|error: Error| error.backend("netcdf3"))
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        check_file("list files", path).map_err(|error| error.backend("netcdf3"))?;
        Ok(vec![path.into()])
    }
}
