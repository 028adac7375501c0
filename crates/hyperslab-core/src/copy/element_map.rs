//! Random access to the elements of a memory layout, from several threads.

use super::transfer::{Elements, IntoPacked, OutOfPacked};
use crate::{Datatype, DisjointWriteBuffer, MemoryLayout, Result};

/// Maps element numbers to their bytes in memory: like [`Gather`](crate::Gather) and [`Scatter`](crate::Scatter), but starting
/// at any element. Clone it for each thread.
#[derive(Debug, Clone)]
pub struct ElementMap<'a> {
    elements: Elements<'a>,
}

impl<'a> ElementMap<'a> {
    /// A map of `elements` elements of `dtype`; `None` if the memory selection is a union of slabs, which has no random access.
    /// The layout must fit the buffers used later, see [`MemoryLayout::buffer_len`].
    pub fn new(layout: &'a MemoryLayout, dtype: &Datatype, elements: u64) -> Result<Option<Self>> {
        let mut elements = Elements::new(layout, dtype, elements)?;
        Ok(elements.seek(0).then_some(Self { elements }))
    }

    /// Copies elements, starting with number `first` in selection order, to `packed`, as many as fit. Bytes of elements that no
    /// field covers are not changed.
    pub fn gather(&mut self, data: &[u8], first: u64, packed: &mut [u8]) {
        self.elements.seek(first);
        let bytes = packed.len();
        self.elements.transfer(bytes, &mut IntoPacked { data, packed });
    }

    /// Copies packed elements to memory, starting with element number `first`.
    ///
    /// # Safety
    /// No other thread may access these elements in `data` during the call.
    pub unsafe fn scatter(&mut self, data: DisjointWriteBuffer<'_>, first: u64, packed: &[u8]) {
        self.elements.seek(first);
        // SAFETY: as the caller promises.
        let mut direction = unsafe { OutOfPacked::new(data, packed) };
        self.elements.transfer(packed.len(), &mut direction);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Gather, MemoryView, Selection};
    use proptest::prelude::*;

    fn layouts() -> Vec<(MemoryLayout, u64)> {
        let slab = Selection::strided(&[1, 0, 2], &[3, 1, 4], &[3, 1, 3], &[2, 5, 3]).unwrap();
        let elements = slab.len();
        let mut fields = MemoryLayout::strided(&[12, 9, 16], slab.clone());
        fields.structure = MemoryLayout::member(24, 12).structure;
        vec![
            (MemoryLayout::packed(), 500),
            (MemoryLayout::member(20, 4), 77),
            (MemoryLayout::strided(&[12, 9, 16], slab), elements),
            (fields, elements),
            (MemoryLayout::strided(&[7, 11], Selection::dense(&[1, 2], &[5, 9]).unwrap()), 45),
        ]
    }

    proptest! {
        #[test]
        fn any_part_is_what_a_walk_finds_there(which in 0usize..5, from in 0.0f64..1.0, count in 1u64..200) {
            let (layout, elements) = &layouts()[which];
            let dtype = Datatype::F32;
            let bytes = layout.buffer_len(&dtype, *elements).unwrap() as usize;
            let data: Vec<u8> = (0..bytes).map(|i| ((i * 31) >> 2) as u8).collect();
            let mut all = vec![0; *elements as usize * 4];
            Gather::new(MemoryView { data: &data, layout }, &dtype, *elements).unwrap().next_into(&mut all);
            let first = (from * *elements as f64) as u64;
            let count = count.min(elements - first);
            let expected = &all[first as usize * 4..(first + count) as usize * 4];
            let mut map = ElementMap::new(layout, &dtype, *elements).unwrap().unwrap();
            let mut found = vec![0; expected.len()];
            map.gather(&data, first, &mut found);
            prop_assert!(found == expected);
            let mut back = vec![0; bytes];
            // SAFETY: the only user.
            unsafe { map.scatter(DisjointWriteBuffer::new(&mut back), first, expected) };
            map.gather(&back, first, &mut found);
            prop_assert!(found == expected);
            let touched = back.iter().filter(|b| **b != 0).count();
            prop_assert!(touched <= expected.len());
        }
    }

    #[test]
    fn unions_have_no_map() {
        let union = Selection::dense(&[0], &[3]).unwrap().union_with(&Selection::dense(&[7], &[2]).unwrap()).unwrap();
        let layout = MemoryLayout::strided(&[10], union);
        assert!(ElementMap::new(&layout, &Datatype::U8, 5).unwrap().is_none());
    }
}
