//! The caller's memory, addressed by element number in selection order.
//!
//! Rows are byte ranges of the packed elements in the file's type, whatever layout and element type the memory has.

use crate::convert::Conversion;
use crate::fallback::FallbackReason;
use hyperslab_core::{
    Datatype, DisjointWriteBuffer, ElementMap, ErrorKind, MemoryLayout, MemoryView, MemoryViewMut, Result, Row,
    copy_rows,
};

/// Memory of a write. Each thread uses its own clone.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    /// Each supplies some bytes of every element; later ones overwrite earlier ones.
    layers: Vec<SourceLayer<'a>>,
}

#[derive(Debug, Clone)]
struct SourceLayer<'a> {
    data: &'a [u8],
    access: ElementAccess<'a>,
}

/// Memory of a read. Each thread uses its own clone.
#[derive(Debug, Clone)]
pub(crate) struct Target<'a> {
    data: DisjointWriteBuffer<'a>,
    access: ElementAccess<'a>,
}

/// Mapping from element numbers to memory, with conversion.
#[derive(Debug, Clone)]
struct ElementAccess<'a> {
    /// `None` if the elements are packed.
    map: Option<ElementMap<'a>>,
    /// Element size in the file.
    element: u64,
    /// `None` if memory and file have the same element type.
    conversion_step: Option<Box<ConversionStep>>,
}

#[derive(Debug, Clone)]
struct ConversionStep {
    conversion: Conversion,
    /// Element size in memory.
    element: u64,
    /// Buffer for packed elements in memory's type.
    packed: Vec<u8>,
}

/// Element types of a transfer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types<'a> {
    pub(crate) memory: &'a Datatype,
    pub(crate) file: &'a Datatype,
}

