//! Elements written and read back.

use super::*;
use hyperslab_core::{Datatype, MemoryLayout, Slab};

fn selections(shape: &[u64; 2]) -> Vec<Selection> {
    let slab = |start: [u64; 2], count: [u64; 2]| Slab::dense(&start, &count).unwrap().unwrap();
    vec![
        Selection::all(shape).unwrap(),
        Selection::dense(&[1, 2], &[3, 4]).unwrap(),
        Selection::dense(&[0, 3], &[2, 3]).unwrap(),
        Selection::strided(&[1, 0], &[3, 2], &[3, 5], &[1, 1]).unwrap(),
        Selection::strided(&[0, 1], &[5, 4], &[2, 2], &[3, 2]).unwrap(),
        Selection::union(2, [slab([0, 0], [2, 2]), slab([1, 5], [6, 3]), slab([9, 0], [1, 10])]).unwrap(),
        Selection::empty(2),
    ]
}

/// Where the elements of a selection are in the whole array.
fn scatter(whole: &mut [u8], shape: &[u64], selection: &Selection, packed: &[u8], element: u64) {
    let mut at = 0;
    for run in selection.runs(shape, element).unwrap() {
        let len = run.len as usize;
        whole[run.offset as usize..run.end() as usize].copy_from_slice(&packed[at..at + len]);
        at += len;
    }
}

fn gather(whole: &[u8], shape: &[u64], selection: &Selection, element: u64) -> Vec<u8> {
    let runs = selection.runs(shape, element).unwrap();
    runs.flat_map(|run| whole[run.offset as usize..run.end() as usize].to_vec()).collect()
}

#[test]
fn any_selection_equals_an_array_in_memory() {
    let shape = [10, 10];
    for stack in STACKS {
        for dtype in ["<f4", ">i2", "|V3"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.zarr");
            let mut spec = spec(dtype, &shape, &[4, 3]);
            if stack.contains("shard") {
                spec.chunk = None;
            }
            let element = spec.dtype.size();
            let fill = pattern(element as usize, 3);
            spec.fill_value = Some(fill.clone());
            let store = create(stack, &path);
            let array = store.create("a", &spec).unwrap();
            let mut expected = fill.repeat(100);
            for (i, selection) in selections(&shape).iter().rev().enumerate() {
                let data = pattern((selection.len() * element) as usize, i);
                write(&array, selection, &data).unwrap();
                scatter(&mut expected, &shape, selection, &data, element);
                let again = open(&path, OpenMode::Read).array("a").unwrap();
                for selection in selections(&shape) {
                    let want = gather(&expected, &shape, &selection, element);
                    assert_eq!(read(&again, &selection), want, "{stack} {dtype} {selection:?}");
                }
            }
            format("zarr").remove(&path).unwrap();
        }
    }
}

#[test]
fn memory_of_any_layout() {
    for stack in ["zarr", "zarr(chunk=2x3,shard=4x6,codec=zstd)"] {
        let dir = tempfile::tempdir().unwrap();
        let store = create(stack, &dir.path().join("s.zarr"));
        let array = store.create("a", &ArraySpec::new("<u2".parse().unwrap(), &[6, 6])).unwrap();
        let file = Selection::dense(&[1, 1], &[4, 3]).unwrap();
        let layout = MemoryLayout::strided(&[6, 8], Selection::strided(&[1, 1], &[1, 2], &[4, 3], &[1, 1]).unwrap());
        let memory = pattern(96, 1);
        array.write(&file, MemoryView { data: &memory, layout: &layout }, TransferMode::Independent).unwrap();
        let within = &layout.within.as_ref().unwrap().selection;
        assert_eq!(read(&array, &file), gather(&memory, &[6, 8], within, 2));
        let mut back = vec![0; 96];
        array.read(&file, MemoryViewMut { data: &mut back, layout: &layout }, TransferMode::Independent).unwrap();
        let mut expected = vec![0; 96];
        scatter(&mut expected, &[6, 8], within, &gather(&memory, &[6, 8], within, 2), 2);
        assert_eq!(back, expected);
        let too_small =
            array.read(&file, MemoryViewMut { data: &mut back[..90], layout: &layout }, TransferMode::Independent);
        assert!(too_small.is_err());
    }
}

#[test]
fn some_fields_of_a_compound() {
    let dtype = Datatype::packed_compound([("a", "<i4".parse::<Datatype>().unwrap()), ("b", ">i2".parse().unwrap())]);
    let dtype = dtype.unwrap();
    for stack in STACKS {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.zarr");
        let store = create(stack, &path);
        let fill = vec![1, 2, 3, 4, 5, 6];
        let spec = ArraySpec { fill_value: Some(fill), ..ArraySpec::new(dtype.clone(), &[5, 5]) };
        let array = store.create("a", &spec).unwrap();
        let all = Selection::all(&[5, 5]).unwrap();
        let only_b = MemoryLayout::fields(4, [("b", 1)]);
        let memory = pattern(100, 5);
        array.write(&all, MemoryView { data: &memory, layout: &only_b }, TransferMode::Independent).unwrap();
        let expected: Vec<u8> = memory.chunks(4).flat_map(|m| [1, 2, 3, 4, m[1], m[2]]).collect();
        let array = open(&path, OpenMode::Read).array("a").unwrap();
        assert_eq!(array.spec().unwrap().dtype, dtype);
        assert_eq!(read_all(&array), expected, "{stack}");
        let mut back = vec![0xee; 100];
        array.read(&all, MemoryViewMut { data: &mut back, layout: &only_b }, TransferMode::Independent).unwrap();
        let kept: Vec<u8> = memory.chunks(4).flat_map(|m| [0xee, m[1], m[2], 0xee]).collect();
        assert_eq!(back, kept);
    }
}

#[test]
fn scalars_and_empty_arrays() {
    for stack in ["zarr", "zarr(version=2)", "zarr(codec=blosc)"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.zarr");
        let store = create(stack, &path);
        let scalar = store.create("scalar", &ArraySpec::new(Datatype::F64, &[])).unwrap();
        write(&scalar, &Selection::all(&[]).unwrap(), &7.5f64.to_ne_bytes()).unwrap();
        let none = store.create("none", &ArraySpec::new(Datatype::F64, &[0, 3])).unwrap();
        write(&none, &Selection::all(&[0, 3]).unwrap(), &[]).unwrap();
        assert!(write(&none, &Selection::dense(&[0, 0], &[1, 1]).unwrap(), &[0; 8]).is_err());
        let store = open(&path, OpenMode::Read);
        assert_eq!(read_all(&store.array("scalar").unwrap()), 7.5f64.to_ne_bytes());
        assert!(read_all(&store.array("none").unwrap()).is_empty());
    }
}

#[test]
fn chunks_of_fill_value_need_no_file() {
    let dir = tempfile::tempdir().unwrap();
    for (stack, files) in [("zarr", 2), ("zarr(write_empty=yes)", 4)] {
        let path = dir.path().join(format!("{files}"));
        let store = create(stack, &path);
        let array = store.create("a", &spec("<f8", &[4], &[2])).unwrap();
        let all = Selection::all(&[4]).unwrap();
        write(&array, &all, &[1; 32]).unwrap();
        assert_eq!(format(stack).files(&path).unwrap().len(), 4);
        write(&array, &all, &[0; 32]).unwrap();
        assert_eq!(format(stack).files(&path).unwrap().len(), files);
        assert_eq!(read_all(&array), [0; 32]);
    }
}
