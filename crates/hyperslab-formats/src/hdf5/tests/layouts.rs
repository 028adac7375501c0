//! Layouts, chunks, filters, growth, fill values.

use super::*;
use hyperslab_core::{ArraySpec, Datatype, Dims, ErrorKind, Filter, Slab};

fn grid() -> ArraySpec {
    ArraySpec::new(Datatype::I32, &[30, 40])
}

#[test]
fn every_layout_keeps_every_kind_of_selection() {
    let comb = Selection::strided(&[1, 2], &[4, 7], &[7, 5], &[2, 3]).unwrap();
    let corner = Slab::dense(&[0, 0], &[3, 3]).unwrap().unwrap();
    let far = Slab::strided(&[20, 1], &[3, 5], &[3, 6], &[1, 2]).unwrap().unwrap();
    let union = Selection::union(2, [corner, far]).unwrap();
    for stack in [
        "hdf5",
        "hdf5(layout=compact)",
        "hdf5(layout=chunked)",
        "hdf5(chunk=7x9)",
        "hdf5(chunk=64x64,deflate=4,shuffle,fletcher32)",
        "hdf5(alloc_time=early,fill_time=alloc,align=4096,align_threshold=1,libver=latest)",
        "hdf5(chunk=8x8,cache=64KiB,cache_slots=101,cache_w0=100,alloc_time=incremental,libver=earliest)",
        "hdf5(meta_block=64KiB,sieve=128KiB,locking=best_effort,libver=v110)",
    ] {
        let bench = Bench::new(stack);
        let file = bench.open(OpenMode::Create);
        let array = file.create("g/a", &grid()).unwrap();
        let mut expected = vec![0u8; 30 * 40 * 4];
        for (turn, selection) in [&comb, &union, &Selection::dense(&[5, 0], &[1, 40]).unwrap()].into_iter().enumerate()
        {
            let data: Vec<u8> = pattern(selection.len() as usize * 4).iter().map(|b| b ^ turn as u8).collect();
            put(&*array, selection, &data);
            let mut from = 0;
            for run in selection.runs(&[30, 40], 4).unwrap() {
                let (at, len) = (run.offset as usize, run.len as usize);
                expected[at..at + len].copy_from_slice(&data[from..from + len]);
                from += len;
            }
            assert_eq!(get(&*array, selection), data, "{stack}");
        }
        file.close().unwrap();
        let file = bench.open(OpenMode::Read);
        let array = file.array("g/a").unwrap();
        assert_eq!(get(&*array, &all(&*array)), expected, "{stack}");
    }
}

#[test]
fn what_was_asked_for_is_what_is_there() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let mut spec = grid();
    spec.chunk = Some(Dims::from_slice(&[8, 16]));
    spec.filters = vec![Filter::Shuffle, Filter::Deflate(3), Filter::Fletcher32];
    spec.max_shape = Some(vec![None, Some(80)]);
    spec.fill_value = Some(7i32.to_ne_bytes().to_vec());
    let array = file.create("a", &spec).unwrap();
    assert_eq!(array.spec().unwrap(), spec);
    drop(array);
    assert_eq!(file.array("a").unwrap().spec().unwrap(), spec);
}

#[test]
fn arrays_grow_and_shrink_within_their_limits() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let mut spec = ArraySpec::new(Datatype::U8, &[2, 3]);
    spec.max_shape = Some(vec![None, Some(4)]);
    spec.fill_value = Some(vec![9]);
    let array = file.create("a", &spec).unwrap();
    put(&*array, &all(&*array), &[1, 2, 3, 4, 5, 6]);
    array.resize(&[3, 4]).unwrap();
    assert_eq!(get(&*array, &all(&*array)), [1, 2, 3, 9, 4, 5, 6, 9, 9, 9, 9, 9]);
    array.resize(&[1, 2]).unwrap();
    assert_eq!(get(&*array, &all(&*array)), [1, 2]);
    assert_eq!(array.resize(&[1, 5]).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(array.resize(&[1]).unwrap_err().kind(), ErrorKind::InvalidInput);
    let fixed = file.create("fixed", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    assert_eq!(fixed.resize(&[3]).unwrap_err().kind(), ErrorKind::Unsupported);
    fixed.resize(&[4]).unwrap();
    assert!(fixed.resize(&[5]).is_err());
}

#[test]
fn selections_outside_and_wrong_buffers_never_reach_the_library() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &grid()).unwrap();
    let outside = Selection::dense(&[29, 0], &[2, 40]).unwrap();
    let view = MemoryView::packed(&[0; 320]);
    assert_eq!(array.write(&outside, view, TransferMode::Independent).unwrap_err().kind(), ErrorKind::InvalidInput);
    let inside = Selection::dense(&[0, 0], &[2, 40]).unwrap();
    assert!(array.write(&inside, MemoryView::packed(&[0; 319]), TransferMode::Independent).is_err());
    assert!(array.write(&Selection::empty(1), MemoryView::packed(&[]), TransferMode::Independent).is_err());
    let mut short = [0; 10];
    assert!(array.read(&inside, MemoryViewMut::packed(&mut short), TransferMode::Independent).is_err());
}

