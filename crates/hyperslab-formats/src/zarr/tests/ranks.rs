//! Several ranks on one store.

use super::*;
use hyperslab_comm::Threads;
use hyperslab_core::{Attribute, Communicator, Datatype, Durability, ErrorKind, MemoryLayout, TransferMode};
use hyperslab_testkit::{AsProcesses, OtherProcess};

const RANKS: usize = 4;

#[test]
fn ranks_write_parts_of_one_chunk_and_lose_nothing() {
    for stack in ["zarr", "zarr(version=2,codec=gzip)", "zarr(chunk=8,shard=64,codec=zstd)", "zarr(chunk=8,shard=64)"] {
        for round in 0..5 {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("s.zarr");
            let mut spec = spec("<u4", &[64], &[64]);
            if stack.contains("shard") {
                spec.chunk = None;
            }
            Threads::run(RANKS, |comm| {
                let store = format(stack).open(&path, OpenMode::Create, &comm)?;
                let array = store.create("a", &spec)?;
                for i in 0..16u64 {
                    // Elements of all ranks are neighbours.
                    let at = i * RANKS as u64 + comm.rank() as u64;
                    write(&array, &Selection::dense(&[at], &[1])?, &(at as u32 + 1 + round).to_le_bytes())?;
                }
                store.flush(Durability::Durable)?;
                let all = read_all(&array);
                let expected: Vec<u8> = (0..64u32).flat_map(|at| (at + 1 + round).to_le_bytes()).collect();
                assert_eq!(all, expected, "{stack}");
                store.close()
            })
            .unwrap();
        }
    }
}

#[test]
fn whole_and_partial_writes_of_a_chunk_do_not_undo_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    Threads::run(2, |comm| {
        let store = format("zarr").open(&path, OpenMode::Create, &comm)?;
        let array = store.create("a", &spec("|u1", &[2, 64], &[2, 64]))?;
        for round in 1..=200u8 {
            comm.barrier()?;
            // One rank replaces the chunk, the other changes one element of it. Whoever comes last, the chunk is
            // never older than the replacement.
            if comm.rank() == 0 {
                write(&array, &Selection::all(&[2, 64])?, &[round; 128])?;
            } else {
                write(&array, &Selection::dense(&[0, 5], &[1, 1])?, &[255])?;
            }
            comm.barrier()?;
            let mut all = read_all(&array);
            assert!(all[5] == round || all[5] == 255);
            all[5] = round;
            assert_eq!(all, [round; 128]);
        }
        store.close()
    })
    .unwrap();
}

#[test]
fn every_rank_knows_the_new_shape() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    Threads::run(RANKS, |comm| {
        let store = format("zarr").open(&path, OpenMode::Create, &comm)?;
        let spec = ArraySpec { max_shape: Some(vec![None]), ..spec("<u4", &[0], &[3]) };
        let array = store.create("a", &spec)?;
        for step in 1..=5u64 {
            array.resize(&[step * RANKS as u64])?;
            assert_eq!(array.spec()?.shape[0], step * RANKS as u64);
            let at = (step - 1) * RANKS as u64 + comm.rank() as u64;
            write(&array, &Selection::dense(&[at], &[1])?, &(at as u32 + 1).to_le_bytes())?;
            store.set_attribute("a", "step", &Attribute::integer(step as i64))?;
            assert_eq!(store.attribute("a", "step")?, Attribute::integer(step as i64));
        }
        store.flush(Durability::Visible)?;
        let expected: Vec<u8> = (1..=20u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(read_all(&array), expected);
        array.close()?;
        assert!(array.spec().is_err());
        store.close()
    })
    .unwrap();
}

#[test]
fn a_failure_on_one_rank_is_an_error_on_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    std::fs::write(&path, "in the way").unwrap();
    let opened = Threads::run_each(RANKS, |comm| format("zarr").open(&path, OpenMode::Create, &comm).map(drop));
    assert!(opened.iter().all(Result::is_err));
    assert_eq!(opened[0].as_ref().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(opened[1].as_ref().unwrap_err().kind(), ErrorKind::Peer);
    let path = dir.path().join("t.zarr");
    Threads::run(RANKS, |comm| {
        let store = format("zarr").open(&path, OpenMode::Create, &comm)?;
        store.create("a", &spec("<u4", &[4], &[2]))?;
        assert!(store.create("a", &spec("<u4", &[4], &[2])).is_err());
        // One rank asks for nonsense.
        let chunk = if comm.rank() == 1 { [2, 2].to_vec() } else { vec![2] };
        assert!(store.create("b", &spec("<u4", &[4], &chunk)).is_err());
        assert_eq!(store.arrays()?, ["a"]);
        assert!(store.set_attribute("none", "x", &Attribute::integer(1)).is_err());
        assert!(store.array("a")?.resize(&[9]).is_err());
        store.close()
    })
    .unwrap();
}

#[test]
fn separate_processes_write_whole_chunks_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let comm: Arc<dyn Communicator> = Arc::new(OtherProcess);
    let store = format("zarr").open(&dir.path().join("s.zarr"), OpenMode::Create, &comm).unwrap();
    let array = store.create("a", &spec("<u2", &[10], &[4])).unwrap();
    let part = write(&array, &Selection::dense(&[3], &[2]).unwrap(), &[1; 4]).unwrap_err();
    assert_eq!(part.kind(), ErrorKind::Unsupported);
    assert!(part.what_to_try().is_some());
    // The last chunk is whole where the array ends.
    write(&array, &Selection::dense(&[4], &[6]).unwrap(), &[1; 12]).unwrap();
    assert_eq!(read_all(&array), [[0; 8].as_slice(), &[1; 12]].concat());
}

