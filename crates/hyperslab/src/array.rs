//! An array of a file.

use crate::{Element, Select};
use hyperslab_core::{ArraySpec, Error, MemoryView, MemoryViewMut, Result, Selection, TransferMode};
use std::sync::Arc;

/// An array of an open [`File`](crate::File).
///
/// ```
/// # fn main() -> hyperslab::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// let file = hyperslab::File::create(folder.path().join("a.posix"), "posix")?;
/// let squares = file.create_array::<i64>("squares", &[5])?;
/// squares.write([1..4], &[1_i64, 4, 9])?;
/// assert_eq!(squares.read::<i64>(..)?, [0, 1, 4, 9, 0]);
/// assert!(squares.read::<f32>(..).is_err(), "elements are not converted");
/// # file.close()
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Array {
    inner: Arc<dyn hyperslab_core::Array>,
}

impl Array {
    pub(crate) fn new(inner: Arc<dyn hyperslab_core::Array>) -> Self {
        Self { inner }
    }

    /// Type, shape, chunks, filters and fill value as they are now.
    pub fn spec(&self) -> Result<ArraySpec> {
        self.inner.spec()
    }

    /// Writes `data`, in row-major order, to the selected elements. On return the data may be reused; what the write survives
    /// from then on is the stack's promise.
    pub fn write<T: Element>(&self, elements: impl Select, data: &[T]) -> Result<()> {
        let selection = self.checked::<T>("write array", &elements)?;
        if selection.len() != data.len() as u64 {
            let message = format!("{} elements are selected, {} given", selection.len(), data.len());
            return Err(Error::invalid("write array", message));
        }
        let memory = MemoryView::packed(bytemuck::cast_slice(data));
        self.inner.write(&selection, memory, TransferMode::Independent)
    }

    /// Reads the selected elements in row-major order.
    pub fn read<T: Element>(&self, elements: impl Select) -> Result<Vec<T>> {
        let selection = self.checked::<T>("read array", &elements)?;
        let count = usize::try_from(selection.len())
            .map_err(|_| Error::invalid("read array", "more elements are selected than memory can hold"))?;
        let mut data = vec![T::zeroed(); count];
        let memory = MemoryViewMut::packed(bytemuck::cast_slice_mut(&mut data));
        self.inner.read(&selection, memory, TransferMode::Independent)?;
        Ok(data)
    }

    /// Changes the extents, up to the maximum that the array was created with.
    pub fn resize(&self, shape: &[u64]) -> Result<()> {
        self.inner.resize(shape)
    }

    /// Hints that the selected elements are read soon. Layers that can fetch them in the background do so.
    pub fn prefetch(&self, elements: impl Select) -> Result<()> {
        let selection = elements.select(&self.inner.spec()?.shape)?;
        self.inner.prefetch(&selection);
        Ok(())
    }

    /// The array behind it, with memory layouts, collective transfers and requests.
    pub fn inner(&self) -> &Arc<dyn hyperslab_core::Array> {
        &self.inner
    }

    /// The selection, if elements of the array are `T`.
    fn checked<T: Element>(&self, operation: &'static str, elements: &impl Select) -> Result<Selection> {
        let spec = self.inner.spec()?;
        if spec.dtype != T::datatype() {
            let message = format!("elements are {}, not {}", spec.dtype, T::datatype());
            return Err(Error::invalid(operation, message).hint("use the type that the array was created with"));
        }
        elements.select(&spec.shape)
    }
}
