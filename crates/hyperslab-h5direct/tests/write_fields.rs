//! Fields written together from several buffers, against one buffer of whole elements.
#![allow(clippy::unwrap_used)]

use hyperslab_core::{Datatype, Error, Field, MemoryLayout, MemoryView, Result, Selection};
use hyperslab_h5direct::{ChunkAddress, DatasetInfo, DirectDataset, Layout, Limits, MetadataBackend};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const BASE: u64 = 100;

/// An array in one piece.
struct InOnePiece;

impl MetadataBackend for InOnePiece {
    fn dataset_address(&self, _: bool) -> Result<Option<u64>> {
        Ok(Some(BASE))
    }

    fn for_each_chunk(&self, _: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()> {
        Err(Error::unsupported("test", "no chunks"))
    }

    fn read_chunk(&self, _: &[u64], _: usize, _: &mut Vec<u8>) -> Result<u32> {
        Err(Error::unsupported("test", "no chunks"))
    }

    fn write_chunk(&self, _: &[u64], _: &[u8], _: u32) -> Result<()> {
        Err(Error::unsupported("test", "no chunks"))
    }
}

fn field(name: &str, offset: u64, dtype: Datatype) -> Field {
    Field { name: name.into(), offset, dtype }
}

fn dataset(file: &Arc<std::fs::File>, dtype: &Datatype, elements: u64) -> DirectDataset {
    let facts = DatasetInfo {
        name: "x".into(),
        file: file.clone(),
        dtype: dtype.clone(),
        layout: Layout::Contiguous,
        filters: Vec::new(),
        fill: None,
        single_writer: true,
        grows_unallocated: true,
        guard: None,
    };
    DirectDataset::new(facts, &[elements], Limits { threads: 2, cache: 0 }).unwrap().unwrap()
}

fn column(elements: u64, width: u64, salt: u64) -> Vec<u8> {
    (0..elements * width).map(|i| (((i + 1) * (salt + 3)) >> 2) as u8 | 1).collect()
}

/// Writes columns of fields `a` (4 bytes at 0), `b` (2 at 4), `c` (8 at 8) over a file of sevens; 2 bytes belong to no field.
fn written(names: &[&str], selection: &Selection, elements: u64) -> (Vec<u8>, Vec<u8>) {
    let dtype = Datatype::compound(
        16,
        vec![field("a", 0, Datatype::F32), field("b", 4, Datatype::FixedString(2)), field("c", 8, Datatype::F64)],
    )
    .unwrap();
    let file = Arc::new(tempfile::tempfile().unwrap());
    let mut expected = vec![7u8; (BASE + elements * 16) as usize];
    file.write_all_at(&expected, 0).unwrap();
    let dataset = dataset(&file, &dtype, elements);
    let width = |name: &str| dtype.field(name).unwrap().dtype.size();
    let columns: Vec<(MemoryLayout, Vec<u8>)> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let data = column(selection.len(), width(name), at as u64);
            (MemoryLayout::fields(width(name), [(*name, 0)]), data)
        })
        .collect();
    for (number, run) in selection
        .runs(&[elements], 16)
        .unwrap()
        .flat_map(|r| (0..r.len / 16).map(move |i| r.offset + i * 16))
        .enumerate()
    {
        for (name, (_, data)) in names.iter().zip(&columns) {
            let (at, width) = ((BASE + run + dtype.field(name).unwrap().offset) as usize, width(name) as usize);
            expected[at..at + width].copy_from_slice(&data[number * width..(number + 1) * width]);
        }
    }
    let views: Vec<MemoryView<'_>> = columns.iter().map(|(layout, data)| MemoryView { data, layout }).collect();
    assert!(dataset.write_fields(&InOnePiece, selection, &views).unwrap().is_none());
    let mut found = vec![0; expected.len()];
    file.read_exact_at(&mut found, 0).unwrap();
    (found, expected)
}

#[test]
fn columns_become_elements_and_later_ones_win() {
    let elements = 300_000;
    let some = Selection::dense(&[17], &[1234]).unwrap();
    let steps = Selection::strided(&[3], &[5], &[100], &[2]).unwrap();
    for selection in [Selection::all(&[elements]).unwrap(), some, steps] {
        for names in [&["a"][..], &["c", "a"], &["a", "b", "c"], &["c", "b", "a", "b"], &["b", "b"]] {
            let (found, expected) = written(names, &selection, elements);
            assert!(found == expected, "{names:?}");
        }
    }
}

#[test]
fn whole_elements_are_not_read() {
    let dtype = Datatype::packed_compound([("a", Datatype::F32), ("b", Datatype::F32)]).unwrap();
    // Reading from it fails.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let file = Arc::new(std::fs::File::create(&path).unwrap());
    let dataset = dataset(&file, &dtype, 1000);
    let (a, b) = (column(1000, 4, 1), column(1000, 4, 2));
    let (one, two) = (MemoryLayout::fields(4, [("a", 0)]), MemoryLayout::fields(4, [("b", 0)]));
    let views = [MemoryView { data: &a, layout: &one }, MemoryView { data: &b, layout: &two }];
    let all = Selection::all(&[1000]).unwrap();
    assert!(dataset.write_fields(&InOnePiece, &all, &views[..1]).is_err());
    assert!(dataset.write_fields(&InOnePiece, &all, &views).unwrap().is_none());
    let found = std::fs::read(&path).unwrap();
    let element = |i: usize| [&a[i * 4..i * 4 + 4], &b[i * 4..i * 4 + 4]].concat();
    let expected: Vec<u8> = (0..1000).flat_map(element).collect();
    assert!(found[BASE as usize..] == expected);
}
