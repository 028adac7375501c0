//! What changes is read anew.

use super::{bytes, dense, read, watched, wrap, write};
use hyperslab_comm::Threads;
use hyperslab_core::{
    ArraySpec, Bytes, Datatype, Durability, Field, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection,
    TransferMode,
};
use hyperslab_testkit::{Fault, Faulty, Memory};
use std::path::Path;
use std::sync::Arc;

const SHAPE: [u64; 2] = [16, 64];

#[test]
fn every_form_of_write_is_seen() {
    let (format, seen) = watched("cache(memory=1MiB,block=2x64)");
    let (_container, array) = bytes(&*format, "writes", &SHAPE, None, OpenMode::Update);
    let all = Selection::all(&SHAPE).unwrap();
    let mut expected = read(&array, &all);
    let mut change = |selection: &Selection, value: u8, how: &dyn Fn(&[u8])| {
        assert_eq!(read(&array, &all), expected);
        how(&vec![value; selection.len() as usize]);
        for run in selection.runs(&SHAPE, 1).unwrap() {
            expected[run.offset as usize..run.end() as usize].fill(value);
        }
        seen.take_reads();
        assert_eq!(read(&array, &all), expected);
        let elements: u64 = seen.take_reads().iter().map(Selection::len).sum();
        assert!(elements > 0 && elements < all.len(), "only what changed is read: {elements}");
    };
    let row = dense(&[3, 0], &[1, 64]);
    change(&row, 1, &|data| array.write(&row, MemoryView::packed(data), TransferMode::Independent).unwrap());
    let gaps = Selection::strided(&[4, 1], &[3, 7], &[2, 9], &[1, 2]).unwrap();
    change(&gaps, 2, &|data| array.write(&gaps, MemoryView::packed(data), TransferMode::Collective).unwrap());
    change(&row, 3, &|data| {
        let (left, right) = (dense(&[3, 0], &[1, 32]), dense(&[3, 32], &[1, 32]));
        let parts = [(&left, MemoryView::packed(&data[..32])), (&right, MemoryView::packed(&data[32..]))];
        array.write_many(&parts, TransferMode::Independent).unwrap();
    });
    change(&gaps, 4, &|data| {
        let (data, packed) = (Bytes::copy_from_slice(data), MemoryLayout::packed());
        array.submit_write(&gaps, data, &packed, TransferMode::Independent).unwrap().wait().unwrap();
    });
    let other = _container.array("a").unwrap();
    change(&row, 5, &|data| other.write(&row, MemoryView::packed(data), TransferMode::Independent).unwrap());
}

#[test]
fn submitted_writes_are_seen_before_and_after_they_are_done() {
    let format = wrap("cache(memory=1MiB)", wrap("async", Arc::new(Memory)));
    let (container, array) = bytes(&*format, "submitted", &SHAPE, None, OpenMode::Update);
    let row = dense(&[3, 0], &[1, 64]);
    for value in 0..100 {
        let request = array
            .submit_write(&row, Bytes::from(vec![value; 64]), &MemoryLayout::packed(), TransferMode::Independent)
            .unwrap();
        assert_eq!(read(&array, &row), [value; 64]);
        if value % 2 == 0 {
            request.wait().unwrap();
        }
        assert_eq!(read(&array, &row), [value; 64]);
    }
    container.close().unwrap();
}

