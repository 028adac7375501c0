//! Ranks that share nothing but the container: whole chunks of their own, parts of such chunks, and different layouts
//! in one collective call.

use super::ranks::{RANKS, mismatch, numbers, run, unless_processes, values, write};
use super::{Check, Verdict, ensure};
use crate::{Memory, Ranks, Subject, buffer, cases};
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Caps, Communicator, Datatype, Dims, Format, MemoryLayout, MemoryView, MemoryViewMut, OpenMode,
    Result, Selection, Slab, StridedRange, TransferMode, agree,
};
use libtest_mimic::Completion;
use std::sync::Arc;

pub(super) fn checks(caps: &Caps, ranks: &Ranks) -> Vec<Check> {
    let mut out = Vec::new();
    for size in ranks.sizes(&RANKS) {
        let check = |name: &str, run: fn(&Subject, usize) -> Verdict| {
            Check::that_may_be_refused(format!("{size} ranks/{name}"), move |subject| run(subject, size))
                .needs(caps.execution.concurrent_writers, "only one rank may write at a time")
        };
        out.push(check("whole chunks of one's own", whole_chunks));
        out.push(check("parts of chunks of one's own, collectively", parts_of_chunks));
        out.push(check("interleaved strides, collectively", strides));
        out.push(check("more ranks than rows", few_rows));
        out.push(check("every layout, collectively", layouts));
    }
    out
}

fn by_ranks(subject: &Subject, size: usize) -> ([u64; 2], ArraySpec) {
    let shape = [size as u64 * 5, 6];
    let chunk = subject.caps.data.chunks.then(|| [5, 4].as_slice().into());
    (shape, ArraySpec { chunk, ..ArraySpec::new(Datatype::I64, &shape) })
}

fn whole_chunks(subject: &Subject, size: usize) -> Verdict {
    let (shape, spec) = by_ranks(subject, size);
    run(subject, size, &shape, &spec, |comm, _, array| {
        let mine = Selection::dense(&[comm.rank() as u64 * 5, 0], &[5, 6])?;
        write(&**array, &mine, &shape, TransferMode::Independent)
    })
}

fn parts_of_chunks(subject: &Subject, size: usize) -> Verdict {
    let (shape, spec) = by_ranks(subject, size);
    run(subject, size, &shape, &spec, |comm, _, array| {
        let first = comm.rank() as u64 * 5;
        for (rows, count) in [(0, 2), (2, 3)] {
            let mine = Selection::dense(&[first + rows, 0], &[count, 6])?;
            agree(&**comm, write(&**array, &mine, &shape, TransferMode::Collective))?;
        }
        Ok(())
    })
}

fn strides(subject: &Subject, size: usize) -> Verdict {
    let n = size as u64;
    let shape = [7, n * 4];
    let spec = ArraySpec::new(Datatype::I64, &shape);
    run(subject, size, &shape, &spec, |comm, _, array| {
        let mine = Selection::strided(&[0, comm.rank() as u64], &[1, n], &[7, 4], &[1, 1])?;
        agree(&**comm, write(&**array, &mine, &shape, TransferMode::Collective))?;
        let mut found = vec![0; mine.len() as usize * 8];
        array.read(&mine, MemoryViewMut::packed(&mut found), TransferMode::Collective)?;
        let expected = values(&Datatype::I64, numbers(&mine, &shape).into_iter());
        if found == expected { Ok(()) } else { Err(mismatch("a collective read differs")) }
    })
}

/// Half of the ranks have nothing to write.
fn few_rows(subject: &Subject, size: usize) -> Verdict {
    let rows = size as u64 / 2;
    let shape = [rows, 3];
    let chunk = (subject.caps.data.chunks && rows > 0).then(|| [1, 3].as_slice().into());
    let spec = ArraySpec { chunk, ..ArraySpec::new(Datatype::I64, &shape) };
    run(subject, size, &shape, &spec, |comm, _, array| {
        let count = u64::from((comm.rank() as u64) < rows);
        let mine = Selection::dense(&[comm.rank() as u64 * count, 0], &[count, 3])?;
        write(&**array, &mine, &shape, TransferMode::Collective)
    })
}

