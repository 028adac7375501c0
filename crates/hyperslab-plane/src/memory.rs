//! The caller's memory, reached by the numbers of elements in the order of the selection.
//!
//! Rows are given as bytes of the packed elements, whatever the layout of the memory is.

use hyperslab_core::{
    Datatype, MemoryLayout, MemoryMap, MemoryView, MemoryViewMut, Result, Row, SharedBytes, copy_rows,
};

/// Memory to write from. Each thread has a clone of its own.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    data: &'a [u8],
    /// `None` where elements are packed.
    map: Option<MemoryMap<'a>>,
    element: u64,
}

/// Memory to read into. Each thread has a clone of its own.
#[derive(Debug, Clone)]
pub(crate) struct Target<'a> {
    data: SharedBytes<'a>,
    map: Option<MemoryMap<'a>>,
    element: u64,
}

/// Whether memory is exactly the packed elements, however the layout says so.
pub(crate) fn is_packed(layout: &MemoryLayout, dtype: &Datatype) -> Result<bool> {
    Ok(layout.is_packed() || (layout.within.is_none() && layout.plan(dtype)?.is_identity()))
}

fn run(row: Row, number: u64) -> Row {
    Row { offset: row.offset + number * row.stride, count: 1, stride: row.len, ..row }
}

fn range(row: Row) -> std::ops::Range<usize> {
    row.offset as usize..(row.offset + row.len) as usize
}

impl<'a> Source<'a> {
    /// `None` if the elements cannot be reached in any order. The view must have passed its check.
    pub(crate) fn new(view: MemoryView<'a>, dtype: &Datatype, elements: u64) -> Result<Option<Self>> {
        let element = dtype.size();
        if is_packed(view.layout, dtype)? {
            return Ok(Some(Self { data: &view.data[..(elements * element) as usize], map: None, element }));
        }
        let map = MemoryMap::new(view.layout, dtype, elements)?;
        Ok(map.map(|map| Self { data: view.data, map: Some(map), element }))
    }

    /// Elements that already are as they should be in the file.
    pub(crate) fn packed(data: &'a [u8], element: u64) -> Self {
        Self { data, map: None, element }
    }

    /// All packed elements, if that is what the memory is.
    pub(crate) fn as_packed(&self) -> Option<&'a [u8]> {
        self.map.is_none().then_some(self.data)
    }

    /// Copies the elements of a row to a buffer. Rows have the same length and count.
    pub(crate) fn copy_to(&mut self, from: Row, buffer: &mut [u8], to: Row) {
        match &mut self.map {
            None => copy_rows(self.data, from, buffer, to),
            Some(map) => {
                for number in 0..from.count {
                    let first = run(from, number).offset / self.element;
                    map.gather(self.data, first, &mut buffer[range(run(to, number))]);
                }
            }
        }
    }
}

impl<'a> Target<'a> {
    /// `None` if the elements cannot be reached in any order. The view must have passed its check.
    pub(crate) fn new(view: MemoryViewMut<'a>, dtype: &Datatype, elements: u64) -> Result<Option<Self>> {
        let element = dtype.size();
        if is_packed(view.layout, dtype)? {
            let data = SharedBytes::new(&mut view.data[..(elements * element) as usize]);
            return Ok(Some(Self { data, map: None, element }));
        }
        let map = MemoryMap::new(view.layout, dtype, elements)?;
        Ok(map.map(|map| Self { data: SharedBytes::new(view.data), map: Some(map), element }))
    }

    /// Packed elements.
    pub(crate) fn packed(data: &'a mut [u8], element: u64) -> Self {
        Self { data: SharedBytes::new(data), map: None, element }
    }

    /// All packed elements, if that is what the memory is.
    pub(crate) fn as_packed(&self) -> Option<SharedBytes<'a>> {
        self.map.is_none().then_some(self.data)
    }

    /// Copies the elements of a row from a buffer. Rows have the same length and count.
    ///
    /// # Safety
    /// Nobody else may access these elements meanwhile.
    pub(crate) unsafe fn copy_from(&mut self, to: Row, buffer: &[u8], from: Row) {
        match &mut self.map {
            // SAFETY: as the caller promises.
            None => unsafe { self.data.copy_rows(to, buffer, from) },
            Some(map) => {
                for number in 0..to.count {
                    let first = run(to, number).offset / self.element;
                    // SAFETY: as the caller promises.
                    unsafe { map.scatter(self.data, first, &buffer[range(run(from, number))]) };
                }
            }
        }
    }
}
