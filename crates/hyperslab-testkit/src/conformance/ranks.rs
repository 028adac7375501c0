//! Several ranks in one container: nobody's elements are lost.

use super::{Check, Verdict, ensure, unless_refused};
use crate::test_data::element;
use crate::{Ranks, Subject};
use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Attribute, Caps, Communicator, Container, Datatype, Durability, Error, ErrorKind, Filter,
    MemoryView, MemoryViewMut, OpenMode, Result, Selection, TransferMode, agree, dims::element_count,
};
use libtest_mimic::{Completion, Failed};
use std::sync::Arc;

pub(super) const RANKS: [usize; 4] = [1, 2, 3, 8];

pub(super) fn checks(caps: &Caps, ranks: &Ranks) -> Vec<Check> {
    let mut out = Vec::new();
    let concurrent = "only one rank may write at a time";
    for size in ranks.sizes(&RANKS) {
        let check = |name: &str, run: fn(&Subject, usize) -> Verdict| {
            Check::that_may_be_refused(format!("{size} ranks/{name}"), move |subject| run(subject, size))
        };
        out.push(check("disjoint blocks", blocks).needs(caps.execution.concurrent_writers, concurrent));
        out.push(
            check("disjoint blocks, collectively", blocks_together)
                .needs(caps.execution.concurrent_writers, concurrent),
        );
        out.push(check("interleaved strides", strides).needs(caps.execution.concurrent_writers, concurrent));
        out.push(check("neighbours in one chunk", neighbours).needs(caps.execution.concurrent_writers, concurrent));
        out.push(
            check("neighbours in one compressed chunk", compressed_neighbours)
                .needs(caps.execution.concurrent_writers, concurrent)
                .needs(caps.data.chunks && caps.has(&Filter::Deflate(1)), "no deflate"),
        );
        out.push(check("some ranks select nothing", some_empty));
        out.push(
            check("everybody reads what everybody wrote", read_back)
                .needs(caps.execution.concurrent_writers, concurrent),
        );
        out.push(check("groups, attributes and arrays are made once", metadata));
        out.push(check("resized together", resized).needs(caps.data.resize, "arrays cannot change shape"));
        out.push(check("independent arrays", own_arrays).needs(caps.execution.concurrent_writers, concurrent));
    }
    out
}

/// The element that belongs at a row-major number: the same whoever writes it.
pub(super) fn values(dtype: &Datatype, numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.flat_map(|number| element(dtype, number.wrapping_mul(0x0100_0003))).collect()
}

pub(super) fn numbers(selection: &Selection, shape: &[u64]) -> Vec<u64> {
    use crate::memory::coordinates::{coordinates, linear};
    coordinates(selection).iter().map(|coordinate| linear(coordinate, shape)).collect()
}

pub(super) fn mismatch(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Mismatch, "check", message)
}

pub(super) fn write(array: &dyn Array, selection: &Selection, shape: &[u64], transfer: TransferMode) -> Result<()> {
    let data = values(&Datatype::I64, numbers(selection, shape).into_iter());
    array.write(selection, MemoryView::packed(&data), transfer)
}

fn check_whole(array: &dyn Array, shape: &[u64], transfer: TransferMode) -> Result<()> {
    let mut found = vec![0xA5; element_count(shape)? as usize * 8];
    array.read(&Selection::all(shape)?, MemoryViewMut::packed(&mut found), transfer)?;
    let expected = values(&Datatype::I64, 0..element_count(shape)?);
    match found.chunks(8).zip(expected.chunks(8)).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => Err(mismatch(format!(
            "element {at} of {shape:?} is {:?}, expected {:?}",
            &found[at * 8..at * 8 + 8],
            &expected[at * 8..at * 8 + 8]
        ))),
    }
}

/// A container takes writes of several threads; it may refuse those of several processes, as unsupported.
pub(super) fn unless_processes(subject: &Subject, result: Result<()>) -> Result<Result<(), Completion>, Failed> {
    unless_refused(result, subject.ranks.are_threads())
}

