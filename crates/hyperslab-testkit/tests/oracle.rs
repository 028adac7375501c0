//! The oracle itself, against results worked out by hand.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Container, Datatype, ErrorKind, Format, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection,
    Slab, TransferMode,
};
use hyperslab_testkit::Memory;
use std::path::Path;
use std::sync::Arc;

fn container(name: &str) -> Arc<dyn Container> {
    Memory.open(Path::new(name), OpenMode::Truncate, &Solo::shared()).unwrap()
}

#[test]
fn strided_elements_land_where_arithmetic_says() {
    let container = container("strided");
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[3, 6])).unwrap();
    let some = Selection::strided(&[0, 1], &[2, 3], &[2, 2], &[1, 2]).unwrap();
    let data: Vec<u8> = (1..=8).collect();
    array.write(&some, MemoryView::packed(&data), TransferMode::Independent).unwrap();
    let mut all = vec![9; 18];
    array.read(&Selection::all(&[3, 6]).unwrap(), MemoryViewMut::packed(&mut all), TransferMode::Independent).unwrap();
    assert_eq!(all, [0, 1, 2, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5, 6, 0, 7, 8]);
}

#[test]
fn unions_are_row_major_and_count_overlaps_once() {
    let container = container("union");
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[2, 4])).unwrap();
    let slabs = [Slab::dense(&[0, 2], &[2, 2]).unwrap(), Slab::dense(&[0, 0], &[1, 3]).unwrap()];
    let some = Selection::union(2, slabs.into_iter().flatten()).unwrap();
    array.write(&some, MemoryView::packed(&[1, 2, 3, 4, 5, 6]), TransferMode::Independent).unwrap();
    let mut all = vec![9; 8];
    array.read(&Selection::all(&[2, 4]).unwrap(), MemoryViewMut::packed(&mut all), TransferMode::Independent).unwrap();
    assert_eq!(all, [1, 2, 3, 4, 0, 0, 5, 6]);
}

#[test]
fn members_of_structures_leave_the_rest_alone() {
    let container = container("members");
    let dtype = Datatype::packed_compound([("a", Datatype::U8), ("b", "<u2".parse().unwrap())]).unwrap();
    let array = container.create("a", &ArraySpec::new(dtype, &[2])).unwrap();
    let all = Selection::all(&[2]).unwrap();
    array.write(&all, MemoryView::packed(&[1, 2, 3, 4, 5, 6]), TransferMode::Independent).unwrap();
    let only_b = MemoryLayout::fields(4, [("b", 1)]);
    let view = MemoryView { data: &[0, 20, 30, 0, 0, 50, 60, 0], layout: &only_b };
    array.write(&all, view, TransferMode::Independent).unwrap();
    let mut whole = [0; 6];
    array.read(&all, MemoryViewMut::packed(&mut whole), TransferMode::Independent).unwrap();
    assert_eq!(whole, [1, 20, 30, 4, 50, 60]);
    let mut part = [7; 8];
    let view = MemoryViewMut { data: &mut part, layout: &only_b };
    array.read(&all, view, TransferMode::Independent).unwrap();
    assert_eq!(part, [7, 20, 30, 7, 7, 50, 60, 7]);
}

#[test]
fn what_is_cut_off_comes_back_as_fill() {
    let container = container("resize");
    let spec = ArraySpec {
        max_shape: Some(vec![None, Some(3)]),
        fill_value: Some(vec![5]),
        ..ArraySpec::new(Datatype::U8, &[2, 2])
    };
    let array = container.create("a", &spec).unwrap();
    let all = Selection::all(&[2, 2]).unwrap();
    array.write(&all, MemoryView::packed(&[1, 2, 3, 4]), TransferMode::Independent).unwrap();
    array.resize(&[1, 3]).unwrap();
    array.resize(&[2, 3]).unwrap();
    assert_eq!(array.resize(&[2, 4]).unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut found = [0; 6];
    let all = Selection::all(&[2, 3]).unwrap();
    array.read(&all, MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
    assert_eq!(found, [1, 2, 5, 5, 5, 5]);
}
