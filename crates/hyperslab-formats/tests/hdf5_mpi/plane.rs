//! The data plane (`plane=on`) in files that processes share.

use super::stage::{Check, Stage, format};
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Datatype, Durability, Filter, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection,
    TransferMode,
};
use std::sync::Arc;

pub const ALL: &[Check] = &[
    ("plane: pieces of all ranks", pieces),
    ("plane: chunks that move", moving_chunks),
    ("plane: own data are seen at once", own_data),
    ("plane: every way in turn", every_way),
    ("plane: growth between", growth_between),
    ("plane: fields", fields),
    ("plane: handles that some ranks keep", kept_handles),
    ("plane: chunks that nobody wrote", missing_chunks),
    ("plane: one process with MPI", one_process),
];

const PLAIN: [&str; 3] =
    ["hdf5(plane=on)", "hdf5(plane=on,chunk=3x4)", "hdf5(plane=on,chunk=3x4,libver=latest,collective_metadata=yes)"];
const FILTERED: [&str; 2] =
    ["hdf5(plane=on,chunk=3x4,deflate=1)", "hdf5(plane=on,chunk=3x4,deflate=1,shuffle=yes,libver=latest,threads=2)"];

/// What every element is in a round. Some rounds compress well and others hardly, so that chunks change their sizes.
fn value(number: u64, round: u64) -> u64 {
    match round % 2 {
        0 => round,
        _ => (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ round),
    }
}

fn values(selection: &Selection, shape: &[u64], round: u64) -> Vec<u8> {
    let numbers = selection.runs(shape, 1).unwrap().flat_map(|run| run.offset..run.end());
    numbers.flat_map(|number| value(number, round).to_ne_bytes()).collect()
}

fn write(array: &dyn Array, selection: &Selection, shape: &[u64], round: u64, transfer: TransferMode) {
    array.write(selection, MemoryView::packed(&values(selection, shape, round)), transfer).unwrap();
}

fn check(array: &dyn Array, selection: &Selection, shape: &[u64], round: u64, transfer: TransferMode) {
    let mut found = vec![0xA5; selection.len() as usize * 8];
    array.read(selection, MemoryViewMut::packed(&mut found), transfer).unwrap();
    assert!(found == values(selection, shape, round), "elements differ in round {round}");
}

fn all(shape: &[u64]) -> Selection {
    Selection::all(shape).unwrap()
}

/// As if this were the rank after it.
fn of_next(stage: &Stage, shape: &[u64]) -> Selection {
    let next = (stage.rank() + 1) % stage.size();
    let count = (shape[1] + stage.size() - 1 - next) / stage.size();
    Selection::strided(&[0, next], &[1, stage.size()], &[shape[0], count], &[1, 1]).unwrap()
}

/// Written independently, some ranks with nothing in some rounds, and read by others after a flush.
fn pieces(stage: &Stage) {
    let shape = [13, 10];
    for stack in PLAIN {
        let file = stage.open(stack, "pieces.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        for round in 0..4 {
            // Whoever is lazy is replaced by the first rank.
            let lazy = round % 2 == 1 && stage.size() > 1;
            let mine = match lazy {
                true if stage.first() => all(&shape),
                true => Selection::empty(2),
                false => stage.columns(&shape),
            };
            write(&*array, &mine, &shape, round, TransferMode::Independent);
            file.flush(Durability::Visible).unwrap();
            check(&*array, &of_next(stage, &shape), &shape, round, TransferMode::Independent);
            check(&*array, &all(&shape), &shape, round, TransferMode::Independent);
            check(&*array, &all(&shape), &shape, round, TransferMode::Collective);
            stage.comm.barrier().unwrap(); // before anybody writes again
        }
        stage.put(&*array, &stage.rows(&shape), &shape, TransferMode::Independent);
        assert_eq!(file.diagnostics(), Vec::<String>::new(), "{stack}: everything goes around libhdf5");
        file.close().unwrap();
        stage.verify_alone("pieces.h5", "a", &shape);
    }
}

