//! The caller's memory, reached by the numbers of elements in the order of the selection.
//!
//! Rows are given as bytes of the packed elements of the file, whatever the layout of the memory and the type of its
//! elements are.

use crate::convert::Conversion;
use crate::refusal::Refusal;
use hyperslab_core::{
    Datatype, DisjointWriteBuffer, ElementMap, ErrorKind, MemoryLayout, MemoryView, MemoryViewMut, Result, Row,
    copy_rows,
};

/// Memory to write from. Each thread has a clone of its own.
#[derive(Debug, Clone)]
pub(crate) struct Source<'a> {
    /// Each has some bytes of every element; later ones win.
    parts: Vec<Part<'a>>,
}

#[derive(Debug, Clone)]
struct Part<'a> {
    data: &'a [u8],
    way: Way<'a>,
}

/// Memory to read into. Each thread has a clone of its own.
#[derive(Debug, Clone)]
pub(crate) struct Target<'a> {
    data: DisjointWriteBuffer<'a>,
    way: Way<'a>,
}

/// How the elements of the file correspond to memory.
#[derive(Debug, Clone)]
struct Way<'a> {
    /// `None` where elements are packed.
    map: Option<ElementMap<'a>>,
    /// Bytes of an element in the file.
    element: u64,
    /// `None` where elements are the same in memory.
    converting: Option<Box<Converting>>,
}

#[derive(Debug, Clone)]
struct Converting {
    conversion: Conversion,
    /// Bytes of an element in memory.
    element: u64,
    /// Elements of memory, packed.
    aside: Vec<u8>,
}

/// Types of elements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types<'a> {
    pub(crate) memory: &'a Datatype,
    pub(crate) file: &'a Datatype,
}

impl Types<'_> {
    /// The conversion to the file, or from it; `None` if there is nothing to convert.
    pub(crate) fn conversion(&self, writes: bool) -> Result<Result<Option<Conversion>, Refusal>> {
        if self.memory == self.file {
            return Ok(Ok(None));
        }
        let compound = matches!(self.memory, Datatype::Compound(_)) || matches!(self.file, Datatype::Compound(_));
        let (from, to) = if writes { (self.memory, self.file) } else { (self.file, self.memory) };
        match Conversion::new(from, to) {
            _ if compound => Ok(Err(Refusal::Conversion("structures are converted by the library".into()))),
            Ok(conversion) => Ok(Ok(conversion)),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Err(Refusal::Conversion(error.to_string()))),
            Err(error) => Err(error),
        }
    }
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

impl<'a> Way<'a> {
    /// `None` if the elements cannot be reached in any order.
    fn new(
        layout: &'a MemoryLayout,
        types: Types<'_>,
        elements: u64,
        conversion: Option<Conversion>,
    ) -> Result<Option<Self>> {
        let element = types.memory.size();
        let converting = conversion.map(|conversion| Box::new(Converting { conversion, element, aside: Vec::new() }));
        let map = match is_packed(layout, types.memory)? {
            true => None,
            false => match ElementMap::new(layout, types.memory, elements)? {
                Some(map) => Some(map),
                None => return Ok(None),
            },
        };
        Ok(Some(Self { map, element: types.file.size(), converting }))
    }

    fn is_identity(&self) -> bool {
        self.map.is_none() && self.converting.is_none()
    }
}

impl<'a> Source<'a> {
    /// `None` if the elements cannot be reached in any order. The view must have passed its check.
    pub(crate) fn new(
        view: MemoryView<'a>,
        types: Types<'_>,
        elements: u64,
        conversion: Option<Conversion>,
    ) -> Result<Option<Self>> {
        let way = Way::new(view.layout, types, elements, conversion)?;
        Ok(way.map(|way| Self::of(cut(view.data, &way, types, elements), way)))
    }

    fn of(data: &'a [u8], way: Way<'a>) -> Self {
        Self { parts: vec![Part { data, way }] }
    }

    /// Lays another source of the same elements over this one.
    pub(crate) fn under(mut self, other: Self) -> Self {
        self.parts.extend(other.parts);
        self
    }

