//! An open container.

use super::array::{ArrayState, PosixArray};
use super::container_state::ContainerState;
use super::data_file::{Access, DataFile};
use super::directory::{self, data_file, is_group, metadata_file};
use super::metadata::{self, ArrayMetadata, GroupMetadata, Of, StoredAttribute};
use super::names::{self, MARK, RANKS, with_extension};
use super::options::Files;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Container, Durability, Error, ErrorKind, Hierarchy, Result, Telemetry, agree, dims,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Size limit of an attribute in bytes.
const LONGEST_ATTRIBUTE: usize = 1 << 20;

/// One rank's handle of an open container.
#[derive(Debug)]
pub(crate) struct PosixContainer {
    pub container: Arc<ContainerState>,
}

fn occupied(operation: &'static str, message: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, operation, message)
}

fn is_there(path: &Path) -> Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(Error::io("look up", cause).target(path.display())),
    }
}

/// Metadata of an object that has attributes.
enum ObjectMetadata {
    Group(GroupMetadata),
    Array(ArrayMetadata),
}

impl ObjectMetadata {
    fn attributes(&mut self) -> &mut std::collections::BTreeMap<String, StoredAttribute> {
        match self {
            Self::Group(group) => &mut group.attributes,
            Self::Array(array) => &mut array.attributes,
        }
    }

    fn store(&self, path: &Path) -> Result<()> {
        match self {
            Self::Group(group) => metadata::store(path, group),
            Self::Array(array) => metadata::store(path, array),
        }
    }
}

impl PosixContainer {
    fn locate(&self, error: Error, target: &str) -> Error {
        if target.is_empty() {
            error.backend(self.container.backend).target(self.container.root.display())
        } else {
            error.backend(self.container.backend).target(target)
        }
    }

    /// Creates the directories of a group and its parents. Rank 0 only.
    fn make_groups(&self, name: &str) -> Result<()> {
        let mut above = self.container.root.clone();
        for (at, _) in name.match_indices('/').chain([(name.len(), "")]).filter(|_| !name.is_empty()) {
            let group = &name[..at];
            let directory = names::group_directory(&self.container.root, group)?;
            if is_there(&metadata_file(&names::array_stem(&self.container.root, group)?))? {
                return Err(occupied("create group", "an array has this name").target(group));
            }
            match std::fs::create_dir(&directory) {
                Ok(()) => {}
                Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => check_group(&directory)?,
                Err(cause) => return Err(Error::io("create group", cause).target(directory.display())),
            }
            let mark = directory.join(MARK);
            if !is_there(&mark)? {
                metadata::store(&mark, &GroupMetadata::new(Of::Group))?;
                self.container.note_files([mark]);
                self.container.note_directory(above);
                self.container.note_directory(directory.clone());
            }
            above = directory;
        }
        Ok(())
    }

    /// Fails unless all parents are groups, so that a symbolic link cannot lead out of the container.
    fn check_groups_above(&self, name: &str) -> Result<()> {
        for (at, _) in name.match_indices('/') {
            check_group(&names::group_directory(&self.container.root, &name[..at])?)?;
        }
        Ok(())
    }

    /// Creates the files of a new array. Rank 0 only.
    fn make_array(&self, name: &str, spec: &ArraySpec) -> Result<()> {
        self.container.check_writable("create")?;
        check_spec(spec)?;
        let stem = names::array_stem(&self.container.root, name)?;
        self.make_groups(name.rsplit_once('/').map_or("", |(group, _)| group))?;
        let path = metadata_file(&stem);
        if is_there(&path)? {
            return Err(occupied("create", "an array of this name exists"));
        }
        if is_there(&names::group_directory(&self.container.root, name)?)? {
            return Err(occupied("create", "a group of this name exists"));
        }
        metadata::store(&path, &ArrayMetadata::new(spec, self.container.options.files))?;
        self.make_data(&stem, spec).inspect_err(|_| remove_array(&stem))?;
        self.container.note_files([path]);
        if let Some(directory) = stem.parent() {
            self.container.note_directory(directory.into());
        }
        Ok(())
    }

