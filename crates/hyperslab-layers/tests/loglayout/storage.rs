//! What lies in the container, seen with the layer and without it.

use crate::{FORMATS, bytes, content, format, place, ranks, read, write};
use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Attribute, Datatype, Durability, ErrorKind, MemoryView, OpenMode, Selection, TransferMode,
};

/// Two ranks write rows backwards; each region has the requests of its rank in the order of the calls.
#[test]
fn requests_of_a_rank_lie_one_after_the_other() {
    for below in FORMATS {
        let layered = format(&format!("loglayout(room=200)/{below}"));
        let (_folder, path) = place(&*layered);
        ranks(&*layered, &path, OpenMode::Truncate, 2, |comm, container| {
            let array = container.create("g/a", &bytes(100))?;
            container.set_attribute("g/a", "units", &Attribute::text("m"))?;
            for turn in (0..5u8).rev() {
                let first = u64::from(turn) * 20 + comm.rank() as u64 * 10;
                write(&*array, first, &[turn * 2 + comm.rank() as u8 + 1; 10])?;
            }
            array.close()
        });
        let expected: Vec<u8> = (1..=10).flat_map(|n| [n; 10]).collect();
        assert_eq!(content(&*layered, &path, "g/a").unwrap(), expected, "{below}");
        // Without the layer: the array has nothing yet, and the log is there to see.
        let plain = format(below);
        assert_eq!(content(&*plain, &path, "g/a").unwrap(), vec![0; 100], "{below}");
        let container = plain.open(&path, OpenMode::Read, &Solo::shared()).unwrap();
        let arrays = container.arrays().unwrap();
        assert_eq!(
            arrays,
            [".hyperslab-loglayout/index/00000001", ".hyperslab-loglayout/log/0-2/g/a", "g/a"],
            "{below}"
        );
        assert_eq!(container.attribute("g/a", "units").unwrap(), Attribute::text("m"));
        let log = read(&*container.array(&arrays[1]).unwrap()).unwrap();
        let region = |odd: u8| [4, 3, 2, 1, 0].iter().flat_map(|turn| [turn * 2 + odd + 1; 10]).collect::<Vec<u8>>();
        assert_eq!((&log[..50], &log[100..150]), (&region(0)[..], &region(1)[..]), "{below}");
        container.close().unwrap();
    }
}