    /// Elements that already are as they should be in the file.
    pub(crate) fn packed(data: &'a [u8], element: u64) -> Self {
        Self::of(data, Way { map: None, element, converting: None })
    }

    /// All packed elements, if that is what the memory is.
    pub(crate) fn as_packed(&self) -> Option<&'a [u8]> {
        match self.parts.as_slice() {
            [part] => part.way.is_identity().then_some(part.data),
            _ => None,
        }
    }

    /// Copies the elements of a row to a buffer. Rows have the same length and count.
    pub(crate) fn copy_to(&mut self, from: Row, buffer: &mut [u8], to: Row) -> Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.copy_to(from, buffer, to))
    }
}

impl Part<'_> {
    fn copy_to(&mut self, from: Row, buffer: &mut [u8], to: Row) -> Result<()> {
        let (data, Way { map, element, converting }) = (self.data, &mut self.way);
        if map.is_none() && converting.is_none() {
            copy_rows(data, from, buffer, to);
            return Ok(());
        }
        for number in 0..from.count {
            let first = run(from, number).offset / *element;
            let into = &mut buffer[range(run(to, number))];
            match (&mut *map, &mut *converting) {
                (Some(map), None) => map.gather(data, first, into),
                (None, Some(way)) => {
                    let bytes = into.len() as u64 / *element * way.element;
                    let start = (first * way.element) as usize;
                    way.conversion.convert(&data[start..start + bytes as usize], into)?;
                }
                (Some(map), Some(way)) => {
                    way.aside.resize((into.len() as u64 / *element * way.element) as usize, 0);
                    map.gather(data, first, &mut way.aside);
                    way.conversion.convert(&way.aside, into)?;
                }
                (None, None) => {}
            }
        }
        Ok(())
    }
}

/// A structure's buffer may be longer than its elements.
fn cut<'a>(data: &'a [u8], way: &Way<'_>, types: Types<'_>, elements: u64) -> &'a [u8] {
    if way.map.is_none() { &data[..(elements * types.memory.size()) as usize] } else { data }
}

impl<'a> Target<'a> {
    /// `None` if the elements cannot be reached in any order. The view must have passed its check.
    pub(crate) fn new(
        view: MemoryViewMut<'a>,
        types: Types<'_>,
        elements: u64,
        conversion: Option<Conversion>,
    ) -> Result<Option<Self>> {
        let Some(way) = Way::new(view.layout, types, elements, conversion)? else { return Ok(None) };
        let bytes = if way.map.is_none() { (elements * types.memory.size()) as usize } else { view.data.len() };
        Ok(Some(Self { data: DisjointWriteBuffer::new(&mut view.data[..bytes]), way }))
    }

    /// All packed elements, if that is what the memory is.
    pub(crate) fn as_packed(&self) -> Option<DisjointWriteBuffer<'a>> {
        self.way.is_identity().then_some(self.data)
    }

    /// Copies the elements of a row from a buffer. Rows have the same length and count.
    ///
    /// # Safety
    /// Nobody else may access these elements meanwhile.
    pub(crate) unsafe fn copy_from(&mut self, to: Row, buffer: &[u8], from: Row) -> Result<()> {
        let (data, Way { map, element, converting }) = (self.data, &mut self.way);
        if map.is_none() && converting.is_none() {
            // SAFETY: as the caller promises.
            unsafe { data.copy_rows(to, buffer, from) };
            return Ok(());
        }
        for number in 0..to.count {
            let first = run(to, number).offset / *element;
            let out = &buffer[range(run(from, number))];
            // SAFETY: as the caller promises.
            unsafe {
                match (&mut *map, &mut *converting) {
                    (Some(map), None) => map.scatter(data, first, out),
                    (None, Some(way)) => {
                        let bytes = out.len() as u64 / *element * way.element;
                        let start = (first * way.element) as usize;
                        way.conversion.convert(out, data.slice(start..start + bytes as usize))?;
                    }
                    (Some(map), Some(way)) => {
                        way.aside.resize((out.len() as u64 / *element * way.element) as usize, 0);
                        way.conversion.convert(out, &mut way.aside)?;
                        map.scatter(data, first, &way.aside);
                    }
                    (None, None) => {}
                }
            }
        }
        Ok(())
    }
}
