//! Elements of another type in memory than in the file.
#![allow(clippy::unwrap_used)]

use hyperslab_core::{Datatype, MemoryLayout, MemoryView, MemoryViewMut, Result, Selection};
use hyperslab_h5direct::{ChunkAddress, DatasetInfo, DirectDataset, FallbackReason, Layout, Limits, MetadataBackend};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Metadata that one piece at byte 512 is all of.
struct OnePiece;

impl MetadataBackend for OnePiece {
    fn dataset_address(&self, _allocate: bool) -> Result<Option<u64>> {
        Ok(Some(512))
    }

    fn for_each_chunk(&self, _each: &mut dyn FnMut(&[u64], ChunkAddress)) -> Result<()> {
        panic!("there are no chunks")
    }

    fn read_chunk(&self, _origin: &[u64], _limit: usize, _stored: &mut Vec<u8>) -> Result<u32> {
        panic!("there are no chunks")
    }

    fn write_chunk(&self, _origin: &[u64], _stored: &[u8], _mask: u32) -> Result<()> {
        panic!("there are no chunks")
    }
}

fn dataset(file: File, dtype: &str, shape: &[u64]) -> DirectDataset {
    let facts = DatasetInfo {
        name: "array".into(),
        file: Arc::new(file),
        dtype: dtype.parse().unwrap(),
        layout: Layout::Contiguous,
        filters: Vec::new(),
        fill: None,
        single_writer: true,
        grows_unallocated: true,
        guard: None,
    };
    DirectDataset::new(facts, shape, Limits::default()).unwrap().unwrap()
}

#[test]
fn numbers_are_converted_both_ways_in_every_layout() {
    let file = tempfile::tempfile().unwrap();
    let shape = [40, 30];
    let dataset = dataset(file.try_clone().unwrap(), ">i2", &shape);
    let memory = "<f8".parse::<Datatype>().unwrap();
    let value = |at: usize| at as f64 * 3.0 - 1000.5;
    for selection in [
        Selection::all(&shape).unwrap(),
        Selection::dense(&[3, 4], &[20, 5]).unwrap(),
        Selection::strided(&[1, 0], &[3, 7], &[10, 4], &[1, 2]).unwrap(),
    ] {
        let n = selection.len() as usize;
        let numbers: Vec<u8> = (0..n).flat_map(|i| value(i).to_le_bytes()).collect();
        assert_eq!(dataset.write_as(&OnePiece, &selection, MemoryView::packed(&numbers), &memory).unwrap(), None);
        // What is in the file, by itself.
        for (number, run) in selection.runs(&shape, 2).unwrap().flat_map(|r| (r.offset..r.end()).step_by(2)).enumerate()
        {
            let mut stored = [0; 2];
            file.read_exact_at(&mut stored, 512 + run).unwrap();
            assert_eq!(i16::from_be_bytes(stored), value(number) as i16);
        }
        let mut back = vec![0; n * 8];
        let view = &mut MemoryViewMut::packed(&mut back);
        assert_eq!(dataset.read_as(&OnePiece, &selection, view, &memory).unwrap(), None);
        let expected: Vec<u8> = (0..n).flat_map(|i| f64::from(value(i) as i16).to_le_bytes()).collect();
        assert!(back == expected);
        // Into structures, whose other bytes stay.
        let layout = MemoryLayout::member(20, 8);
        let mut structures = vec![9; n * 20];
        let view = &mut MemoryViewMut { data: &mut structures, layout: &layout };
        assert_eq!(dataset.read_as(&OnePiece, &selection, view, &memory).unwrap(), None);
        for (structure, number) in structures.chunks(20).zip(expected.chunks(8)) {
            assert!(structure[8..16] == *number && structure[..8] == [9; 8] && structure[16..] == [9; 4]);
        }
        let view = MemoryView { data: &structures, layout: &layout };
        assert_eq!(dataset.write_as(&OnePiece, &selection, view, &memory).unwrap(), None);
        let view = &mut MemoryViewMut::packed(&mut back);
        assert_eq!(dataset.read_as(&OnePiece, &selection, view, &memory).unwrap(), None);
        assert!(back == expected);
    }
}

#[test]
fn what_cannot_be_converted_is_refused() {
    let dataset = dataset(tempfile::tempfile().unwrap(), "<i4", &[8]);
    let all = Selection::all(&[8]).unwrap();
    let text = Datatype::FixedString(4);
    let refused = dataset.write_as(&OnePiece, &all, MemoryView::packed(&[0; 32]), &text).unwrap();
    assert!(matches!(refused, Some(FallbackReason::Conversion(_))), "{refused:?}");
}