/// The selection of a plane as one of plane `number` of an array with one dimension more.
fn in_plane(selection: &Selection, number: u64) -> Result<Selection> {
    let one_more = |slab: &Slab| {
        let each = |of: fn(&StridedRange) -> u64, first: u64| -> Dims {
            std::iter::once(first).chain(slab.ranges().iter().map(of)).collect()
        };
        Slab::strided(
            &each(StridedRange::start, number),
            &each(StridedRange::stride, 1),
            &each(StridedRange::count, 1),
            &each(StridedRange::block, 1),
        )
    };
    let slabs = selection.slabs().iter().map(one_more).collect::<Result<Vec<_>>>()?;
    Selection::union(selection.rank() + 1, slabs.into_iter().flatten())
}

fn read_as(array: &dyn Array, selection: &Selection, layout: &MemoryLayout, how: TransferMode) -> Result<Vec<u8>> {
    let bytes = layout.buffer_len(&array.spec()?.dtype, selection.len())?;
    let mut data = vec![0xA5; bytes as usize];
    array.read(selection, MemoryViewMut { data: &mut data, layout }, how)?;
    Ok(data)
}

/// In every call each rank writes another selection from another layout, in a plane of its own.
fn layouts(subject: &Subject, size: usize) -> Verdict {
    let plane = [6, 9];
    let shape = [size as u64, 6, 9];
    let dtype = Datatype::F32;
    let mut cases = Vec::new();
    for (kind, selection) in cases::selections(&plane)? {
        for (name, layout) in cases::layouts(&dtype, &selection)? {
            cases.push((format!("{kind}, {name}"), selection.clone(), layout));
        }
    }
    ensure!(cases.len() > 10, "there are {} cases only", cases.len());
    let chunk = subject.caps.data.chunks.then(|| [1, 6, 9].as_slice().into());
    let spec = ArraySpec { chunk, ..ArraySpec::new(dtype.clone(), &shape) };
    let path = subject.path("a");
    let body = |comm: &Arc<dyn Communicator>, array: &dyn Array| -> Result<()> {
        let rank = comm.rank();
        let twin = subject.twin_path(&format!("plane {rank}"));
        let oracle = Memory
            .open(&twin, OpenMode::Create, &Solo::shared())?
            .create("plane", &ArraySpec::new(dtype.clone(), &plane))?;
        for turn in 0..cases.len() {
            let (what, selection, layout) = &cases[(turn + 7 * rank) % cases.len()];
            let data = buffer(&dtype, layout, selection.len(), (1000 * turn + rank) as u64)?;
            let memory = MemoryView { data: &data, layout };
            let mine = in_plane(selection, rank as u64)?;
            oracle.write(selection, memory, TransferMode::Independent)?;
            agree(&**comm, array.write(&mine, memory, TransferMode::Collective))?;
            let whole = (Selection::all(&plane)?, MemoryLayout::packed());
            for (selection, layout) in [(selection, layout), (&whole.0, &whole.1)] {
                let expected = read_as(&*oracle, selection, layout, TransferMode::Independent)?;
                let mine = in_plane(selection, rank as u64)?;
                let same = |found: Vec<u8>| if found == expected { Ok(()) } else { Err(mismatch(what.as_str())) };
                agree(&**comm, read_as(array, &mine, layout, TransferMode::Collective).and_then(same))?;
            }
        }
        Memory.remove(&twin)
    };
    let ran = subject.ranks.run(size, |comm| {
        let container = subject.format.open(&path, OpenMode::Create, &comm)?;
        let array = container.create("array", &spec)?;
        let done = agree(&*comm, body(&comm, &*array));
        array.close()?;
        container.close()?;
        done
    });
    Ok(unless_processes(subject, ran)?.err().unwrap_or(Completion::Completed))
}
