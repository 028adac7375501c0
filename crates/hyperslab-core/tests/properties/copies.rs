use crate::oracle::{linear, shape_around, union};
use hyperslab_core::{
    BufferRegion, Datatype, Field, Gather, MemoryLayout, MemoryView, MemoryViewMut, Scatter, Selection, StructField,
    StructLayout,
};
use proptest::prelude::*;

/// An element type, and members with (offset in memory, offset in the element, length).
type Shape = (Datatype, Option<StructLayout>, Vec<(usize, usize, usize)>);

fn whole(size: u32) -> impl Strategy<Value = Shape> {
    (0u64..9, 0u64..9).prop_map(move |(before, after)| {
        let structure = StructLayout {
            size: before + u64::from(size) + after,
            members: [StructField { field: None, offset: before }].into_iter().collect(),
        };
        (Datatype::Opaque(size), Some(structure), vec![(before as usize, 0, size as usize)])
    })
}

/// Some fields of a compound, in any order in memory.
fn fields() -> impl Strategy<Value = Shape> {
    let sizes = prop::collection::vec((1u32..20, 0u64..3, 0u64..3, prop::bool::weighted(0.7)), 1..5);
    (sizes, any::<u64>()).prop_map(|(sizes, seed)| {
        let mut offset = 0;
        let mut all = Vec::new();
        for (i, &(size, gap, ..)) in sizes.iter().enumerate() {
            all.push(Field { name: format!("f{i}"), offset: offset + gap, dtype: Datatype::Opaque(size) });
            offset += gap + u64::from(size);
        }
        let dtype = Datatype::compound(offset + 1, all.clone()).unwrap();
        let mut taken: Vec<usize> = (0..all.len()).filter(|&i| sizes[i].3 || i == 0).collect();
        taken.rotate_left(seed as usize % sizes.len() % all.len().max(1) % taken_len(&sizes));
        let (mut at, mut members, mut places) = (0, Vec::new(), Vec::new());
        for i in taken {
            let (size, _, gap, _) = sizes[i];
            at += gap;
            members.push(StructField { field: Some(all[i].name.clone()), offset: at });
            places.push((at as usize, all[i].offset as usize, size as usize));
            at += u64::from(size);
        }
        (dtype, Some(StructLayout { size: at + seed % 3, members: members.into_iter().collect() }), places)
    })
}

fn taken_len(sizes: &[(u32, u64, u64, bool)]) -> usize {
    sizes.iter().enumerate().filter(|(i, s)| s.3 || *i == 0).count()
}

fn shape() -> impl Strategy<Value = Shape> {
    let size = prop::sample::select(vec![1u32, 2, 3, 4, 8, 16, 17, 40]);
    prop_oneof![
        size.clone().prop_map(|n| (Datatype::Opaque(n), None, vec![(0, 0, n as usize)])),
        size.prop_flat_map(whole),
        fields(),
    ]
}

/// The layout, and where each element begins in memory, counted in elements.
fn places(
    within: Option<(Selection, crate::oracle::Set, [u64; 4])>,
    count: u64,
) -> (Option<BufferRegion>, Vec<u64>, u64) {
    match within {
        None => (None, (0..count).collect(), count),
        Some((selection, set, more)) => {
            let shape = shape_around(selection.rank(), &set, &more);
            let total = shape.iter().product();
            let order = set.iter().map(|c| linear(&shape, c)).collect();
            (Some(BufferRegion { shape: shape.into_iter().collect(), selection }), order, total)
        }
    }
}

proptest! {
    #[test]
    fn copies_match_a_naive_loop(
        (dtype, structure, members) in shape(),
        selected in prop::option::of((0usize..=3).prop_flat_map(union)),
        more in prop::array::uniform4(0u64..3),
        count in 0u64..60,
        steps in prop::collection::vec(0usize..20, 1..20),
    ) {
        let (within, order, slots) = places(selected.map(|(s, set)| (s, set, more)), count);
        let layout = MemoryLayout { within, structure };
        let element = dtype.size() as usize;
        let stride = layout.structure.as_ref().map_or(element, |s| s.size as usize);
        let count = order.len();
        let need = layout.buffer_len(&dtype, count as u64).unwrap() as usize;
        prop_assert_eq!(need, slots as usize * stride);
        let memory: Vec<u8> = (0..need).map(|i| (i * 31 + 7) as u8).collect();

        let mut expected = vec![0xaa; count * element];
        for (i, at) in order.iter().enumerate() {
            for &(m, e, len) in &members {
                let from = *at as usize * stride + m;
                expected[i * element + e..][..len].copy_from_slice(&memory[from..from + len]);
            }
        }
        let mut packed = vec![0xaa; count * element];
        let mut gather = Gather::new(MemoryView { data: &memory, layout: &layout }, &dtype, count as u64).unwrap();
        let mut done = 0;
        for step in steps.iter().copied().cycle().take(200).chain([count + 1]) {
            let end = (done + step).min(count);
            prop_assert_eq!(gather.next_into(&mut packed[done * element..end * element]), end - done);
            done = end;
        }
        prop_assert_eq!(&packed, &expected);
        prop_assert_eq!(gather.next_into(&mut vec![0; element]), 0);

        let mut target: Vec<u8> = vec![0x55; need];
        let mut naive = target.clone();
        for (i, at) in order.iter().enumerate() {
            for &(m, e, len) in &members {
                naive[*at as usize * stride + m..][..len].copy_from_slice(&packed[i * element + e..][..len]);
            }
        }
        let view = MemoryViewMut { data: &mut target, layout: &layout };
        let mut scatter = Scatter::new(view, &dtype, count as u64).unwrap();
        let mut done = 0;
        for step in steps.iter().copied().cycle().take(200).chain([count + 1]) {
            let end = (done + step).min(count);
            prop_assert_eq!(scatter.next_from(&packed[done * element..end * element]), end - done);
            done = end;
        }
        prop_assert_eq!(scatter.next_from(&vec![0; element]), 0);
        prop_assert_eq!(target, naive);
    }
}

#[test]
fn a_buffer_too_small_is_refused() {
    let data = [0u8; 31];
    let layout = MemoryLayout::member(8, 4);
    assert!(Gather::new(MemoryView { data: &data, layout: &layout }, &Datatype::F32, 4).is_err());
    assert!(Gather::new(MemoryView::packed(&data), &Datatype::F32, 7).is_err());
    assert!(Gather::new(MemoryView { data: &data, layout: &layout }, &Datatype::F32, 3).is_ok());
    assert!(Gather::new(MemoryView::packed(&data), &Datatype::Opaque(0), 31).is_err());
}