    fn make_data(&self, stem: &Path, spec: &ArraySpec) -> Result<()> {
        match self.container.options.files {
            Files::Shared => {
                let path = data_file(stem);
                let file = DataFile::open(&path, Access::Make, self.container.options.direct, &self.container.staging)?;
                let bytes = dims::byte_count(&spec.shape, spec.dtype.size())?;
                // Left over from an interrupted creation, if anything.
                file.set_len(0)?;
                file.set_len(bytes)?;
                if self.container.options.preallocate {
                    file.reserve(bytes)?;
                }
                self.container.note_files([path]);
                Ok(())
            }
            Files::PerRank => {
                let path = with_extension(stem, RANKS);
                std::fs::create_dir(&path).map_err(|cause| Error::io("create", cause).target(path.display()))?;
                self.container.note_directory(path);
                Ok(())
            }
        }
    }

    fn handle(&self, name: &str, state: Arc<ArrayState>) -> Arc<dyn Array> {
        let closed = AtomicBool::new(false);
        Arc::new(PosixArray { container: self.container.clone(), state, name: name.into(), closed })
    }

    /// Reads the metadata of the root, a group or an array; with its path.
    fn described(&self, object: &str) -> Result<(PathBuf, ObjectMetadata)> {
        let root = &self.container.root;
        self.check_groups_above(object)?;
        if !object.is_empty() {
            let path = metadata_file(&names::array_stem(root, object)?);
            match metadata::load(&path) {
                Ok(bytes) => {
                    let array = metadata::decode(&bytes, Of::Array, &path)?;
                    return Ok((path, ObjectMetadata::Array(array)));
                }
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                Err(_) => {}
            }
        }
        let (of, path) = if object.is_empty() {
            (Of::Container, root.join(MARK))
        } else {
            let directory = names::group_directory(root, object)?;
            check_group(&directory)?;
            (Of::Group, directory.join(MARK))
        };
        let group = metadata::decode(&metadata::load(&path)?, of, &path)?;
        Ok((path, ObjectMetadata::Group(group)))
    }
}

fn check_group(directory: &Path) -> Result<()> {
    match std::fs::symlink_metadata(directory) {
        Ok(about) if about.is_dir() && is_group(directory) => Ok(()),
        Ok(_) => {
            Err(Error::new(ErrorKind::Corrupt, "open group", "it is no group of this format")
                .target(directory.display()))
        }
        Err(cause) => Err(Error::io("open group", cause).target(directory.display())),
    }
}

fn check_spec(spec: &ArraySpec) -> Result<()> {
    spec.check()?;
    spec.refuse_strings()?;
    spec.refuse_dimension_names()?;
    if spec.dtype.size() == 0 {
        return Err(Error::invalid("create", "elements must have at least one byte"));
    }
    if spec.chunk.is_some() || !spec.filters.is_empty() {
        return Err(Error::unsupported("create", "raw files have neither chunks nor filters")
            .hint("leave them out, or use hdf5 or zarr"));
    }
    let grows = |d: usize| spec.max_shape.as_ref().is_some_and(|max| max[d] != Some(spec.shape[d]));
    if (1..spec.shape.len()).any(grows) {
        return Err(Error::unsupported("create", "only the slowest dimension of raw files can grow")
            .hint("make the dimension that grows the first one, or use hdf5 or zarr"));
    }
    Ok(())
}

/// Removes the files of a failed creation. Errors are ignored: the next creation reports them.
fn remove_array(stem: &Path) {
    let _ = std::fs::remove_file(data_file(stem));
    let _ = std::fs::remove_dir(with_extension(stem, RANKS));
    let _ = std::fs::remove_file(metadata_file(stem));
}

