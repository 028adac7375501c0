//! The format: opening, finding and removing files.

use super::container::{Hdf5Container, OpenResources};
use super::driver::Driver;
use super::handle::OwnedHandle;
use super::leaked_files;
use super::library::{self, Id, done, hid_t, truth};
use super::mpio;
use super::options::Options;
use super::properties;
use super::ranks::Ranks;
use super::rollback_driver;
use super::subfiles;
use hdf5_metno_sys::h5f;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hyperslab_core::storage::FileRules;
use hyperslab_core::{
    Caps, Communicator, Container, DataModel, Error, ErrorKind, Execution, FilterSet, Format, MAX_RANK, OpenMode,
    Result, StackElement,
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

    /// For the files of NetCDF-4: as `rules` say, and with the other options of a stack element.
    pub(crate) fn for_netcdf(element: &StackElement, rules: FileRules) -> Result<Self> {
        Ok(Self { options: Arc::new(Options { netcdf: true, rules, ..Options::parse(element)? }) })
    }

    pub(crate) fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
        Ok(Arc::new(Self::new(element)?))
    }

    /// Refuses what must not be opened like this, and clears away what stands in the way of replacing a file.
    fn make_ready(&self, path: &Path, how: OpenMode, driver: Driver) -> Result<()> {
        match how {
            OpenMode::Read | OpenMode::Update => {
                if driver != Driver::Default {
                    // MPI would not say why it cannot open a file.
                    std::fs::File::open(path).map_err(|e| Error::io("open", e))?;
                }
                refuse_empty(path, how)?;
                if found("open", path)? {
                    subfiles::refuse_wrong_driver(path, matches!(driver, Driver::Subfiling(_)))?;
                }
                Ok(())
            }
            OpenMode::Create if driver != Driver::Default && found("create", path)? => {
                Err(Error::new(ErrorKind::AlreadyExists, "create", "the file exists"))
            }
            OpenMode::Create => Ok(()),
            OpenMode::Truncate => {
                refuse_strangers("truncate", path)?;
                let subfiles = subfiles::list(path).map_err(|e| Error::io("truncate", e))?;
                if subfiles.is_empty() { Ok(()) } else { remove_all("truncate", path, subfiles) }
            }
        }
    }

    /// One rank's part of opening.
    fn open_file(&self, path: &Path, how: OpenMode, driver: Driver, ranks: &Ranks) -> Result<OwnedHandle> {
        let name = c_path(path)?;
        let file = library::with(|| {
            let access = properties::file_access(&self.options, driver)?;
            if self.options.abandoned && how == OpenMode::Update && driver == Driver::Default {
                rollback_driver::put(&access)?;
            }
            let creation = properties::file_creation(&self.options)?;
            let flags = match how {
                OpenMode::Read => h5f::H5F_ACC_RDONLY,
                OpenMode::Update => h5f::H5F_ACC_RDWR,
                OpenMode::Create => h5f::H5F_ACC_EXCL,
                OpenMode::Truncate => h5f::H5F_ACC_TRUNC,
            };
            // SAFETY: the name ends in NUL, the list is live.
            let raw = unsafe {
                match how {
                    OpenMode::Read | OpenMode::Update => h5f::H5Fopen(name.as_ptr(), flags, access.raw()),
                    OpenMode::Create | OpenMode::Truncate => {
                        h5f::H5Fcreate(name.as_ptr(), flags, creation.raw(), access.raw())
                    }
                }
            };
            let file = Id::take(if how == OpenMode::Create { "create" } else { "open" }, raw)?;
            if self.options.abandoned && how == OpenMode::Update {
                spare_the_rest(&file)?;
            }
            Ok::<_, Error>(file)
        })?;
        Ok(OwnedHandle::file(file, how != OpenMode::Read, ranks))
    }

    /// Opens or creates a file. Collective.
    pub(crate) fn open_container(
        &self,
        path: &Path,
        how: OpenMode,
        comm: &Arc<dyn Communicator>,
    ) -> Result<Arc<Hdf5Container>> {
        let mark = |error: Error| error.backend(super::NAME).target(path.display());
        let driver = Driver::choose(&self.options, &**comm).map_err(mark)?;
        let ranks = Ranks::new(comm.clone(), driver.changes());
        if ranks.are_processes() {
            leaked_files::close_collectively(&ranks)?;
        }
        let creates = matches!(how, OpenMode::Create | OpenMode::Truncate);
        let resources = OpenResources::new(&self.options, &ranks, how != OpenMode::Read).and_then(|resources| {
            if let Driver::Subfiling(_) = driver {
                mpio::refuse_surroundings(&self.options)?;
            }
            let looks = ranks.is_first() || !creates && !ranks.are_processes();
            if looks { self.make_ready(path, how, driver).map(|()| resources) } else { Ok(resources) }
        });
        let (resources, checked) = match resources {
            Ok(resources) => (Some(resources), Ok(())),
            Err(error) => (None, Err(mark(error))),
        };
        let open = |how| self.open_file(path, how, driver, &ranks).map_err(mark);
        let file = if creates {
            let file = ranks.change(checked, || open(how))?;
            ranks.agree(file.map_or_else(|| open(OpenMode::Update), Ok))?
        } else {
            ranks.everyone(checked, || open(how))?
        };
        let Some(resources) = resources else { return Err(mark(Error::invalid("open", "nothing was made ready"))) };
        let options = self.options.clone();
        Ok(Arc::new(Hdf5Container::new(path, file, ranks, options, resources, how != OpenMode::Read, creates)))
    }
}

