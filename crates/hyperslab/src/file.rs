//! A file, store or directory of arrays.

use crate::{Array, Element, detect_stack};
use hyperslab_core::{ArraySpec, Attribute, Communicator, Container, Durability, OpenMode, Result, Stack};
use std::path::Path;
use std::sync::Arc;

/// An open file, store or directory of arrays. Paths of arrays are `a/b/c`, without a leading slash; the root is `""`.
///
/// Dropping it releases everything, but loses deferred errors: [`File::close`] reports them.
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("run.posix");
/// let file = hyperslab::File::create(&path, "async/posix")?;
/// file.create_array::<u8>("mask", &[8])?.write(.., &[1_u8; 8])?;
/// file.set_attribute("mask", "made by", &hyperslab::Attribute::text("hand"))?;
/// file.close()?;
/// assert_eq!(hyperslab::File::open(&path)?.arrays()?, ["mask"]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct File {
    container: Arc<dyn Container>,
    stack: Stack,
}

impl File {
    /// Creates a file on a stack. Fails if something is at `path`.
    pub fn create(path: impl AsRef<Path>, stack: &str) -> Result<Self> {
        Self::open_with(path, stack, OpenMode::Create)
    }

    /// Opens a file for reading; its stack is detected.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let stack = detect_stack(path.as_ref())?;
        Self::on_stack(path.as_ref(), stack, OpenMode::Read, &hyperslab_run::single_rank())
    }

    /// Opens a file on a stack, such as `hdf5(plane=on)` or `cache(memory=1GiB)/zarr`.
    pub fn open_with(path: impl AsRef<Path>, stack: &str, mode: OpenMode) -> Result<Self> {
        Self::on_stack(path.as_ref(), stack.parse()?, mode, &hyperslab_run::single_rank())
    }

    /// Opens a file together with other ranks. Collective: every rank passes the same, and gets a file of its own.
    pub fn open_together(
        path: impl AsRef<Path>,
        stack: &str,
        mode: OpenMode,
        ranks: &Arc<dyn Communicator>,
    ) -> Result<Self> {
        Self::on_stack(path.as_ref(), stack.parse()?, mode, ranks)
    }

    fn on_stack(path: &Path, stack: Stack, mode: OpenMode, ranks: &Arc<dyn Communicator>) -> Result<Self> {
        let container = hyperslab_run::open_stack(&stack)?.open(path, mode, ranks)?;
        Ok(Self { container, stack })
    }

    /// The stack that it was opened on.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Paths of all arrays, sorted.
    pub fn arrays(&self) -> Result<Vec<String>> {
        self.container.arrays()
    }

    /// Creates an array of numbers, and the groups above it. Chunks and filters are the stack's choice.
    pub fn create_array<T: Element>(&self, name: &str, shape: &[u64]) -> Result<Array> {
        self.create_array_with(name, &ArraySpec::new(T::datatype(), shape))
    }

    /// Creates an array with chunks, filters, fill value or room to grow.
    pub fn create_array_with(&self, name: &str, spec: &ArraySpec) -> Result<Array> {
        self.container.create(name, spec).map(Array::new)
    }

    /// Opens an array.
    pub fn array(&self, name: &str) -> Result<Array> {
        self.container.array(name).map(Array::new)
    }

    /// Sets an attribute of the root, a group or an array, replacing an earlier value.
    pub fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.container.set_attribute(object, name, value)
    }

    /// Reads an attribute.
    pub fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.container.attribute(object, name)
    }

    /// Makes all writes before it visible to others, or safe from loss of power. Reports deferred errors.
    pub fn flush(&self, how: Durability) -> Result<()> {
        self.container.flush(how)
    }

    /// Flushes, releases everything and reports deferred errors. A second close does nothing.
    pub fn close(&self) -> Result<()> {
        self.container.close()
    }

    /// The container behind it, with groups, ranks and diagnostics.
    pub fn container(&self) -> &Arc<dyn Container> {
        &self.container
    }
}
