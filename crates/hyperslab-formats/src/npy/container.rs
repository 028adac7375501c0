//! An open container.

use super::array::NpyArray;
use super::shared::Shared;
use super::{attributes, directory, header};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Container, Durability, Error, ErrorKind, Hierarchy, Result, agree, dims,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// A container on one rank.
#[derive(Debug)]
pub(super) struct NpyContainer {
    pub shared: Arc<Shared>,
}

/// Refuses what `.npy` files cannot say.
fn check_spec(spec: &ArraySpec) -> Result<()> {
    spec.check()?;
    spec.refuse_strings()?;
    spec.refuse_dimension_names()?;
    let refuse = |message: &str| Err(Error::unsupported("create", message).hint("use posix, hdf5 or zarr"));
    if !spec.dtype.fields().is_empty() || spec.dtype.size() == 0 {
        return refuse("elements in .npy files have no fields here, and at least one byte");
    }
    if spec.chunk.is_some() || !spec.filters.is_empty() {
        return refuse(".npy files have neither chunks nor filters");
    }
    if spec.fill_value.is_some() {
        return refuse(".npy files have no fill value");
    }
    if spec.max_shape.as_ref().is_some_and(|max| max.iter().zip(&spec.shape).any(|(max, now)| *max != Some(*now))) {
        return refuse("arrays in .npy files cannot grow");
    }
    Ok(())
}

impl NpyContainer {
    fn locate(&self, error: Error, target: &str) -> Error {
        let error = error.backend(super::NAME);
        if target.is_empty() { error.target(self.shared.path.display()) } else { error.target(target) }
    }

    /// The name of a single file's array.
    fn own_name(&self) -> String {
        self.shared.path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
    }

    fn find(&self, operation: &'static str, name: &str) -> Result<PathBuf> {
        self.shared.check_open(operation)?;
        if !self.shared.single {
            return directory::find(&self.shared.path, name);
        }
        if name != self.own_name() {
            let message = format!("the file is the array {:?}, and there is no other", self.own_name());
            return Err(Error::new(ErrorKind::NotFound, operation, message));
        }
        Ok(self.shared.path.clone())
    }

    /// Makes the file of a new array. On rank 0.
    fn make(&self, name: &str, spec: &ArraySpec) -> Result<()> {
        let path = directory::place(&self.shared.path, name)?;
        let fail = |cause| Error::io("create", cause).target(path.display());
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(fail)?;
        let header = header::encode(spec);
        let bytes = dims::byte_count(&spec.shape, spec.dtype.size())?.saturating_add(header.len() as u64);
        let written = file.write_all(&header).and_then(|()| file.set_len(bytes));
        written.map_err(|cause| {
            // Half of a file would be an array that nobody can open.
            let _ = std::fs::remove_file(&path);
            fail(cause)
        })?;
        self.shared.changed(&path);
        Ok(())
    }

    fn handle(&self, operation: &'static str, name: &str) -> Result<Arc<dyn Array>> {
        let open = || NpyArray::open(&self.shared, &self.find(operation, name)?, name);
        let opened = agree(&*self.shared.comm, open().map_err(|error| self.locate(error, name)))?;
        Ok(Arc::new(opened))
    }

    /// Refuses objects that are not there.
    fn check_object(&self, operation: &'static str, object: &str) -> Result<()> {
        self.shared.check_open(operation)?;
        if object.is_empty() { Ok(()) } else { self.find(operation, object).map(drop) }
    }
}

impl Container for NpyContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.handle("open array", name)
    }

    fn write_back(&self) -> Result<()> {
        // Nothing is buffered in the process.
        self.shared.check_open("write back").map_err(|error| self.locate(error, ""))
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let flush = || {
            self.shared.check_open("flush")?;
            if how == Durability::Durable { self.shared.sync() } else { Ok(()) }
        };
        agree(&*self.shared.comm, flush().map_err(|error| self.locate(error, "")))
    }

    fn close(&self) -> Result<()> {
        if self.shared.close() { agree(&*self.shared.comm, Ok(())) } else { Ok(()) }
    }
}

impl Hierarchy for NpyContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        let list = || {
            self.shared.check_open("list arrays")?;
            if self.shared.single {
                return Ok(vec![self.own_name()]);
            }
            directory::contents(&self.shared.path).map(|found| found.arrays)
        };
        list().map_err(|error| self.locate(error, ""))
    }

    /// There is nothing to make: a group is there as soon as an array is in it, and an empty one is not kept.
    fn create_group(&self, name: &str) -> Result<()> {
        let judged = self.shared.check_extendable("create group");
        agree(&*self.shared.comm, judged.map_err(|error| self.locate(error, name)))
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let judged = self.shared.check_extendable("create").and_then(|()| check_spec(spec));
        agree(&*self.shared.comm, judged.map_err(|error| self.locate(error, name)))?;
        self.shared.on_root(|| self.make(name, spec).map_err(|error| self.locate(error, name)))?;
        self.handle("create", name)
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let set = || {
            self.shared.check_extendable("set attribute")?;
            self.check_object("set attribute", object)?;
            self.shared.changed(&attributes::set(&self.shared.path, object, name, value)?);
            Ok(())
        };
        self.shared.on_root(|| set().map_err(|error: Error| self.locate(error, object)))
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        let get = || {
            self.check_object("read attribute", object)?;
            match self.shared.single {
                true => Err(Error::new(ErrorKind::NotFound, "read attribute", "a .npy file has no attributes")),
                false => attributes::get(&self.shared.path, object, name),
            }
        };
        get().map_err(|error: Error| self.locate(error, object))
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        let list = || {
            self.check_object("list attributes", object)?;
            if self.shared.single { Ok(Vec::new()) } else { attributes::list(&self.shared.path, object) }
        };
        list().map_err(|error: Error| self.locate(error, object))
    }
}
