//! A file of bytes and nothing else, as IOR writes them through POSIX and MPI-IO: read as a container with one array.

use hyperslab_core::{
    Array, ArraySpec, Attribute, Caps, Communicator, Container, DataModel, Durability, Error, ErrorKind, Execution,
    Format, Hierarchy, MemoryView, MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use hyperslab_formats::formats;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads a plain file whose bytes are those of an array of this kind.
#[derive(Debug, Clone)]
pub struct PlainFile {
    spec: ArraySpec,
}

impl PlainFile {
    /// For what lies at `path`, if that is a plain file where `stack` would have a directory.
    pub fn instead_of(stack: &Stack, path: &Path, spec: &ArraySpec) -> Option<Self> {
        Self::is_instead_of(stack, path).then(|| Self { spec: spec.clone() })
    }

    /// Whether there is a plain file where `stack` would have a directory.
    pub fn is_instead_of(stack: &Stack, path: &Path) -> bool {
        // IOR's own files by these interfaces are plain.
        let plain = |interface: &&str| ["POSIX", "MPIIO"].contains(interface);
        let raw = formats().iter().any(|entry| entry.name == stack.format.name && entry.interfaces.iter().any(plain));
        raw && stack.layers.is_empty() && path.is_file()
    }
}

fn only_read(operation: &'static str) -> Error {
    Error::unsupported(operation, "a plain file is only read here").backend("plain file")
}

impl Format for PlainFile {
    fn name(&self) -> &'static str {
        "plain file"
    }

    fn caps(&self) -> Caps {
        Caps {
            data: DataModel {
                readable: true,
                persistent: true,
                max_rank: hyperslab_core::MAX_RANK,
                ..DataModel::default()
            },
            execution: Execution { many_processes: true, ..Execution::default() },
            ..Caps::default()
        }
    }

    fn extension(&self) -> &'static str {
        ""
    }

    fn open(&self, path: &Path, how: OpenMode, _: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        if how != OpenMode::Read {
            return Err(only_read("open").target(path.display()));
        }
        let failed = |e| Error::io("open", e).target(path.display());
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok(Arc::new(PlainContainer { file: Arc::new(file), bytes, spec: self.spec.clone() }))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        Ok(path.is_file())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        Err(only_read("remove").target(path.display()))
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        Ok(vec![path.to_owned()])
    }
}

#[derive(Debug)]
struct PlainContainer {
    file: Arc<File>,
    bytes: u64,
    spec: ArraySpec,
}

impl Container for PlainContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        // With a dataset for each segment, they lie one after the other.
        let segment: u64 = name.rsplit_once('.').and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
        let length = self.spec.shape.iter().product::<u64>() * self.spec.dtype.size();
        let base = segment * length;
        Ok(Arc::new(PlainArray { file: self.file.clone(), bytes: self.bytes, base, spec: self.spec.clone() }))
    }

    fn write_back(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self, _: Durability) -> Result<()> {
        Ok(())
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

impl Hierarchy for PlainContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        Ok(vec!["data".into()])
    }

    fn create_group(&self, _: &str) -> Result<()> {
        Err(only_read("create group"))
    }

    fn create(&self, _: &str, _: &ArraySpec) -> Result<Arc<dyn Array>> {
        Err(only_read("create array"))
    }

    fn set_attribute(&self, _: &str, _: &str, _: &Attribute) -> Result<()> {
        Err(only_read("set attribute"))
    }

    fn attribute(&self, _: &str, name: &str) -> Result<Attribute> {
        Err(Error::new(ErrorKind::NotFound, "read attribute", "a plain file has none").target(name))
    }

    fn attributes(&self, _: &str) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[derive(Debug)]
struct PlainArray {
    file: Arc<File>,
    bytes: u64,
    base: u64,
    spec: ArraySpec,
}

impl Array for PlainArray {
    fn spec(&self) -> Result<ArraySpec> {
        Ok(self.spec.clone())
    }

    fn write(&self, _: &Selection, _: MemoryView<'_>, _: TransferMode) -> Result<()> {
        Err(only_read("write"))
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, _: TransferMode) -> Result<()> {
        let element = self.spec.dtype.size();
        memory.check(&self.spec.dtype, selection.len())?;
        if !memory.layout.is_packed() {
            return Err(only_read("read into strided memory"));
        }
        let mut done = 0;
        for run in selection.runs(&self.spec.shape, element)? {
            let part = &mut memory.data[done..done + run.len as usize];
            let at = self.base + run.offset;
            self.file.read_exact_at(part, at).map_err(|e| {
                let error = Error::io("read", e);
                let end = at + run.len;
                if end > self.bytes {
                    return error.hint(format!("the file has {} bytes, this test reads up to {end}", self.bytes));
                }
                error
            })?;
            done += run.len as usize;
        }
        Ok(())
    }

    fn resize(&self, _: &[u64]) -> Result<()> {
        Err(only_read("resize"))
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}