#[test]
fn a_union_of_very_many_pieces_is_not_quadratic() {
    let pieces = 175_000u64;
    let slabs = (0..pieces).map(|i| {
        let (start, len) = (i * 7 + (i * i) % 3, 1 + i % 3);
        Slab::dense(&[start], &[len]).unwrap().unwrap()
    });
    let selection = Selection::union(1, slabs).unwrap();
    assert!(selection.slabs().len() > 50_000, "{}", selection.slabs().len());
    for stack in ["hdf5", "hdf5(chunk=65536)"] {
        let bench = Bench::new(stack);
        let file = bench.open(OpenMode::Create);
        let array = file.create("a", &ArraySpec::new(Datatype::F32, &[pieces * 7 + 16])).unwrap();
        let data = pattern(selection.len() as usize * 4);
        put(&*array, &selection, &data);
        assert_eq!(get(&*array, &selection), data);
        // A second array with the same decomposition, which the container remembers.
        let other = file.create("b", &array.spec().unwrap()).unwrap();
        put(&*other, &selection, &data);
        assert_eq!(get(&*other, &all(&*other)), get(&*array, &all(&*array)));
    }
}

#[test]
fn a_broken_checksum_is_corruption() {
    let bench = Bench::new("hdf5(chunk=1024,fletcher32)");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &ArraySpec::new(Datatype::U8, &[1024])).unwrap();
    let data = pattern(1024);
    put(&*array, &all(&*array), &data);
    file.close().unwrap();
    let mut bytes = std::fs::read(bench.path()).unwrap();
    let at = bytes.windows(64).position(|w| w == &data[..64]).unwrap();
    bytes[at + 5] ^= 1;
    std::fs::write(bench.path(), bytes).unwrap();
    let file = bench.open(OpenMode::Read);
    let array = file.array("a").unwrap();
    let mut buffer = vec![0; 1024];
    let whole = Selection::all(&[1024]).unwrap();
    let error = array.read(&whole, MemoryViewMut::packed(&mut buffer), TransferMode::Independent).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// libhdf5 tells wrong places for the chunks of some of these.
#[test]
fn arrays_may_grow_in_any_dimension_around_libhdf5() {
    let whole = Selection::all(&[4, 6, 5]).unwrap();
    for libver in ["earliest", "latest"] {
        for filters in [vec![], vec![Filter::Deflate(1)]] {
            for grows in 0..8 {
                let max = |d: usize| if grows >> d & 1 == 1 { None } else { Some([4, 9, 5][d]) };
                let mut spec = ArraySpec::new(Datatype::I32, &[4, 6, 5]);
                spec.max_shape = Some((0..3).map(max).collect());
                spec.chunk = Some(Dims::from_slice(&[3, 2, 2]));
                spec.filters = filters.clone();
                let bench = Bench::new(&format!("hdf5(libver={libver})"));
                let data = pattern(4 * 6 * 5 * 4);
                let file = bench.open(OpenMode::Create);
                put(&*file.create("a", &spec).unwrap(), &whole, &data);
                file.close().unwrap();
                let around = crate::build(&"hdf5(plane=on)".parse::<Stack>().unwrap().format).unwrap();
                let file = around.open(&bench.path(), OpenMode::Update, &Solo::shared()).unwrap();
                let array = file.array("a").unwrap();
                assert!(get(&*array, &whole) == data, "{libver} {spec:?}");
                let part = Selection::dense(&[1, 2, 1], &[2, 3, 3]).unwrap();
                put(&*array, &part, &[7; 2 * 3 * 3 * 4]);
                file.close().unwrap();
                let array = bench.open(OpenMode::Read).array("a").unwrap();
                assert!(get(&*array, &part).iter().all(|byte| *byte == 7), "{libver} {spec:?}");
                let kept = get(&*array, &whole).iter().zip(&data).filter(|(now, before)| now == before).count();
                assert!(kept >= data.len() - 72, "{libver} {spec:?}: elements beside were changed");
            }
        }
    }
}