impl Container for PosixContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let comm = &*self.container.comm;
        let load = || {
            self.container.check_open("open array")?;
            let path = metadata_file(&names::array_stem(&self.container.root, name)?);
            self.check_groups_above(name)?;
            metadata::load(&path)
        };
        let mut bytes = self.container.on_root(|| load().map_err(|error| self.locate(error, name)))?;
        comm.broadcast(0, &mut bytes)?;
        let open = || {
            self.container.check_open("open array")?;
            let stem = names::array_stem(&self.container.root, name)?;
            let path = metadata_file(&stem);
            let array: ArrayMetadata = metadata::decode(&bytes, Of::Array, &path)?;
            let spec = array.spec().map_err(|error| error.target(path.display()))?;
            let state = self.container.share(name, || ArrayState::open(&self.container, &stem, &spec, array.files))?;
            Ok(self.handle(name, state))
        };
        agree(comm, open().map_err(|error: Error| self.locate(error, name)))
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn write_back(&self) -> Result<()> {
        // Nothing is buffered in the process.
        self.container.check_open("write back").map_err(|error| self.locate(error, ""))
    }

    /// Writes are visible when they return. `Durable` syncs the files that this rank changed, and directories of new
    /// ones.
    fn flush(&self, how: Durability) -> Result<()> {
        let flush = || {
            self.container.check_open("flush")?;
            if how == Durability::Durable { self.container.sync() } else { Ok(()) }
        };
        agree(&*self.container.comm, flush().map_err(|error| self.locate(error, "")))?;
        self.container.clock.agree(&*self.container.comm)
    }

    fn close(&self) -> Result<()> {
        match self.container.close() {
            Some(closed) => agree(&*self.container.comm, closed.map_err(|error| self.locate(error, ""))),
            None => Ok(()),
        }
    }
}

impl Hierarchy for PosixContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.container.check_open("list arrays")?;
        Ok(directory::contents(&self.container.root)?.arrays)
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.container.check_open("list groups")?;
        Ok(directory::contents(&self.container.root)?.groups)
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.container.on_root(|| {
            self.container
                .check_writable("create group")
                .and_then(|()| self.make_groups(name))
                .map_err(|e| self.locate(e, name))
        })
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let comm = &*self.container.comm;
        // Every rank validates its own arguments, so that all fail if one is invalid.
        let judge = || {
            self.container.check_writable("create")?;
            check_spec(spec)?;
            names::array_stem(&self.container.root, name).map(|_| ())
        };
        agree(comm, judge().map_err(|error| self.locate(error, name)))?;
        self.container.on_root(|| self.make_array(name, spec).map_err(|error| self.locate(error, name)))?;
        let open = || {
            self.container.check_writable("create")?;
            let stem = names::array_stem(&self.container.root, name)?;
            let state = self
                .container
                .share(name, || ArrayState::open(&self.container, &stem, spec, self.container.options.files))?;
            let array = self.handle(name, state.clone());
            state.fill_from_row(&self.container, 0)?;
            Ok(array)
        };
        agree(comm, open().map_err(|error: Error| self.locate(error, name))).inspect_err(|_| {
            if self.container.data_backend.is_some() {
                // Close on all ranks. The first error is the one to report.
                let _ = self.container.discard(name);
            }
            if comm.rank() == 0
                && let Ok(stem) = names::array_stem(&self.container.root, name)
            {
                remove_array(&stem);
            }
        })
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let set = || {
            self.container.check_writable("set attribute")?;
            value.check()?;
            if name.is_empty() {
                return Err(Error::invalid("set attribute", "an attribute needs a name"));
            }
            if value.data.len() > LONGEST_ATTRIBUTE {
                return Err(
                    Error::unsupported("set attribute", "an attribute has at most 1 MiB").hint("store it as an array")
                );
            }
            let (path, mut described) = self.described(object)?;
            described.attributes().insert(name.into(), value.into());
            described.store(&path)?;
            if let Some(directory) = path.parent() {
                self.container.note_directory(directory.into());
            }
            self.container.note_files([path]);
            Ok(())
        };
        self.container.on_root(|| set().map_err(|error: Error| self.locate(error, object)))
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        let find = || {
            self.container.check_open("read attribute")?;
            let (_, mut described) = self.described(object)?;
            let found = described.attributes().remove(name).ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "read attribute", format!("there is no attribute {name:?}"))
            })?;
            found.restore()
        };
        find().map_err(|error: Error| self.locate(error, object))
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        let list = || {
            self.container.check_open("list attributes")?;
            let (_, mut described) = self.described(object)?;
            Ok(described.attributes().keys().cloned().collect())
        };
        list().map_err(|error: Error| self.locate(error, object))
    }
}

impl Telemetry for PosixContainer {
    fn diagnostics(&self) -> Vec<String> {
        let why = self.container.no_ring.as_ref();
        why.map(|why| format!("posix made plain calls: this system does not allow io_uring ({why})"))
            .into_iter()
            .collect()
    }
}
