//! Memory that is not packed: parts of larger buffers, members of structures.

use super::*;
use hyperslab_core::{ArraySpec, BufferRegion, Datatype, Field, Gather, MemoryLayout, Scatter};

fn particle() -> Datatype {
    Datatype::compound(
        24,
        vec![
            Field { name: "x".into(), offset: 0, dtype: Datatype::F32 },
            Field { name: "y".into(), offset: 4, dtype: Datatype::F32 },
            Field { name: "id".into(), offset: 8, dtype: Datatype::I64 },
            Field { name: "flag".into(), offset: 16, dtype: Datatype::U8 },
        ],
    )
    .unwrap()
}

/// Writes and reads through libhdf5's own view of memory, and compares with the copy kernels of the core.
fn check(stack: &str, dtype: &Datatype, layout: &MemoryLayout, selection: &Selection, shape: &[u64]) {
    let bench = Bench::new(stack);
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &ArraySpec::new(dtype.clone(), shape)).unwrap();
    let element = dtype.size() as usize;
    let n = selection.len();
    let before = pattern(element * shape.iter().product::<u64>() as usize);
    put(&*array, &all(&*array), &before);

    let memory: Vec<u8> = pattern(layout.buffer_len(dtype, n).unwrap() as usize).iter().map(|b| !b).collect();
    array.write(selection, MemoryView { data: &memory, layout }, TransferMode::Independent).unwrap();
    let mut expected = get_from(&before, selection, shape, element);
    Gather::new(MemoryView { data: &memory, layout }, dtype, n).unwrap().next_into(&mut expected);
    assert_eq!(get(&*array, selection), expected, "{stack} {layout:?}");

    let mut back = vec![0x5A; memory.len()];
    array.read(selection, MemoryViewMut { data: &mut back, layout }, TransferMode::Independent).unwrap();
    let mut scattered = vec![0x5A; memory.len()];
    Scatter::new(MemoryViewMut { data: &mut scattered, layout }, dtype, n).unwrap().next_from(&expected);
    assert_eq!(back, scattered, "{stack} {layout:?}");
}

fn get_from(whole: &[u8], selection: &Selection, shape: &[u64], element: usize) -> Vec<u8> {
    let runs = selection.runs(shape, element as u64).unwrap();
    runs.flat_map(|run| whole[run.offset as usize..run.end() as usize].to_vec()).collect()
}

fn within(mut layout: MemoryLayout, shape: &[u64], selection: Selection) -> MemoryLayout {
    layout.within = Some(BufferRegion { shape: shape.into(), selection });
    layout
}

#[test]
fn parts_of_larger_buffers() {
    let file = Selection::strided(&[1, 0], &[3, 1], &[4, 1], &[2, 6]).unwrap();
    let same = Selection::dense(&[1, 1], &[8, 6]).unwrap();
    let comb = Selection::strided(&[0, 0, 1], &[2, 3, 2], &[2, 4, 3], &[1, 1, 2]).unwrap();
    let comb = Selection::union(3, comb.slabs().iter().cloned()).unwrap();
    for stack in ["hdf5", "hdf5(chunk=5x4,deflate=1)"] {
        check(stack, &Datatype::F32, &MemoryLayout::strided(&[10, 8], same.clone()), &file, &[13, 6]);
        check(stack, &Datatype::F32, &MemoryLayout::strided(&[4, 12, 8], comb.clone()), &file, &[13, 6]);
    }
}

#[test]
fn members_of_structures_of_numbers() {
    let file = Selection::strided(&[2], &[5], &[10], &[3]).unwrap();
    let part = Selection::strided(&[1, 0], &[2, 4], &[3, 5], &[1, 2]).unwrap();
    for (dtype, size, offset) in [
        (Datatype::F32, 16, 4),
        (Datatype::F32, 16, 6), // no multiple of the element, yet a fixed distance
        (Datatype::F64, 12, 4), // no fixed distance in elements: copied
        (Datatype::F64, 8, 0),
        (Datatype::FixedString(3), 7, 2),
        (Datatype::Bool, 5, 3),
    ] {
        for stack in ["hdf5", "hdf5(chunk=16)"] {
            let layout = MemoryLayout::member(size, offset);
            check(stack, &dtype, &layout, &file, &[60]);
            check(stack, &dtype, &layout, &Selection::all(&[60]).unwrap(), &[60]);
            check(stack, &dtype, &within(layout, &[7, 20], part.clone()), &file, &[60]);
        }
    }
}