unsafe extern "C" {
    fn H5Fincrement_filesize(file: hid_t, increment: u64) -> i32;
}

/// A process that died may have written behind what the file calls its end, and parts of the file may speak of it already. What is
/// written from now on comes behind that. Call under the lock.
fn spare_the_rest(file: &Id) -> Result<()> {
    // SAFETY: the file is live; the function is libhdf5's own, since 1.10.2.
    done("open", unsafe { H5Fincrement_filesize(file.raw(), 0) })
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
fn refuse_empty(path: &Path, how: OpenMode) -> Result<()> {
    if how == OpenMode::Update && path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
        return Err(Error::new(ErrorKind::Corrupt, "open", "the file is empty, and no HDF5 file")
            .hint("remove it, or create the container under another name"));
    }
    Ok(())
}

/// Removes a file and its subfiles.
fn remove_all(operation: &'static str, path: &Path, subfiles: Vec<PathBuf>) -> Result<()> {
    // The file itself comes last: without it nobody would find the others.
    subfiles
        .iter()
        .map(PathBuf::as_path)
        .chain([path])
        .try_for_each(std::fs::remove_file)
        .map_err(|e| Error::io(operation, e))
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
        let chunks = self.options.rules.may_chunk();
        Caps {
            data: DataModel {
                readable: true,
                persistent: true,
                resize: chunks,
                shared_growth: false,
                chunks,
                compound: true,
                strings: true,
                partial_fields: true,
                fill_value: self.options.rules.fills(),
                attributes: true,
                groups: true,
                dimension_names: false,
                max_rank: if self.options.rules.always_chunks() {
                    FileRules::MOST_CHUNKED_DIMENSIONS
                } else {
                    MAX_RANK
                },
            },
            execution: Execution {
                concurrent_writers: true,
                serialises_ranks: !self.options.plane,
                collective: cfg!(feature = "parallel-hdf5"),
                many_processes: cfg!(feature = "parallel-hdf5"),
                prefetch: false,
                relocates_chunks: chunks,
            },
            // Processes write arrays with filters by collective transfers only.
            filters: if chunks { FilterSet::ALL } else { FilterSet::NONE },
        }
    }

    fn extension(&self) -> &'static str {
        "h5"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(self.open_container(path, how, comm)?)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        found("look", path).map_err(|error| error.backend(super::NAME).target(path.display()))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let remove = || {
            if !is_hdf5("remove", path)? {
                return Err(Error::invalid("remove", "this is not an HDF5 file, and is left alone"));
            }
            let subfiles = subfiles::list(path).map_err(|e| Error::io("remove", e))?;
            remove_all("remove", path, subfiles)
        };
        remove().map_err(|error| error.backend(super::NAME).target(path.display()))
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let mark = |e| Error::io("look", e).backend(super::NAME).target(path.display());
        Ok(std::iter::once(path.into()).chain(subfiles::list(path).map_err(mark)?).collect())
    }
}