/// Every rank opens the container; one rank checks the whole array afterwards.
pub(super) fn run(
    subject: &Subject,
    size: usize,
    shape: &[u64],
    spec: &ArraySpec,
    body: impl Fn(&Arc<dyn Communicator>, &Arc<dyn Container>, &Arc<dyn Array>) -> Result<()> + Sync,
) -> Verdict {
    let path = subject.path("a");
    let ran = subject.ranks.run(size, |comm| {
        let container = subject.format.open(&path, OpenMode::Create, &comm)?;
        let array = container.create("array", spec)?;
        // What one rank is refused must not keep the others waiting for it to close.
        let done = agree(&*comm, body(&comm, &container, &array));
        array.close()?;
        container.close()?;
        done
    });
    if let Err(refusal) = unless_processes(subject, ran)? {
        return Ok(refusal);
    }
    subject.ranks.on_one(|| {
        let container = subject.format.open(&path, OpenMode::Read, &Solo::shared())?;
        check_whole(&*container.array("array")?, shape, TransferMode::Independent)?;
        Ok(container.close()?)
    })?;
    Ok(Completion::Completed)
}

fn row_blocks(subject: &Subject, size: usize, transfer: TransferMode) -> Verdict {
    let n = size as u64;
    let shape = [n * 5, 6];
    // Chunk borders that are not rank borders.
    let chunk = subject.caps.data.chunks.then(|| [3, 4].as_slice().into());
    let spec = ArraySpec { chunk, ..ArraySpec::new(Datatype::I64, &shape) };
    run(subject, size, &shape, &spec, |comm, _, array| {
        let mine = Selection::dense(&[comm.rank() as u64 * 5, 0], &[5, 6])?;
        write(&**array, &mine, &shape, transfer)
    })
}

fn blocks(subject: &Subject, size: usize) -> Verdict {
    row_blocks(subject, size, TransferMode::Independent)
}

fn blocks_together(subject: &Subject, size: usize) -> Verdict {
    row_blocks(subject, size, TransferMode::Collective)
}

fn strides(subject: &Subject, size: usize) -> Verdict {
    let n = size as u64;
    let shape = [7, n * 4];
    let spec = ArraySpec::new(Datatype::I64, &shape);
    run(subject, size, &shape, &spec, |comm, _, array| {
        let mine = Selection::strided(&[0, comm.rank() as u64], &[1, n], &[7, 4], &[1, 1])?;
        write(&**array, &mine, &shape, TransferMode::Independent)
    })
}

fn in_one_chunk(subject: &Subject, size: usize, filters: Vec<Filter>) -> Verdict {
    let n = size as u64;
    let shape = [n * 40];
    let chunk = subject.caps.data.chunks.then(|| shape.as_slice().into());
    let spec = ArraySpec { chunk, filters, ..ArraySpec::new(Datatype::I64, &shape) };
    run(subject, size, &shape, &spec, |comm, _, array| {
        comm.barrier()?;
        // One element at a time, so that every write meets the others' in the same chunk.
        for turn in 0..40 {
            let mine = Selection::dense(&[turn * n + comm.rank() as u64], &[1])?;
            write(&**array, &mine, &shape, TransferMode::Independent)?;
        }
        Ok(())
    })
}

fn neighbours(subject: &Subject, size: usize) -> Verdict {
    in_one_chunk(subject, size, Vec::new())
}

fn compressed_neighbours(subject: &Subject, size: usize) -> Verdict {
    in_one_chunk(subject, size, vec![Filter::Deflate(1)])
}

fn some_empty(subject: &Subject, size: usize) -> Verdict {
    let shape = [9, 4];
    let spec = ArraySpec::new(Datatype::I64, &shape);
    run(subject, size, &shape, &spec, |comm, container, array| {
        let last = comm.rank() + 1 == comm.size();
        let mine = if last { Selection::all(&shape)? } else { Selection::empty(2) };
        agree(&**comm, write(&**array, &mine, &shape, TransferMode::Collective))?;
        container.flush(Durability::Visible)?;
        comm.barrier()?;
        let mut buffer = vec![0; mine.len() as usize * 8];
        array.read(&mine, MemoryViewMut::packed(&mut buffer), TransferMode::Collective)?;
        if buffer != values(&Datatype::I64, numbers(&mine, &shape).into_iter()) {
            return Err(mismatch("a collective read differs"));
        }
        Ok(())
    })
}

