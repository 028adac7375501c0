//! Memory layouts: where the elements of a transfer are in the caller's buffer.

use crate::{Datatype, Dims, Error, Result, Selection};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

/// The layout of elements in a buffer, without the buffer itself, so that a workload can store it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryLayout {
    /// The region of a larger row-major buffer; `None` means packed elements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<BufferRegion>,
    /// The structure that holds each element's bytes; `None` means whole elements of the array's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<StructLayout>,
}

/// A selection within a larger row-major buffer. Its elements pair with those of the file selection in row-major order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BufferRegion {
    /// Extents of the buffer in elements.
    pub shape: Dims,
    /// The selected elements.
    pub selection: Selection,
}

/// An array of structures (AoS) layout: structures of `size` bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructLayout {
    /// Bytes from one structure to the next.
    pub size: u64,
    /// The members that are transferred.
    pub members: SmallVec<[StructField; 1]>,
}

/// One field of an in-memory structure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StructField {
    /// The field of the array's compound type that is transferred to or from it; `None`: the whole element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// First byte within the structure.
    pub offset: u64,
}

impl MemoryLayout {
    /// Whole elements, one after another.
    pub fn packed() -> Self {
        Self::default()
    }

    /// A selection of a larger row-major buffer of `shape` elements.
    pub fn strided(shape: &[u64], selection: Selection) -> Self {
        Self { within: Some(BufferRegion { shape: shape.into(), selection }), structure: None }
    }

    /// Whole elements at byte `offset` of structures of `size` bytes.
    pub fn member(size: u64, offset: u64) -> Self {
        let members = smallvec::smallvec![StructField { field: None, offset }];
        Self { within: None, structure: Some(StructLayout { size, members }) }
    }

    /// Some fields of the array's compound type, at byte offsets of structures of `size` bytes.
    pub fn fields<N: Into<String>>(size: u64, fields: impl IntoIterator<Item = (N, u64)>) -> Self {
        let members = fields.into_iter().map(|(n, offset)| StructField { field: Some(n.into()), offset }).collect();
        Self { within: None, structure: Some(StructLayout { size, members }) }
    }

    /// Whether the buffer holds exactly the packed elements.
    pub fn is_packed(&self) -> bool {
        self.within.is_none() && self.structure.is_none()
    }

    /// The copy plan per element; checks the layout against the array's type.
    pub fn plan(&self, dtype: &Datatype) -> Result<ElementPlan> {
        ElementPlan::new(self.structure.as_ref(), dtype)
    }

    /// Buffer size for `elements` elements of `dtype`; checks the layout.
    pub fn buffer_len(&self, dtype: &Datatype, elements: u64) -> Result<u64> {
        let plan = self.plan(dtype)?;
        let shape: Dims = match &self.within {
            Some(within) => {
                within.selection.check_inside(&within.shape)?;
                if within.selection.len() != elements {
                    return Err(Error::invalid(
                        "check memory",
                        format!("memory selects {} elements, the file selection {elements}", within.selection.len()),
                    ));
                }
                within.shape.clone()
            }
            None => smallvec::smallvec![elements],
        };
        crate::dims::byte_count(&shape, plan.stride)
    }
}

/// Byte ranges to copy between an in-memory structure and an element of the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementPlan {
    /// Bytes from one element to the next in memory.
    pub stride: u64,
    /// Bytes of one element in the array.
    pub element: u64,
    /// Ranges to copy per element, coalesced where both sides are contiguous.
    pub pieces: SmallVec<[ElementPiece; 2]>,
}

/// A byte range that is contiguous both in the structure and in the element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementPiece {
    /// First byte in the structure.
    pub memory: u64,
    /// First byte in the array's element.
    pub element: u64,
    /// Bytes.
    pub len: u64,
}