#[test]
fn some_fields_of_elements_are_seen() {
    let (format, _) = watched("cache(memory=1MiB)");
    let field = |name: &str, offset| Field { name: name.into(), offset, dtype: Datatype::U8 };
    let dtype = Datatype::compound(2, vec![field("x", 0), field("y", 1)]).unwrap();
    let container =
        format.open(Path::new("cache/fields"), OpenMode::Truncate, &hyperslab_comm::Solo::shared()).unwrap();
    let array = container.create("a", &ArraySpec::new(dtype, &[4])).unwrap();
    let all = Selection::all(&[4]).unwrap();
    let read = || {
        let mut data = vec![0xEE; 8];
        array.read(&all, MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
        data
    };
    assert_eq!(read(), [0; 8]);
    let layout = MemoryLayout::fields(1, [("y", 0)]);
    array.write(&all, MemoryView { data: &[1, 2, 3, 4], layout: &layout }, TransferMode::Independent).unwrap();
    assert_eq!(read(), [0, 1, 0, 2, 0, 3, 0, 4]);
    let mut ys = [0; 4];
    array.read(&all, MemoryViewMut { data: &mut ys, layout: &layout }, TransferMode::Independent).unwrap();
    assert_eq!(ys, [1, 2, 3, 4]);
}

#[test]
fn another_shape_has_none_of_the_old_elements() {
    let (format, _) = watched("cache(memory=1MiB,block=64)");
    let container =
        format.open(Path::new("cache/resized"), OpenMode::Truncate, &hyperslab_comm::Solo::shared()).unwrap();
    let spec = ArraySpec { max_shape: Some(vec![None]), ..ArraySpec::new(Datatype::U8, &[200]) };
    let array = container.create("a", &spec).unwrap();
    let all = dense(&[0], &[200]);
    write(&array, &all, 7);
    assert_eq!(read(&array, &all), [7; 200]);
    array.resize(&[100]).unwrap();
    assert_eq!(read(&array, &dense(&[0], &[100])), [7; 100]);
    assert!(array.read(&all, MemoryViewMut::packed(&mut [0; 200]), TransferMode::Independent).is_err());
    array.resize(&[200]).unwrap();
    assert_eq!(read(&array, &all), [&[7; 100][..], &[0; 100]].concat());
    array.close().unwrap();
    assert!(array.read(&all, MemoryViewMut::packed(&mut [0; 200]), TransferMode::Independent).is_err(), "it is closed");
    let array = container.array("a").unwrap();
    assert_eq!(read(&array, &all)[100..], [0; 100]);
    container.close().unwrap();
    assert!(
        array.read(&all, MemoryViewMut::packed(&mut [0; 200]), TransferMode::Independent).is_err(),
        "all is closed"
    );
}

#[test]
fn what_others_wrote_is_seen_after_a_flush() {
    let (format, _) = watched("cache(memory=1MiB)");
    let ranks = 3;
    Threads::run(ranks, |comm| {
        let container = format.open(Path::new("cache/others"), OpenMode::Truncate, &comm)?;
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[ranks as u64, 8]))?;
        let all = Selection::all(&[ranks as u64, 8])?;
        for round in 1..20 {
            let mine = dense(&[comm.rank() as u64, 0], &[1, 8]);
            write(&array, &mine, round);
            // In the cache of everyone, with whatever others have written by now.
            read(&array, &all);
            container.flush(Durability::Visible)?;
            assert_eq!(read(&array, &all), vec![round; 8 * ranks]);
            comm.barrier()?;
        }
        // Written together: seen by who wrote, and by all after a flush.
        let mine = Selection::strided(&[0, comm.rank() as u64], &[1, 3], &[3, 1], &[1, 2])?;
        array.write(&mine, MemoryView::packed(&[99; 6]), TransferMode::Collective)?;
        assert_eq!(read(&array, &mine), [99; 6]);
        container.flush(Durability::Visible)?;
        assert_eq!(read(&array, &dense(&[0, 0], &[3, 4])), [99; 12]);
        let mut together = [0; 24];
        array.read(&all, MemoryViewMut::packed(&mut together), TransferMode::Collective)?;
        assert_eq!(together[..4], [99; 4]);
        container.close()
    })
    .unwrap();
}

#[test]
fn every_rank_takes_part_in_collective_reads() {
    let (format, seen) = watched("cache(memory=1MiB)");
    let (container, _) = bytes(&*format, "together", &SHAPE, None, OpenMode::Read);
    container.close().unwrap();
    Threads::run(2, |comm| {
        let container = format.open(Path::new("cache/together"), OpenMode::Read, &comm)?;
        let array = container.array("a")?;
        let all = Selection::all(&SHAPE)?;
        read(&array, &all);
        comm.barrier()?;
        seen.take_reads();
        comm.barrier()?;
        let mine = if comm.rank() == 0 { all } else { Selection::empty(2) };
        let mut data = vec![0; mine.len() as usize];
        array.read(&mine, MemoryViewMut::packed(&mut data), TransferMode::Collective)?;
        comm.barrier()?;
        assert_eq!(seen.reads.lock().unwrap().len(), 2);
        comm.barrier()?;
        container.close()
    })
    .unwrap();
}

#[test]
fn failures_leave_nothing_behind() {
    for fault in Fault::ALL {
        let faulty = Faulty::new(Arc::new(Memory));
        let format = wrap("cache(memory=1MiB,block=2x64)", Arc::new(faulty.clone()));
        let (container, array) = bytes(&*format, &format!("failing {fault:?}"), &SHAPE, None, OpenMode::Update);
        let all = Selection::all(&SHAPE).unwrap();
        let attempt = |work: &dyn Fn() -> hyperslab_core::Result<()>| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok_and(|result| result.is_ok())
        };
        faulty.fail_at(1, fault);
        let mut data = vec![0; 1024];
        let data = std::sync::Mutex::new(&mut data);
        let reading = || array.read(&all, MemoryViewMut::packed(&mut data.lock().unwrap()), TransferMode::Independent);
        assert!(!attempt(&|| reading()), "{fault:?}");
        let before = faulty.calls();
        let expected = read(&array, &all);
        assert_eq!(expected, super::values(0..1024), "{fault:?}");
        assert!(faulty.calls() > before, "nothing was kept of the read that failed");
        // A staged write that fails: the next flush says so, and nothing is read that may be wrong.
        faulty.fail_at(1, fault);
        let row = dense(&[3, 0], &[2, 64]);
        array.write(&row, MemoryView::packed(&[7; 128]), TransferMode::Independent).unwrap();
        assert!(!attempt(&|| container.flush(Durability::Visible)), "{fault:?}");
        assert!(!attempt(&|| reading()), "{fault:?}");
        container.close().unwrap();
    }
}
