//! Which bytes of a caller's buffer belong to which element, one element and one member at a time.

use super::coordinates::{coordinates, linear};
use hyperslab_core::{Datatype, MemoryLayout};

/// A member of an element: where its bytes are in the buffer, where in the element, and how many.
pub(crate) struct Place {
    pub(crate) memory: usize,
    pub(crate) element: usize,
    pub(crate) len: usize,
}

/// For each of `count` elements in order, the places of its transferred members.
/// The layout must have passed the check against `dtype` and `count`.
pub(crate) fn places(layout: &MemoryLayout, dtype: &Datatype, count: usize) -> Vec<Vec<Place>> {
    let stride = layout.structure.as_ref().map_or(dtype.size(), |structure| structure.size);
    let slots: Vec<u64> = match &layout.within {
        None => (0..count as u64).collect(),
        Some(within) => coordinates(&within.selection).iter().map(|c| linear(c, &within.shape)).collect(),
    };
    slots.into_iter().map(|slot| members(layout, dtype, slot * stride)).collect()
}

fn members(layout: &MemoryLayout, dtype: &Datatype, base: u64) -> Vec<Place> {
    let Some(structure) = &layout.structure else {
        return vec![Place { memory: base as usize, element: 0, len: dtype.size() as usize }];
    };
    let mut out = Vec::new();
    for member in &structure.members {
        let (element, len) = match &member.field {
            None => (0, dtype.size()),
            Some(name) => match dtype.field(name) {
                Some(field) => (field.offset, field.dtype.size()),
                None => continue,
            },
        };
        out.push(Place { memory: (base + member.offset) as usize, element: element as usize, len: len as usize });
    }
    out
}