#[test]
fn nothing_of_it_is_shown_through_the_layer() {
    let layered = format("loglayout/posix");
    let (_folder, path) = place(&*layered);
    let container = layered.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
    container.create("a", &bytes(10)).unwrap();
    for name in [".hyperslab-loglayout", ".hyperslab-loglayout/x"] {
        let refused = |error: hyperslab_core::Error| assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        refused(container.create(name, &bytes(10)).unwrap_err());
        refused(container.create_group(name).unwrap_err());
        let error = container.set_attribute(name, "x", &Attribute::integer(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(container.attribute(name, "x").is_err() && container.attributes(name).is_err());
    }
    let hidden = ".hyperslab-loglayout/log/0-1/a";
    assert_eq!(container.array(hidden).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(container.arrays().unwrap(), ["a"]);
    container.close().unwrap();
}

/// A file that was written without the layer is read and written as if it were not there.
#[test]
fn arrays_without_a_log_are_written_as_they_are() {
    for below in FORMATS {
        let (layered, plain) = (format(&format!("loglayout/{below}")), format(below));
        let (_folder, path) = place(&*plain);
        ranks(&*plain, &path, OpenMode::Truncate, 1, |_, container| {
            write(&*container.create("old", &bytes(10))?, 0, &[1; 10])
        });
        ranks(&*layered, &path, OpenMode::Update, 2, |comm, container| {
            let old = container.array("old")?;
            assert_eq!(read(&*old)?, [1; 10]);
            comm.barrier()?;
            write(&*old, comm.rank() as u64 * 3, &[7; 2])?;
            let new = container.create("new", &bytes(10))?;
            write(&*new, comm.rank() as u64 * 5, &[comm.rank() as u8; 5])
        });
        assert_eq!(content(&*plain, &path, "old").unwrap(), [7, 7, 1, 7, 7, 1, 1, 1, 1, 1], "{below}");
        assert_eq!(content(&*layered, &path, "old").unwrap(), [7, 7, 1, 7, 7, 1, 1, 1, 1, 1], "{below}");
        assert_eq!(content(&*layered, &path, "new").unwrap(), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1], "{below}");
    }
}

/// Flushes that had nothing to say leave nothing behind.
#[test]
fn a_generation_is_stored_only_if_something_was_written() {
    let (layered, plain) = (format("loglayout/posix"), format("posix"));
    let (_folder, path) = place(&*layered);
    ranks(&*layered, &path, OpenMode::Create, 3, |comm, container| {
        let array = container.create("a", &bytes(30))?;
        for turn in 0..5 {
            if turn % 2 == 1 && comm.rank() == 2 {
                write(&*array, 0, &[turn; 30])?;
            }
            container.flush(Durability::Durable)?;
            container.flush(Durability::Visible)?;
        }
        array.close()
    });
    let container = plain.open(&path, OpenMode::Read, &Solo::shared()).unwrap();
    let generations = container.arrays().unwrap().iter().filter(|name| name.contains("/index/")).count();
    assert_eq!(generations, 2);
    assert_eq!(content(&*layered, &path, "a").unwrap(), [3; 30]);
}

/// What a shrinking array cuts off never comes back, and what stays is in the array.
#[test]
fn shrinking_brings_the_log_home() {
    for below in FORMATS {
        let (layered, plain) = (format(&format!("loglayout(room=1000)/{below}")), format(below));
        let (_folder, path) = place(&*plain);
        let chunk = plain.caps().data.chunks.then(|| [8][..].into());
        let spec = ArraySpec { max_shape: Some(vec![None]), chunk, ..bytes(60) };
        ranks(&*layered, &path, OpenMode::Truncate, 3, |comm, container| {
            let array = container.create("a", &spec)?;
            write(&*array, comm.rank() as u64 * 20, &[comm.rank() as u8 + 1; 20])?;
            array.resize(&[30])?;
            array.resize(&[40])?;
            comm.barrier()?;
            assert_eq!(read(&*array)?, [vec![1; 20], vec![2; 10], vec![0; 10]].concat(), "{below}");
            comm.barrier()?;
            if comm.rank() == 0 {
                write(&*array, 25, &[9; 10])?;
            }
            array.close()
        });
        let expected = [vec![1; 20], vec![2; 5], vec![9; 10], vec![0; 5]].concat();
        assert_eq!(content(&*layered, &path, "a").unwrap(), expected, "{below}");
        assert_eq!(content(&*plain, &path, "a").unwrap()[..30], [vec![1; 20], vec![2; 10]].concat(), "{below}");
    }
}

/// Much more is written than there is room for; the remark says so.
#[test]
fn a_full_log_is_told_of() {
    let layered = format("loglayout(room=100)/memory");
    let container = layered.open(std::path::Path::new("full"), OpenMode::Truncate, &Solo::shared()).unwrap();
    let array = container.create("a", &ArraySpec::new(Datatype::I32, &[10])).unwrap();
    let all = Selection::all(&[10]).unwrap();
    for turn in 0..5 {
        array.write(&all, MemoryView::packed(&[turn; 40]), TransferMode::Independent).unwrap();
        assert_eq!(read(&*array).unwrap(), [turn; 40]);
    }
    let diagnostics = container.diagnostics().join("\n");
    assert!(diagnostics.contains("3 of 5 writes, of 120 B together"), "{diagnostics}");
    container.close().unwrap();
    layered.remove(std::path::Path::new("full")).unwrap();
}