/// Runs `body` on ranks that say they are processes, with an array of 24 rows of 6 in files of 4x6.
fn on_processes(stack: &str, body: impl Fn(&dyn Communicator, &Arc<dyn Array>) -> Result<()> + Sync) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    Threads::run(3, |comm| {
        let comm: Arc<dyn Communicator> = Arc::new(AsProcesses(comm));
        let store = format(stack).open(&path, OpenMode::Create, &comm)?;
        let spec =
            ArraySpec { chunk: (!stack.contains("shard")).then(|| [4, 6][..].into()), ..spec("|u1", &[24, 6], &[]) };
        let array = store.create("a", &spec)?;
        body(&*comm, &array)?;
        store.close()
    })
    .unwrap();
}

fn write_collective(array: &Arc<dyn Array>, selection: &Selection, value: u8) -> Result<()> {
    array.write(selection, MemoryView::packed(&vec![value; selection.len() as usize]), TransferMode::Collective)
}

#[test]
fn processes_write_parts_of_files_that_nobody_else_writes() {
    for stack in ["zarr", "zarr(version=2)", "zarr(chunk=2x3,shard=4x6)"] {
        on_processes(stack, |comm, array| {
            let rank = comm.rank() as u64;
            // Rows 8r+1..8r+7 are parts of two files each, and of nobody else's.
            for (from, rows, value) in [(1, 3, 10), (4, 3, 20), (0, 8, 0), (2, 5, 30)] {
                write_collective(
                    array,
                    &Selection::dense(&[8 * rank + from, 1], &[rows, 4])?,
                    value + comm.rank() as u8,
                )?;
            }
            // A rank alone may do so as well: the others take part with nothing.
            let mine = if rank == 1 { Selection::dense(&[23, 5], &[1, 1])? } else { Selection::empty(2) };
            write_collective(array, &mine, 99)?;
            comm.barrier()?;
            let all = read_all(array);
            for (at, value) in all.iter().enumerate() {
                let (row, column) = (at / 6, at % 6);
                let owner = (row / 8) as u8;
                let expected = match (row, column) {
                    (23, 5) => 99,
                    (_, 0 | 5) => 0,
                    _ if (2..7).contains(&(row % 8)) => 30 + owner,
                    _ => owner,
                };
                assert_eq!(*value, expected, "{stack}: row {row}, column {column}");
            }
            Ok(())
        });
    }
}

#[test]
fn processes_that_would_lose_elements_are_all_told_so() {
    on_processes("zarr", |comm, array| {
        let rank = comm.rank() as u64;
        let before = read_all(array);
        comm.barrier()?;
        // Ranks 1 and 2 share file 2 (rows 8..12); rank 2 covers it whole in the second turn.
        for second in [Selection::dense(&[10, 0], &[2, 6])?, Selection::dense(&[8, 0], &[4, 6])?] {
            let mine = [Selection::dense(&[0, 0], &[4, 6])?, Selection::dense(&[8, 0], &[2, 6])?, second];
            let error = write_collective(array, &mine[comm.rank()], 7).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
            let text = error.to_string();
            assert!(
                text.contains("rank 1 writes part of chunk [2, 0]") && text.contains("rank 2 writes there"),
                "{text}"
            );
            assert!(error.what_to_try().is_some());
            comm.barrier()?;
            assert_eq!(read_all(array), before, "a refused write changed something");
            comm.barrier()?;
        }
        // Nonsense of one rank is everyone's error too, and all go on.
        let at = if rank == 2 { 24 } else { 8 * rank };
        let kind = write_collective(array, &Selection::dense(&[at, 0], &[1, 1])?, 1).unwrap_err().kind();
        assert_eq!(kind, if rank == 2 { ErrorKind::InvalidInput } else { ErrorKind::Peer });
        // By itself a rank may not write parts, and is told what to do instead.
        let alone = write(array, &Selection::dense(&[8 * rank, 0], &[1, 1])?, &[1]).unwrap_err();
        assert!(alone.what_to_try().is_some_and(|hint| hint.contains("collectively")), "{alone}");
        write_collective(array, &Selection::dense(&[8 * rank, 0], &[1, 1])?, 1)
    });
}

#[test]
fn some_fields_of_a_whole_file_are_a_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    Threads::run(2, |comm| {
        let comm: Arc<dyn Communicator> = Arc::new(AsProcesses(comm));
        let store = format("zarr").open(&path, OpenMode::Create, &comm)?;
        let pair = Datatype::packed_compound([("x", "<u2".parse()?), ("y", "<u2".parse()?)])?;
        let array = store.create("a", &ArraySpec { chunk: Some([4][..].into()), ..ArraySpec::new(pair, &[8]) })?;
        let field = |name: &str| MemoryLayout::fields(2, [(name, 0)]);
        let data = [1; 8];
        let (x, y) = (field("x"), field("y"));
        let write = |at: u64, layout: &MemoryLayout| {
            let mine = Selection::dense(&[at], &[4]).unwrap();
            array.write(&mine, MemoryView { data: &data, layout }, TransferMode::Collective)
        };
        assert!(write(0, if comm.rank() == 0 { &x } else { &y }).is_err(), "both change the same file");
        write(4 * comm.rank() as u64, &x)?;
        write(4 * (1 - comm.rank() as u64), &y)?;
        comm.barrier()?;
        assert_eq!(read_all(&array), [1; 32]);
        store.close()
    })
    .unwrap();
}