/// Read by the plane after each of several collective writes, by which chunks grow, shrink and move.
fn moving_chunks(stage: &Stage) {
    let shape = [30, 20];
    for stack in FILTERED {
        let file = stage.open(stack, "moving.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        check(&*array, &all(&shape), &shape, 0, TransferMode::Independent);
        for round in 1..6 {
            let mine = if round % 3 == 0 { stage.rows(&shape) } else { stage.columns(&shape) };
            write(&*array, &mine, &shape, round, TransferMode::Collective);
            check(&*array, &mine, &shape, round, TransferMode::Independent);
            file.flush(Durability::Visible).unwrap();
            // Parts of chunks, which are kept in memory, and then whole ones.
            check(&*array, &of_next(stage, &shape), &shape, round, TransferMode::Independent);
            check(&*array, &all(&shape), &shape, round, TransferMode::Independent);
            stage.comm.barrier().unwrap();
        }
        let error =
            array.write(&all(&shape), MemoryView::packed(&values(&all(&shape), &shape, 0)), TransferMode::Independent);
        assert_eq!(error.is_err(), stage.size() > 1, "filtered chunks are written together");
        stage.put(&*array, &stage.rows(&shape), &shape, TransferMode::Collective);
        assert_eq!(file.diagnostics(), Vec::<String>::new(), "{stack}");
        file.close().unwrap();
        stage.verify_alone("moving.h5", "a", &shape);
    }
}

/// What a rank has written collectively it reads back alone without waiting for anybody, though others may have written
/// it on its behalf.
fn own_data(stage: &Stage) {
    let shape = [16, 1024];
    for stack in ["hdf5(plane=on)", "hdf5(plane=on,chunk=5x512)", "hdf5(plane=on,chunk=5x512,deflate=1)"] {
        let file = stage.open(stack, "own.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        let mine = stage.columns(&shape);
        for round in 0..6 {
            write(&*array, &mine, &shape, round, TransferMode::Collective);
            check(&*array, &mine, &shape, round, TransferMode::Independent);
        }
        file.close().unwrap();
    }
}

/// Collective and independent transfers of one array, in all orders.
fn every_way(stage: &Stage) {
    use TransferMode::{Collective, Independent};
    let shape = [24, 18];
    for stack in PLAIN {
        let file = stage.open(stack, "every.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        for (round, (writes, reads)) in
            [(Independent, Collective), (Collective, Independent), (Collective, Collective), (Independent, Independent)]
                .into_iter()
                .cycle()
                .take(8)
                .enumerate()
        {
            let round = round as u64;
            write(&*array, &stage.columns(&shape), &shape, round, writes);
            check(&*array, &stage.columns(&shape), &shape, round, reads);
            stage.comm.barrier().unwrap();
            check(&*array, &all(&shape), &shape, round, reads);
            stage.comm.barrier().unwrap();
            // Half of it collectively, half of it alone.
            let (upper, lower) = ([12, 18], Selection::dense(&[12, 0], &[12, 18]).unwrap());
            let mine = stage.columns(&upper);
            write(&*array, &mine, &shape, round + 10, Collective);
            if stage.rank() + 1 == stage.size() {
                write(&*array, &lower, &shape, round + 10, Independent);
            }
            file.flush(Durability::Visible).unwrap();
            check(&*array, &all(&shape), &shape, round + 10, reads);
            stage.comm.barrier().unwrap();
        }
        file.close().unwrap();
    }
}

/// Arrays that grow and shrink while their chunks are known.
fn growth_between(stage: &Stage) {
    let n = stage.size();
    for (filters, libver) in [
        (vec![], ""),
        (vec![], ",libver=latest"),
        (vec![Filter::Deflate(1)], ""),
        (vec![Filter::Deflate(1)], ",libver=latest"),
    ] {
        let written = if filters.is_empty() { TransferMode::Independent } else { TransferMode::Collective };
        let file = stage.open(&format!("hdf5(plane=on{libver})"), "between.h5", OpenMode::Truncate);
        let spec = ArraySpec {
            chunk: Some([3].as_slice().into()),
            max_shape: Some(vec![None]),
            filters,
            fill_value: Some(5u64.to_ne_bytes().to_vec()),
            ..ArraySpec::new(Datatype::I64, &[0])
        };
        let array = file.create("a", &spec).unwrap();
        for (round, each) in [4, 9, 2, 11].into_iter().enumerate() {
            let (round, shape) = (round as u64, [each * n]);
            array.resize(&shape).unwrap();
            let mut last = [0; 8];
            let end = Selection::dense(&[each * n - 1], &[1]).unwrap();
            array.read(&end, MemoryViewMut::packed(&mut last), TransferMode::Independent).unwrap();
            if round != 2 {
                assert_eq!(u64::from_ne_bytes(last), 5, "never written");
            }
            stage.comm.barrier().unwrap();
            write(&*array, &stage.rows(&shape), &shape, round, written);
            check(&*array, &stage.rows(&shape), &shape, round, TransferMode::Independent);
            file.flush(Durability::Visible).unwrap();
            check(&*array, &all(&shape), &shape, round, TransferMode::Independent);
            stage.comm.barrier().unwrap();
        }
        stage.put(&*array, &stage.rows(&[11 * n]), &[11 * n], written);
        assert_eq!(file.diagnostics(), Vec::<String>::new());
        file.close().unwrap();
        stage.verify_alone("between.h5", "a", &[11 * n]);
    }
}

/// Some fields of elements, which libhdf5 must write, between whole elements, which it does not.
fn fields(stage: &Stage) {
    let pair = Datatype::packed_compound([("x", Datatype::I32), ("y", Datatype::I32)]).unwrap();
    let shape = [6 * stage.size()];
    for stack in ["hdf5(plane=on)", "hdf5(plane=on,chunk=4)"] {
        let file = stage.open(stack, "some.h5", OpenMode::Truncate);
        let array = file.create("a", &ArraySpec::new(pair.clone(), &shape)).unwrap();
        let mine = stage.rows(&shape);
        array.write(&mine, MemoryView::packed(&[7; 48]), TransferMode::Independent).unwrap();
        let layout = MemoryLayout::fields(4, [("y", 0)]);
        array.write(&mine, MemoryView { data: &[1; 24], layout: &layout }, TransferMode::Independent).unwrap();
        file.flush(Durability::Visible).unwrap();
        let mut found = vec![0; 48 * stage.comm.size()];
        array.read(&all(&shape), MemoryViewMut::packed(&mut found), TransferMode::Independent).unwrap();
        assert_eq!(found, [7, 7, 7, 7, 1, 1, 1, 1].repeat(6 * stage.comm.size()));
        if stage.size() > 1 {
            assert!(file.diagnostics().concat().contains("other processes"), "{:?}", file.diagnostics());
        }
        file.close().unwrap();
    }
}

/// An array is opened again by all while only some have it open still: nobody waits for anybody.
fn kept_handles(stage: &Stage) {
    let shape = [8, 6];
    for stack in ["hdf5(plane=on)", FILTERED[0]] {
        let file = stage.open(stack, "kept.h5", OpenMode::Truncate);
        let first = stage.create(&file, "a", &shape);
        write(&*first, &stage.rows(&shape), &shape, 1, TransferMode::Collective);
        check(&*first, &stage.rows(&shape), &shape, 1, TransferMode::Independent);
        let kept: Option<Arc<dyn Array>> = stage.first().then_some(first);
        let again = file.array("a").unwrap();
        for round in 2..4 {
            write(&*again, &stage.rows(&shape), &shape, round, TransferMode::Collective);
            file.flush(Durability::Visible).unwrap();
            check(&*again, &all(&shape), &shape, round, TransferMode::Independent);
            if let Some(kept) = &kept {
                check(&**kept, &all(&shape), &shape, round, TransferMode::Independent);
            }
            stage.comm.barrier().unwrap();
        }
        file.close().unwrap();
    }
}

/// A file made by one process has chunks that were never written, or makes them late. Processes can read it, and write
/// where all chunks are there; anything else would leave them with different ideas of the file.
fn missing_chunks(stage: &Stage) {
    let shape = [12, 8];
    for (libver, plane) in [("", "on"), (",libver=latest", "on"), ("", "off")] {
        for written in [Selection::dense(&[0, 0], &[2, 2]).unwrap(), all(&shape)] {
            if stage.first() {
                let stack = format!("hdf5(chunk=3x4{libver})");
                let file = format(&stack).open(&stage.path("missing.h5"), OpenMode::Truncate, &Solo::shared()).unwrap();
                let spec = ArraySpec { max_shape: Some(vec![None, None]), ..ArraySpec::new(Datatype::I64, &shape) };
                write(&*file.create("a", &spec).unwrap(), &written, &shape, 0, TransferMode::Independent);
                file.close().unwrap();
            }
            stage.comm.barrier().unwrap();
            let complete = written.len() == 96 || stage.size() == 1;
            let file = stage.open(&format!("hdf5(plane={plane}{libver})"), "missing.h5", OpenMode::Update);
            let array = file.array("a").unwrap();
            check(&*array, &all(&shape), &shape, 0, TransferMode::Independent);
            stage.comm.barrier().unwrap();
            for (transfer, round) in [(TransferMode::Collective, 1), (TransferMode::Independent, 2)] {
                let mine = stage.columns(&shape);
                let tried = array.write(&mine, MemoryView::packed(&values(&mine, &shape, round)), transfer);
                file.flush(Durability::Visible).unwrap();
                if let Err(error) = &tried {
                    assert!(error.to_string().contains("never written"), "{error}");
                }
                assert_eq!(tried.is_ok(), complete);
                check(&*array, &all(&shape), &shape, if complete { round } else { 0 }, TransferMode::Independent);
                stage.comm.barrier().unwrap();
            }
            if stage.size() > 1 {
                let error = array.resize(&[13, 8]).unwrap_err();
                assert!(error.to_string().contains("more chunks"), "{error}");
                array.resize(&[7, 8]).unwrap();
            }
            file.close().unwrap();
        }
    }
}

/// A process that is alone with its file, reached by MPI: chunks wait in its memory, and collective reads find them.
fn one_process(stage: &Stage) {
    if stage.size() > 1 {
        return;
    }
    let shape = [12, 8];
    for stack in ["hdf5(plane=on,driver=mpio,chunk=5x5,deflate=1)", "hdf5(plane=on,driver=mpio,chunk=5x5)"] {
        let file = stage.open(stack, "one.h5", OpenMode::Truncate);
        let array = stage.create(&file, "a", &shape);
        for round in 0..4 {
            let part = Selection::dense(&[1, 1], &[9, 6]).unwrap();
            write(&*array, &part, &shape, round, TransferMode::Independent);
            check(&*array, &part, &shape, round, TransferMode::Collective);
            write(&*array, &part, &shape, round + 1, TransferMode::Collective);
            check(&*array, &part, &shape, round + 1, TransferMode::Independent);
        }
        stage.put(&*array, &all(&shape), &shape, TransferMode::Independent);
        file.close().unwrap();
        stage.verify_alone("one.h5", "a", &shape);
    }
}
