//! Where formats put selections, and what more ranks do.
#![allow(clippy::unwrap_used)]

use hyperslab_core::{ArraySpec, Datatype, Selection, TransferMode};
use hyperslab_kernels::ior::{Ior, Layout};
use hyperslab_sim::{FileLayout, LayerEffects, RunPlacement, builtin, simulate, walk};

fn layout(stack: &str) -> FileLayout {
    FileLayout::of(&stack.parse().unwrap()).unwrap()
}

#[test]
fn a_classic_file_holds_arrays_one_after_the_other() {
    let mut file = layout("netcdf3");
    let spec = ArraySpec::new(Datatype::F64, &[4, 8]);
    let all = Selection::all(&[4, 8]).unwrap();
    let [first, second] = [(); 2].map(|()| file.place(&spec).unwrap().ranges(&all, 99).unwrap().extents);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!((first[0].object, first[0].len, second[0].len), (0, 256, 256));
    assert!(second[0].offset >= first[0].offset + 256, "{first:?} {second:?}");
}

#[test]
fn zarr_has_an_object_for_each_chunk() {
    let spec = ArraySpec { chunk: Some([2, 4].as_slice().into()), ..ArraySpec::new(Datatype::F64, &[4, 8]) };
    let placement = layout("zarr").place(&spec).unwrap();
    let found = placement.ranges(&Selection::all(&[4, 8]).unwrap(), 99).unwrap();
    assert!(placement.stores_objects());
    let objects: Vec<(u64, u64, u64)> = found.extents.iter().map(|at| (at.object, at.offset, at.len)).collect();
    assert_eq!(objects, [(1, 0, 64), (2, 0, 64), (3, 0, 64), (4, 0, 64)]);
    assert_eq!((found.chunks, found.partial_chunks), (4.0, 0.0));
}

#[test]
fn more_ranks_that_do_the_same_each_take_no_less_time() {
    let system = builtin("lustre-2014").unwrap();
    for mode in [TransferMode::Collective, TransferMode::Independent] {
        let mut last = 0.0;
        for ranks in 1..=10 {
            let ior = Ior {
                block: 40 << 20,
                transfer: 1 << 20,
                layout: Layout::Bytes { chunk: None },
                mode,
                ..Ior::new(ranks, "f")
            };
            let stack = "hdf5(align=1MiB)".parse().unwrap();
            let walked = walk(&ior.write().unwrap(), &stack, &system, &RunPlacement::of(&system)).unwrap();
            let seconds = simulate(&walked, &system, &LayerEffects::of(&stack).unwrap(), &system.timing).seconds;
            assert!(seconds >= last * 0.999, "{mode:?}, {ranks} ranks: {seconds}, one less: {last}");
            last = seconds;
        }
    }
}
