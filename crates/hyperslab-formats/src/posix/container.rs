//! An open container.

use super::array::{ArrayState, PosixArray};
use super::data_file::{Access, DataFile};
use super::description::{self, ArrayDescription, GroupDescription, Of, StoredAttribute, check_attribute};
use super::directory::{self, data_file, description_file, is_group};
use super::home::Home;
use super::names::{self, MARK, RANKS, with_extension};
use super::options::Files;
use hyperslab_core::{Array, ArraySpec, Attribute, Container, Durability, Error, ErrorKind, Result, agree, dims};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Most bytes an attribute may have; larger ones belong in an array.
const LONGEST_ATTRIBUTE: usize = 1 << 20;

/// A container on one rank.
#[derive(Debug)]
pub(crate) struct PosixContainer {
    pub home: Arc<Home>,
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

/// A description and how to rewrite it, for objects that have attributes.
enum Described {
    Group(GroupDescription),
    Array(ArrayDescription),
}

impl Described {
    fn attributes(&mut self) -> &mut std::collections::BTreeMap<String, StoredAttribute> {
        match self {
            Self::Group(group) => &mut group.attributes,
            Self::Array(array) => &mut array.attributes,
        }
    }

    fn store(&self, path: &Path) -> Result<()> {
        match self {
            Self::Group(group) => description::store(path, group),
            Self::Array(array) => description::store(path, array),
        }
    }
}

impl PosixContainer {
    fn locate(&self, error: Error, target: &str) -> Error {
        if target.is_empty() {
            error.backend(self.home.backend).target(self.home.root.display())
        } else {
            error.backend(self.home.backend).target(target)
        }
    }

    /// Makes the directory of a group and those above it. On rank 0.
    fn make_groups(&self, name: &str) -> Result<()> {
        let mut above = self.home.root.clone();
        for (at, _) in name.match_indices('/').chain([(name.len(), "")]).filter(|_| !name.is_empty()) {
            let group = &name[..at];
            let directory = names::group_directory(&self.home.root, group)?;
            if is_there(&description_file(&names::array_stem(&self.home.root, group)?))? {
                return Err(occupied("create group", "an array has this name").target(group));
            }
            match std::fs::create_dir(&directory) {
                Ok(()) => {}
                Err(cause) if cause.kind() == std::io::ErrorKind::AlreadyExists => check_group(&directory)?,
                Err(cause) => return Err(Error::io("create group", cause).target(directory.display())),
            }
            let mark = directory.join(MARK);
            if !is_there(&mark)? {
                description::store(&mark, &GroupDescription::new(Of::Group))?;
                self.home.note_files([mark]);
                self.home.note_directory(above);
                self.home.note_directory(directory.clone());
            }
            above = directory;
        }
        Ok(())
    }

    /// Refuses a path through anything but groups, so that a symbolic link cannot lead out of the container.
    fn check_groups_above(&self, name: &str) -> Result<()> {
        for (at, _) in name.match_indices('/') {
            check_group(&names::group_directory(&self.home.root, &name[..at])?)?;
        }
        Ok(())
    }

    /// Makes the files of a new array. On rank 0.
    fn make_array(&self, name: &str, spec: &ArraySpec) -> Result<()> {
        self.home.check_writable("create")?;
        check_spec(spec)?;
        let stem = names::array_stem(&self.home.root, name)?;
        self.make_groups(name.rsplit_once('/').map_or("", |(group, _)| group))?;
        let path = description_file(&stem);
        if is_there(&path)? {
            return Err(occupied("create", "an array of this name exists"));
        }
        if is_there(&names::group_directory(&self.home.root, name)?)? {
            return Err(occupied("create", "a group of this name exists"));
        }
        description::store(&path, &ArrayDescription::new(spec, self.home.options.files))?;
        self.make_data(&stem, spec).inspect_err(|_| remove_array(&stem))?;
        self.home.note_files([path]);
        if let Some(directory) = stem.parent() {
            self.home.note_directory(directory.into());
        }
        Ok(())
    }

    fn make_data(&self, stem: &Path, spec: &ArraySpec) -> Result<()> {
        match self.home.options.files {
            Files::Shared => {
                let path = data_file(stem);
                let file = DataFile::open(&path, Access::Make, self.home.options.direct, &self.home.staging)?;
                let bytes = dims::byte_count(&spec.shape, spec.dtype.size())?;
                // Whatever an interrupted program left there is not part of this array.
                file.set_len(0)?;
                file.set_len(bytes)?;
                if self.home.options.preallocate {
                    file.reserve(bytes)?;
                }
                self.home.note_files([path]);
                Ok(())
            }
            Files::PerRank => {
                let path = with_extension(stem, RANKS);
                std::fs::create_dir(&path).map_err(|cause| Error::io("create", cause).target(path.display()))?;
                self.home.note_directory(path);
                Ok(())
            }
        }
    }

    fn handle(&self, name: &str, state: Arc<ArrayState>) -> Arc<dyn Array> {
        let closed = AtomicBool::new(false);
        Arc::new(PosixArray { home: self.home.clone(), state, name: name.into(), closed })
    }