impl ElementPlan {
    fn new(structure: Option<&StructLayout>, dtype: &Datatype) -> Result<Self> {
        let element = dtype.size();
        if element == 0 {
            return Err(Error::invalid("check memory", format!("an element of {dtype} has 0 bytes")));
        }
        if *dtype == Datatype::VariableString {
            return Err(Error::unsupported("check memory", "strings of variable length have no packed form in memory"));
        }
        let Some(structure) = structure else {
            let pieces = smallvec::smallvec![ElementPiece { memory: 0, element: 0, len: element }];
            return Ok(Self { stride: element, element, pieces });
        };
        let bad = |m: String| Err(Error::invalid("check memory", m));
        let mut pieces: SmallVec<[ElementPiece; 2]> = SmallVec::new();
        for member in &structure.members {
            let (at, len) = match &member.field {
                None => (0, element),
                Some(name) => match dtype.field(name) {
                    Some(field) => (field.offset, field.dtype.size()),
                    None => return bad(format!("the array's type {dtype} has no field {name:?}")),
                },
            };
            if member.offset.checked_add(len).is_none_or(|end| end > structure.size) {
                return bad(format!(
                    "a member at {} of {len} bytes exceeds the structure of {}",
                    member.offset, structure.size
                ));
            }
            pieces.push(ElementPiece { memory: member.offset, element: at, len });
        }
        if pieces.is_empty() {
            return bad("no member is transferred".into());
        }
        for by in [|p: &ElementPiece| p.memory, |p: &ElementPiece| p.element] {
            pieces.sort_by_key(by);
            if pieces.windows(2).any(|w| by(&w[0]) + w[0].len > by(&w[1])) {
                return bad("members overlap".into());
            }
        }
        let mut joined: SmallVec<[ElementPiece; 2]> = SmallVec::new();
        for piece in pieces {
            match joined.last_mut() {
                Some(l) if l.memory + l.len == piece.memory && l.element + l.len == piece.element => l.len += piece.len,
                _ => joined.push(piece),
            }
        }
        Ok(Self { stride: structure.size, element, pieces: joined })
    }

    /// Whether structure and element are byte-identical.
    pub fn is_identity(&self) -> bool {
        self.stride == self.element && self.covers_element() && self.pieces.len() == 1
    }

    /// Whether every byte of the array's element is transferred. If not, a write is a read-modify-write.
    pub fn covers_element(&self) -> bool {
        self.pieces.iter().map(|p| p.len).sum::<u64>() == self.element
    }

    /// Bytes of the array's element in the union of several plans.
    pub fn covered_together<'a>(plans: impl IntoIterator<Item = &'a Self>) -> u64 {
        let mut pieces: Vec<ElementPiece> = plans.into_iter().flat_map(|plan| plan.pieces.iter().copied()).collect();
        pieces.sort_by_key(|piece| piece.element);
        let (mut covered, mut end) = (0, 0);
        for piece in pieces {
            let until = piece.element + piece.len;
            covered += until.saturating_sub(piece.element.max(end));
            end = end.max(until);
        }
        covered
    }
}

/// A buffer to write from.
#[derive(Debug, Clone, Copy)]
pub struct MemoryView<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// The layout of elements in them.
    pub layout: &'a MemoryLayout,
}

/// A buffer to read into. Bytes that belong to no transferred element or field are not changed.
#[derive(Debug)]
pub struct MemoryViewMut<'a> {
    /// The bytes.
    pub data: &'a mut [u8],
    /// The layout of elements in them.
    pub layout: &'a MemoryLayout,
}

static PACKED: MemoryLayout = MemoryLayout { within: None, structure: None };

impl<'a> MemoryView<'a> {
    /// A buffer of whole elements, one after another.
    pub fn packed(data: &'a [u8]) -> Self {
        Self { data, layout: &PACKED }
    }

    /// Refuses a buffer too small for `elements` elements of `dtype`.
    pub fn check(&self, dtype: &Datatype, elements: u64) -> Result<()> {
        check_len(self.data.len(), self.layout.buffer_len(dtype, elements)?, self.layout.is_packed())
    }
}

impl<'a> MemoryViewMut<'a> {
    /// A buffer of whole elements, one after another.
    pub fn packed(data: &'a mut [u8]) -> Self {
        Self { data, layout: &PACKED }
    }

    /// Refuses a buffer too small for `elements` elements of `dtype`.
    pub fn check(&self, dtype: &Datatype, elements: u64) -> Result<()> {
        check_len(self.data.len(), self.layout.buffer_len(dtype, elements)?, self.layout.is_packed())
    }
}

fn check_len(have: usize, need: u64, exact: bool) -> Result<()> {
    let have = have as u64;
    if have < need || (exact && have != need) {
        return Err(Error::invalid("check memory", format!("the buffer has {have} bytes, the selection needs {need}")));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_several_plans_have_count_once() {
        let dtype =
            Datatype::packed_compound([("a", Datatype::F32), ("b", Datatype::F64), ("c", Datatype::F32)]).unwrap();
        let plan = |names: &[&str]| {
            let (mut members, mut end) = (Vec::new(), 0);
            for name in names {
                members.push((*name, end));
                end += dtype.field(name).unwrap().dtype.size();
            }
            MemoryLayout::fields(end, members).plan(&dtype).unwrap()
        };
        let covered = |parts: &[&[&str]]| {
            let plans: Vec<ElementPlan> = parts.iter().map(|names| plan(names)).collect();
            ElementPlan::covered_together(&plans)
        };
        assert_eq!(covered(&[]), 0);
        assert_eq!(covered(&[&["b"]]), 8);
        assert_eq!(covered(&[&["c"], &["a"]]), 8);
        assert_eq!(covered(&[&["a", "b"], &["b", "c"], &["b"]]), dtype.size());
    }
}
