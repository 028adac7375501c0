//! Zarr stores of version 2 and 3 in directories, read and written the way zarr-python does.
//!
//! A chunk (or, with the option `shard`, a shard of several chunks) is one file. Metadata, files, locking and shards
//! are handled here; compression is that of the `zarrs` crate.
//!
//! **Visible** when a write returns: files are replaced as a whole by renaming. **Durable** after a durable flush:
//! each rank syncs the files it replaced, and their directories.
//!
//! **Ranks as threads** may write any elements at once, of the same chunk too: a lock per chunk file, shared by the
//! whole process, is held while it is read, changed and replaced. **Ranks as processes** share no lock, so there each
//! chunk (shard) must be written whole by one rank; a write of part of a chunk is refused.
//!
//! **Memory** of a call: one decoded chunk or shard per thread (at most 4 GiB; larger ones are refused), and for
//! memory that is not packed a staging buffer of 64 MiB or one row of chunks of the selection, whichever is more.
//! A gzip file that lies about its size can make decompression take up to about 2000 times the chunk before it is
//! found out; zstd and blosc files are refused by their headers.
//!
//! **Types.** Compounds without padding are structures to Zarr as well (version 3: little-endian fields only, and
//! still an extension of zarr-python). Other compounds are raw bytes to others, and the attribute `_hyperslab_dtype`
//! keeps their fields for us. `_hyperslab_max_shape` keeps how far an array may grow, `_hyperslab_types` the types of
//! attributes that JSON cannot say; none of the three is listed among an object's attributes.

mod array;
mod array_metadata;
mod array_state;
mod atomic_files;
mod attributes;
mod base64;
mod chunk_codec;
mod chunk_files;
mod codecs;
mod container;
mod datatype;
mod dimension_names;
mod fill_value;
mod frame_size;
#[doc(hidden)]
pub mod fuzz_api;
mod json;
mod layout;
mod locks;
mod nodes;
mod options;
mod partial_write_owners;
mod region;
mod resize;
mod row_bands;
mod shard;
mod store_dir;
mod string_codec;
mod string_transfer;
mod transfer;

#[cfg(test)]
mod tests;

use container::ZarrContainer;
use hyperslab_core::{
    Caps, Communicator, Container, DataModel, Error, Execution, Filter, FilterSet, Format, MAX_RANK, OpenMode, Result,
    StackElement,
};
use options::Options;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) fn build(element: &StackElement) -> Result<Arc<dyn Format>> {
    Ok(Arc::new(Zarr { options: Options::parse(element)? }))
}

/// Zarr with its options.
#[derive(Debug)]
struct Zarr {
    options: Options,
}

/// Filters that both versions of the format have codecs for.
const FILTERS: FilterSet = FilterSet::of(&[Filter::Deflate(0), Filter::Shuffle, Filter::Zstd(0), Filter::Blosc(0)]);

impl Format for Zarr {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn caps(&self) -> Caps {
        Caps {
            data: DataModel {
                readable: true,
                persistent: true,
                resize: true,
                shared_growth: false,
                chunks: true,
                compound: true,
                strings: true,
                partial_fields: true,
                fill_value: true,
                attributes: true,
                groups: true,
                dimension_names: true,
                max_rank: MAX_RANK,
            },
            execution: Execution {
                concurrent_writers: true,
                serialises_ranks: false,
                collective: false,
                many_processes: true,
                prefetch: false,
                // Each is a file, replaced atomically.
                relocates_chunks: false,
            },
            filters: FILTERS,
        }
    }

    fn extension(&self) -> &'static str {
        "zarr"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        Ok(Arc::new(ZarrContainer::open(path, how, comm, &self.options)?))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("look for store", error).backend("zarr").target(path.display())),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let canonical = path.canonicalize();
        store_dir::remove(path, "remove").map_err(|e| e.backend("zarr"))?;
        if let Ok(canonical) = canonical {
            array_state::StoreState::forget(&canonical);
        }
        Ok(())
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        store_dir::check_store(path, "list files")
            .and_then(|()| store_dir::regular_files(path))
            .map_err(|e| e.backend("zarr"))
    }
}