    /// The description of the root, a group or an array, and its path.
    fn described(&self, object: &str) -> Result<(PathBuf, Described)> {
        let root = &self.home.root;
        self.check_groups_above(object)?;
        if !object.is_empty() {
            let path = description_file(&names::array_stem(root, object)?);
            match description::load(&path) {
                Ok(bytes) => {
                    let array = description::decode(&bytes, Of::Array, &path)?;
                    return Ok((path, Described::Array(array)));
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
        let group = description::decode(&description::load(&path)?, of, &path)?;
        Ok((path, Described::Group(group)))
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

/// Takes away what a failed creation left. What cannot be removed is reported by the next creation.
fn remove_array(stem: &Path) {
    let _ = std::fs::remove_file(data_file(stem));
    let _ = std::fs::remove_dir(with_extension(stem, RANKS));
    let _ = std::fs::remove_file(description_file(stem));
}

impl Container for PosixContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.home.check_open("list arrays")?;
        Ok(directory::contents(&self.home.root)?.arrays)
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.home.check_open("list groups")?;
        Ok(directory::contents(&self.home.root)?.groups)
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.home.on_root(|| {
            self.home
                .check_writable("create group")
                .and_then(|()| self.make_groups(name))
                .map_err(|e| self.locate(e, name))
        })
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let comm = &*self.home.comm;
        // Every rank judges its own arguments, so that nonsense on one of them is not ignored by the others.
        let judge = || {
            self.home.check_writable("create")?;
            check_spec(spec)?;
            names::array_stem(&self.home.root, name).map(|_| ())
        };
        agree(comm, judge().map_err(|error| self.locate(error, name)))?;
        self.home.on_root(|| self.make_array(name, spec).map_err(|error| self.locate(error, name)))?;
        let open = || {
            self.home.check_writable("create")?;
            let stem = names::array_stem(&self.home.root, name)?;
            let state = self.home.share(name, || ArrayState::open(&self.home, &stem, spec, self.home.options.files))?;
            let array = self.handle(name, state.clone());
            state.fill_from_row(&self.home, 0)?;
            Ok(array)
        };
        agree(comm, open().map_err(|error: Error| self.locate(error, name))).inspect_err(|_| {
            if self.home.mover.is_some() {
                // Open on all ranks or on none. The error that brought us here is the one to report.
                let _ = self.home.discard(name);
            }
            if comm.rank() == 0
                && let Ok(stem) = names::array_stem(&self.home.root, name)
            {
                remove_array(&stem);
            }
        })
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let comm = &*self.home.comm;
        let load = || {
            self.home.check_open("open array")?;
            let path = description_file(&names::array_stem(&self.home.root, name)?);
            self.check_groups_above(name)?;
            description::load(&path)
        };
        let mut bytes = self.home.on_root(|| load().map_err(|error| self.locate(error, name)))?;
        comm.broadcast(0, &mut bytes)?;
        let open = || {
            self.home.check_open("open array")?;
            let stem = names::array_stem(&self.home.root, name)?;
            let path = description_file(&stem);
            let array: ArrayDescription = description::decode(&bytes, Of::Array, &path)?;
            let spec = array.spec().map_err(|error| error.target(path.display()))?;
            let state = self.home.share(name, || ArrayState::open(&self.home, &stem, &spec, array.files))?;
            Ok(self.handle(name, state))
        };
        agree(comm, open().map_err(|error: Error| self.locate(error, name)))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let set = || {
            self.home.check_writable("set attribute")?;
            check_attribute(value)?;
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
                self.home.note_directory(directory.into());
            }
            self.home.note_files([path]);
            Ok(())
        };
        self.home.on_root(|| set().map_err(|error: Error| self.locate(error, object)))
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        let find = || {
            self.home.check_open("read attribute")?;
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
            self.home.check_open("list attributes")?;
            let (_, mut described) = self.described(object)?;
            Ok(described.attributes().keys().cloned().collect())
        };
        list().map_err(|error: Error| self.locate(error, object))
    }

    /// Writes are visible when they return. `Durable` syncs the files this rank changed and the directories of new ones.
    fn diagnostics(&self) -> Vec<String> {
        let why = self.home.no_ring.as_ref();
        why.map(|why| format!("posix made plain calls: this system does not allow io_uring ({why})"))
            .into_iter()
            .collect()
    }

    fn write_back(&self) -> Result<()> {
        // Nothing is kept in this process.
        self.home.check_open("write back").map_err(|error| self.locate(error, ""))
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let flush = || {
            self.home.check_open("flush")?;
            if how == Durability::Durable { self.home.sync() } else { Ok(()) }
        };
        agree(&*self.home.comm, flush().map_err(|error| self.locate(error, "")))?;
        self.home.clock.agree(&*self.home.comm)
    }

    fn close(&self) -> Result<()> {
        match self.home.close() {
            Some(closed) => agree(&*self.home.comm, closed.map_err(|error| self.locate(error, ""))),
            None => Ok(()),
        }
    }
}