#[test]
fn some_fields_of_a_compound() {
    let file = Selection::strided(&[0], &[3], &[9], &[2]).unwrap();
    let part = Selection::dense(&[2, 1], &[3, 6]).unwrap();
    for layout in [
        MemoryLayout::fields(4, [("y", 0)]),
        MemoryLayout::fields(12, [("y", 0), ("id", 4)]),
        MemoryLayout::fields(48, [("id", 40), ("x", 1), ("flag", 20)]),
        MemoryLayout::fields(24, [("x", 0), ("y", 4), ("id", 8)]), // same offsets: libhdf5 has a short cut here
        MemoryLayout::fields(64, [("x", 0), ("y", 4)]),            // and here
        MemoryLayout::fields(9, [("id", 1)]),
        MemoryLayout::member(72, 24),
    ] {
        for stack in ["hdf5", "hdf5(chunk=8,shuffle,deflate=1)", "hdf5(layout=compact)"] {
            check(stack, &particle(), &layout, &file, &[40]);
            check(stack, &particle(), &layout, &Selection::all(&[40]).unwrap(), &[40]);
            check(stack, &particle(), &within(layout.clone(), &[6, 8], part.clone()), &file, &[40]);
        }
    }
}

#[test]
fn all_fields_at_offsets_that_are_no_multiple() {
    // Only what fields cover is transferred, so padding is compared nowhere.
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let packed = Datatype::packed_compound([("a", Datatype::F32), ("b", Datatype::U8)]).unwrap();
    let array = file.create("a", &ArraySpec::new(packed.clone(), &[3])).unwrap();
    let layout = MemoryLayout::member(8, 2);
    let memory = pattern(24);
    array.write(&all(&*array), MemoryView { data: &memory, layout: &layout }, TransferMode::Independent).unwrap();
    let expected: Vec<u8> = memory.chunks(8).flat_map(|s| s[2..7].to_vec()).collect();
    assert_eq!(get(&*array, &all(&*array)), expected);
    let mut back = vec![1; 24];
    array.read(&all(&*array), MemoryViewMut { data: &mut back, layout: &layout }, TransferMode::Independent).unwrap();
    for (now, was) in back.chunks(8).zip(memory.chunks(8)) {
        assert_eq!((&now[..2], &now[2..7], now[7]), (&[1, 1][..], &was[2..7], 1));
    }
}

#[test]
fn copied_pieces_are_bounded_and_in_order() {
    let bench = Bench::new("hdf5(layout=contiguous)");
    let file = bench.open(OpenMode::Create);
    let shape = [700, 2500];
    let array = file.create("a", &ArraySpec::new(Datatype::F64, &shape)).unwrap();
    let selection = Selection::strided(&[0, 3], &[1, 3], &[700, 800], &[1, 2]).unwrap();
    let layout = MemoryLayout::member(9, 1);
    let memory = pattern(selection.len() as usize * 9);
    array.write(&selection, MemoryView { data: &memory, layout: &layout }, TransferMode::Independent).unwrap();
    let expected: Vec<u8> = memory.chunks(9).flat_map(|s| s[1..].to_vec()).collect();
    assert!(get(&*array, &selection) == expected);
    let mut back = vec![0; memory.len()];
    array.read(&selection, MemoryViewMut { data: &mut back, layout: &layout }, TransferMode::Independent).unwrap();
    assert!(back.chunks(9).zip(memory.chunks(9)).all(|(b, m)| b[0] == 0 && b[1..] == m[1..]));
}

#[test]
fn other_fields_survive_when_whole_chunks_are_selected() {
    // libhdf5 does not load a chunk that it takes for overwritten, and it does so whenever sizes agree.
    let layout = MemoryLayout::fields(24, [("x", 0), ("y", 4), ("id", 8)]);
    for stack in ["hdf5(chunk=8)", "hdf5(chunk=8,deflate=1)", "hdf5(chunk=8,cache=0)", "hdf5", "hdf5(layout=compact)"] {
        for written in [true, false] {
            let bench = Bench::new(stack);
            let file = bench.open(OpenMode::Create);
            let mut spec = ArraySpec::new(particle(), &[40]);
            spec.fill_value = Some(vec![7; 24]);
            let array = file.create("a", &spec).unwrap();
            if written {
                put(&*array, &all(&*array), &[7; 24 * 40]);
            }
            file.close().unwrap();
            let file = bench.open(OpenMode::Update);
            let array = file.array("a").unwrap();
            let memory = pattern(24 * 40);
            array
                .write(&all(&*array), MemoryView { data: &memory, layout: &layout }, TransferMode::Independent)
                .unwrap();
            file.close().unwrap();
            let file = bench.open(OpenMode::Read);
            let array = file.array("a").unwrap();
            let back = get(&*array, &all(&*array));
            for (now, was) in back.chunks(24).zip(memory.chunks(24)) {
                assert_eq!((&now[..16], now[16]), (&was[..16], 7), "{stack} written before: {written}");
            }
        }
    }
}
