//! Several ranks on one store.

use super::*;
use hyperslab_comm::Threads;
use hyperslab_core::{Attribute, Communicator, Durability, ErrorKind};
use hyperslab_testkit::OtherProcess;

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
                let store = format(stack).open(&path, Open::Create, &comm)?;
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
        let store = format("zarr").open(&path, Open::Create, &comm)?;
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
        let store = format("zarr").open(&path, Open::Create, &comm)?;
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
    let opened = Threads::run_each(RANKS, |comm| format("zarr").open(&path, Open::Create, &comm).map(drop));
    assert!(opened.iter().all(Result::is_err));
    assert_eq!(opened[0].as_ref().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(opened[1].as_ref().unwrap_err().kind(), ErrorKind::Peer);
    let path = dir.path().join("t.zarr");
    Threads::run(RANKS, |comm| {
        let store = format("zarr").open(&path, Open::Create, &comm)?;
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
    let store = format("zarr").open(&dir.path().join("s.zarr"), Open::Create, &comm).unwrap();
    let array = store.create("a", &spec("<u2", &[10], &[4])).unwrap();
    let part = write(&array, &Selection::dense(&[3], &[2]).unwrap(), &[1; 4]).unwrap_err();
    assert_eq!(part.kind(), ErrorKind::Unsupported);
    assert!(part.what_to_try().is_some());
    // The last chunk is whole where the array ends.
    write(&array, &Selection::dense(&[4], &[6]).unwrap(), &[1; 12]).unwrap();
    assert_eq!(read_all(&array), [[0; 8].as_slice(), &[1; 12]].concat());
}
