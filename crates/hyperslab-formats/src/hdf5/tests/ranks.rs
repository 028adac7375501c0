//! Several ranks in one process share a file.

use super::*;
use hyperslab_comm::Threads;
use hyperslab_core::{ArraySpec, Attribute, Communicator, Datatype, Durability, ErrorKind, Result};
use hyperslab_testkit::OtherProcess;

#[test]
fn ranks_write_one_array_together() {
    for stack in ["hdf5", "hdf5(chunk=4x8)", "hdf5(chunk=3x3,deflate=1)"] {
        let bench = Bench::new(stack);
        let path = bench.path();
        let ranks = 4u64;
        Threads::run(ranks as usize, |comm| {
            let rank = comm.rank() as u64;
            let file = bench.format.open(&path, OpenMode::Create, &comm)?;
            file.create_group("g")?;
            let mut spec = ArraySpec::new(Datatype::U8, &[ranks, 16]);
            if stack != "hdf5" {
                spec.max_shape = Some(vec![None, Some(16)]);
            }
            let array = file.create("g/a", &spec)?;
            let row = Selection::dense(&[rank, 0], &[1, 16])?;
            array.write(&row, MemoryView::packed(&[rank as u8 + 1; 16]), TransferMode::Collective)?;
            file.set_attribute("g/a", "ranks", &Attribute::integer(ranks as i64))?;
            assert_eq!(file.attribute("g/a", "ranks")?, Attribute::integer(4));
            file.flush(Durability::Durable)?;
            let mut whole = vec![0; 16 * ranks as usize];
            array.read(&Selection::all(&[ranks, 16])?, MemoryViewMut::packed(&mut whole), TransferMode::Independent)?;
            assert!(whole.chunks(16).enumerate().all(|(r, row)| row == [r as u8 + 1; 16]));
            if spec.max_shape.is_some() {
                array.resize(&[2 * ranks, 16])?;
                assert_eq!(array.spec()?.shape.as_slice(), [2 * ranks, 16]);
                let row = Selection::dense(&[ranks + rank, 0], &[1, 16])?;
                array.write(&row, MemoryView::packed(&[rank as u8 + 9; 16]), TransferMode::Independent)?;
            }
            array.close()?;
            file.close()?;
            // Closed on every rank: the file can be replaced.
            let file = bench.format.open(&path, OpenMode::Truncate, &comm)?;
            assert!(file.arrays()?.is_empty());
            file.close()
        })
        .unwrap();
    }
}

#[test]
fn a_failure_on_one_rank_reaches_all() {
    let bench = Bench::new("hdf5");
    let path = bench.path();
    std::fs::write(&path, b"something else").unwrap();
    let results = Threads::run_each(3, |comm| -> Result<()> {
        bench.format.open(&path, OpenMode::Create, &comm)?;
        Ok(())
    });
    let kinds: Vec<_> = results.iter().map(|r| r.as_ref().unwrap_err().kind()).collect();
    assert_eq!(kinds, [ErrorKind::AlreadyExists, ErrorKind::Peer, ErrorKind::Peer]);
    std::fs::remove_file(&path).unwrap();
    Threads::run(3, |comm| {
        let file = bench.format.open(&path, OpenMode::Create, &comm)?;
        let bad = ArraySpec { chunk: Some([0].as_slice().into()), ..ArraySpec::new(Datatype::U8, &[4]) };
        assert!(file.create("a", &bad).is_err());
        let good = ArraySpec::new(Datatype::U8, &[4]);
        file.create("a", &good)?;
        assert!(file.create("a", &good).is_err());
        assert!(file.array("b").is_err());
        assert!(file.set_attribute("b", "x", &Attribute::integer(1)).is_err());
        assert!(file.array("a")?.resize(&[5]).is_err());
        file.close()
    })
    .unwrap();
}

#[test]
fn ranks_in_several_processes_are_refused() {
    let bench = Bench::new("hdf5");
    let comm: Arc<dyn Communicator> = Arc::new(OtherProcess);
    let error = bench.format.open(&bench.path(), OpenMode::Create, &comm).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(!bench.path().exists());
}