fn read_back(subject: &Subject, size: usize) -> Verdict {
    let n = size as u64;
    let shape = [n * 3, 5];
    let spec = ArraySpec::new(Datatype::I64, &shape);
    run(subject, size, &shape, &spec, |comm, container, array| {
        let mine = Selection::dense(&[comm.rank() as u64 * 3, 0], &[3, 5])?;
        agree(&**comm, write(&**array, &mine, &shape, TransferMode::Independent))?;
        container.flush(Durability::Visible)?;
        comm.barrier()?;
        check_whole(&**array, &shape, TransferMode::Independent)?;
        check_whole(&**array, &shape, TransferMode::Collective)
    })
}

fn metadata(subject: &Subject, size: usize) -> Verdict {
    let path = subject.path("a");
    let caps = subject.caps;
    subject.ranks.run(size, |comm| {
        let container = subject.format.open(&path, OpenMode::Create, &comm)?;
        for name in ["x", "deep/y", "z"] {
            container.create(name, &ArraySpec::new(Datatype::F64, &[4]))?;
        }
        if caps.data.groups {
            container.create_group("deep/group")?;
        }
        if caps.data.attributes {
            container.set_attribute("deep/y", "units", &Attribute::text("m"))?;
            container.set_attribute("deep/y", "units", &Attribute::text("km"))?;
        }
        comm.barrier()?;
        if container.arrays()? != ["deep/y", "x", "z"] {
            return Err(mismatch(format!("the arrays are {:?}", container.arrays()?)));
        }
        if caps.data.attributes && container.attribute("deep/y", "units")? != Attribute::text("km") {
            return Err(mismatch("the attribute differs"));
        }
        let array = container.array("x")?;
        array.close()?;
        container.close()?;
        let container = subject.format.open(&path, OpenMode::Read, &comm)?;
        if container.arrays()?.len() != 3 {
            return Err(mismatch("arrays were lost"));
        }
        container.close()
    })?;
    Ok(Completion::Completed)
}

fn resized(subject: &Subject, size: usize) -> Verdict {
    let n = size as u64;
    let shape = [n * 4];
    let chunk = subject.caps.data.chunks.then(|| [3].as_slice().into());
    let spec = ArraySpec { chunk, max_shape: Some(vec![None]), ..ArraySpec::new(Datatype::I64, &[0]) };
    run(subject, size, &shape, &spec, |comm, container, array| {
        for step in 0..4 {
            array.resize(&[(step + 1) * n])?;
            let mine = Selection::dense(&[step * n + comm.rank() as u64], &[1])?;
            agree(&**comm, write(&**array, &mine, &shape, TransferMode::Collective))?;
        }
        container.flush(Durability::Durable)
    })
}

fn own_arrays(subject: &Subject, size: usize) -> Verdict {
    let path = subject.path("a");
    let shape = [6, 3];
    let name = |rank: usize| format!("rank {rank}");
    let ran = subject.ranks.run(size, |comm| {
        let container = subject.format.open(&path, OpenMode::Create, &comm)?;
        let arrays = (0..size)
            .map(|rank| container.create(&name(rank), &ArraySpec::new(Datatype::I64, &shape)))
            .collect::<Result<Vec<_>>>()?;
        let write_rows = || {
            (0..6).try_for_each(|row| {
                let mine = Selection::dense(&[row, 0], &[1, 3])?;
                write(&*arrays[comm.rank()], &mine, &shape, TransferMode::Independent)
            })
        };
        let done = agree(&*comm, write_rows());
        container.close()?;
        done
    });
    if let Err(refusal) = unless_processes(subject, ran)? {
        return Ok(refusal);
    }
    subject.ranks.on_one(|| {
        let container = subject.format.open(&path, OpenMode::Read, &Solo::shared())?;
        ensure!(container.arrays()?.len() == size, "arrays were lost");
        for rank in 0..size {
            check_whole(&*container.array(&name(rank))?, &shape, TransferMode::Independent)?;
        }
        Ok(container.close()?)
    })?;
    Ok(Completion::Completed)
}