impl Types<'_> {
    /// The conversion to (`writes`) or from the file's type; `None` if they are equal.
    pub(crate) fn conversion(&self, writes: bool) -> Result<Result<Option<Conversion>, FallbackReason>> {
        if self.memory == self.file {
            return Ok(Ok(None));
        }
        let compound = matches!(self.memory, Datatype::Compound(_)) || matches!(self.file, Datatype::Compound(_));
        let (from, to) = if writes { (self.memory, self.file) } else { (self.file, self.memory) };
        match Conversion::new(from, to) {
            _ if compound => Ok(Err(FallbackReason::Conversion("structures are converted by the library".into()))),
            Ok(conversion) => Ok(Ok(conversion)),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                Ok(Err(FallbackReason::Conversion(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether the layout is equivalent to packed elements.
pub(crate) fn is_packed(layout: &MemoryLayout, dtype: &Datatype) -> Result<bool> {
    Ok(layout.is_packed() || (layout.within.is_none() && layout.plan(dtype)?.is_identity()))
}

fn run(row: Row, number: u64) -> Row {
    Row { offset: row.offset + number * row.stride, count: 1, stride: row.len, ..row }
}

fn range(row: Row) -> std::ops::Range<usize> {
    row.offset as usize..(row.offset + row.len) as usize
}

impl<'a> ElementAccess<'a> {
    /// `None` if the layout does not permit random access to elements.
    fn new(
        layout: &'a MemoryLayout,
        types: Types<'_>,
        elements: u64,
        conversion: Option<Conversion>,
    ) -> Result<Option<Self>> {
        let element = types.memory.size();
        let conversion_step =
            conversion.map(|conversion| Box::new(ConversionStep { conversion, element, packed: Vec::new() }));
        let map = match is_packed(layout, types.memory)? {
            true => None,
            false => match ElementMap::new(layout, types.memory, elements)? {
                Some(map) => Some(map),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { map, element: types.file.size(), conversion_step }))
    }

    fn is_identity(&self) -> bool {
        self.map.is_none() && self.conversion_step.is_none()
    }
}

impl<'a> Source<'a> {
    /// `None` if the layout does not permit random access to elements. The view must have passed its check.
    pub(crate) fn new(
        view: MemoryView<'a>,
        types: Types<'_>,
        elements: u64,
        conversion: Option<Conversion>,
    ) -> Result<Option<Self>> {
        let access = ElementAccess::new(view.layout, types, elements, conversion)?;
        Ok(access.map(|access| Self::of(cut(view.data, &access, types, elements), access)))
    }

    fn of(data: &'a [u8], access: ElementAccess<'a>) -> Self {
        Self { layers: vec![SourceLayer { data, access }] }
    }

    /// Overlays another source of the same elements on this one.
    pub(crate) fn under(mut self, other: Self) -> Self {
        self.layers.extend(other.layers);
        self
    }

    /// Packed elements in the file's type.
    pub(crate) fn packed(data: &'a [u8], element: u64) -> Self {
        Self::of(data, ElementAccess { map: None, element, conversion_step: None })
    }

    /// The memory as packed elements in the file's type, if it is that.
    pub(crate) fn as_packed(&self) -> Option<&'a [u8]> {
        match self.layers.as_slice() {
            [layer] => layer.access.is_identity().then_some(layer.data),
            _ => None,
        }
    }

    /// Copies the elements of row `from` to row `to` of a buffer. Both have equal length and count.
    pub(crate) fn copy_to(&mut self, from: Row, buffer: &mut [u8], to: Row) -> Result<()> {
        self.layers.iter_mut().try_for_each(|layer| layer.copy_to(from, buffer, to))
    }
}

impl SourceLayer<'_> {
    fn copy_to(&mut self, from: Row, buffer: &mut [u8], to: Row) -> Result<()> {
        let (data, ElementAccess { map, element, conversion_step }) = (self.data, &mut self.access);
        if map.is_none() && conversion_step.is_none() {
            copy_rows(data, from, buffer, to);
            return Ok(());
        }
        for number in 0..from.count {
            let first = run(from, number).offset / *element;
            let into = &mut buffer[range(run(to, number))];
            match (&mut *map, &mut *conversion_step) {
                (Some(map), None) => map.gather(data, first, into),
                (None, Some(access)) => {
                    let bytes = into.len() as u64 / *element * access.element;
                    let start = (first * access.element) as usize;
                    access.conversion.convert(&data[start..start + bytes as usize], into)?;
                }
                (Some(map), Some(access)) => {
                    access.packed.resize((into.len() as u64 / *element * access.element) as usize, 0);
                    map.gather(data, first, &mut access.packed);
                    access.conversion.convert(&access.packed, into)?;
                }
                (None, None) => {}
            }
        }
        Ok(())
    }
}

/// Truncates packed memory to its elements: a structure's buffer may be longer.
fn cut<'a>(data: &'a [u8], access: &ElementAccess<'_>, types: Types<'_>, elements: u64) -> &'a [u8] {
    if access.map.is_none() { &data[..(elements * types.memory.size()) as usize] } else { data }
}

impl<'a> Target<'a> {
    /// `None` if the layout does not permit random access to elements. The view must have passed its check.
    pub(crate) fn new(
        view: MemoryViewMut<'a>,
        types: Types<'_>,
        elements: u64,
        conversion: Option<Conversion>,
    ) -> Result<Option<Self>> {
        let Some(access) = ElementAccess::new(view.layout, types, elements, conversion)? else { return Ok(None) };
        let bytes = if access.map.is_none() { (elements * types.memory.size()) as usize } else { view.data.len() };
        Ok(Some(Self { data: DisjointWriteBuffer::new(&mut view.data[..bytes]), access }))
    }

    /// The memory as packed elements in the file's type, if it is that.
    pub(crate) fn as_packed(&self) -> Option<DisjointWriteBuffer<'a>> {
        self.access.is_identity().then_some(self.data)
    }

    /// Copies row `from` of a buffer to the elements of row `to`. Both have equal length and count.
    ///
    /// # Safety
    /// No other thread accesses these elements concurrently.
    pub(crate) unsafe fn copy_from(&mut self, to: Row, buffer: &[u8], from: Row) -> Result<()> {
        let (data, ElementAccess { map, element, conversion_step }) = (self.data, &mut self.access);
        if map.is_none() && conversion_step.is_none() {
            // SAFETY: as the caller promises.
            unsafe { data.copy_rows(to, buffer, from) };
            return Ok(());
        }
        for number in 0..to.count {
            let first = run(to, number).offset / *element;
            let out = &buffer[range(run(from, number))];
            // SAFETY: as the caller promises.
            unsafe {
                match (&mut *map, &mut *conversion_step) {
                    (Some(map), None) => map.scatter(data, first, out),
                    (None, Some(access)) => {
                        let bytes = out.len() as u64 / *element * access.element;
                        let start = (first * access.element) as usize;
                        access.conversion.convert(out, data.slice(start..start + bytes as usize))?;
                    }
                    (Some(map), Some(access)) => {
                        access.packed.resize((out.len() as u64 / *element * access.element) as usize, 0);
                        access.conversion.convert(out, &mut access.packed)?;
                        map.scatter(data, first, &access.packed);
                    }
                    (None, None) => {}
                }
            }
        }
        Ok(())
    }
}
