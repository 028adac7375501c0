//! What `mpiio` promises beyond the suite: the files of `posix`, calls of more bytes than 32 bits count, refusals of
//! ranks that MPI does not know, and errors that say what happened.

use super::failing::directory;
use super::suite::build;
use hyperslab_comm::{MpiJob, Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Communicator, Datatype, Durability, ErrorKind, MemoryLayout, MemoryView,
    MemoryViewMut, OpenMode, Selection, TransferMode,
};
use std::path::Path;
use std::sync::Arc;

/// Makes all checks, then ends MPI and makes those of a process where it has ended.
pub fn run(job: MpiJob) {
    let comm = job.world();
    let (directory, _kept) = directory(&*comm);
    either_reads_the_other(&comm, &directory);
    if comm.size() > 1 {
        large(&comm, &directory);
    }
    unknown_ranks(&directory);
    errors(&comm, &directory);
    dropped(&comm, &directory);
    comm.barrier().unwrap();
    after_the_end(job, comm, &directory);
}

fn rows(comm: &dyn Communicator) -> Selection {
    let (rank, size) = (comm.rank() as u64, comm.size() as u64);
    // Interleaved, so that views have gaps.
    Selection::strided(&[rank, 0], &[size, 1], &[4, 5], &[1, 1]).unwrap()
}

/// A container written by one format, read and extended by the other, on all ranks.
fn either_reads_the_other(comm: &Arc<dyn Communicator>, directory: &Path) {
    let shape = [4 * comm.size() as u64, 5];
    let mine = rows(&**comm);
    let data = vec![1 + comm.rank() as u8; mine.len() as usize];
    for (writer, reader) in [("mpiio", "posix"), ("posix", "mpiio"), ("mpiio(view=no)", "mpiio")] {
        let path = directory.join(format!("{writer}-{reader}"));
        let container = build(writer).open(&path, OpenMode::Create, comm).unwrap();
        let spec = ArraySpec { max_shape: Some(vec![None, Some(5)]), ..ArraySpec::new(Datatype::U8, &shape) };
        let array = container.create("group/array", &spec).unwrap();
        container.set_attribute("group/array", "units", &Attribute::text("m")).unwrap();
        array.write(&mine, MemoryView::packed(&data), TransferMode::Collective).unwrap();
        container.flush(Durability::Durable).unwrap();
        container.close().unwrap();
        let container = build(reader).open(&path, OpenMode::Update, comm).unwrap();
        assert_eq!(container.attribute("group/array", "units").unwrap(), Attribute::text("m"));
        let array = container.array("group/array").unwrap();
        assert_eq!(array.spec().unwrap(), spec);
        let mut all = vec![0; (shape[0] * 5) as usize];
        array
            .read(&Selection::all(&shape).unwrap(), MemoryViewMut::packed(&mut all), TransferMode::Collective)
            .unwrap();
        let expected: Vec<u8> = (0..shape[0]).flat_map(|row| [1 + (row % comm.size() as u64) as u8; 5]).collect();
        assert_eq!(all, expected, "{writer} read by {reader}");
        comm.barrier().unwrap();
        array.resize(&[shape[0] + 1, 5]).unwrap();
        container.close().unwrap();
        // Plain tools find the elements where they belong.
        let raw = std::fs::read(path.join("group").join("array.raw")).unwrap();
        assert_eq!(raw, [expected, vec![0; 5]].concat());
        assert!(build(writer).files(&path).unwrap().iter().any(|file| file.ends_with("array.raw")));
    }
    // A file for each rank is the one form that only posix has.
    let path = directory.join("per rank");
    let container = build("posix(files=per_rank)").open(&path, OpenMode::Create, comm).unwrap();
    container.create("array", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    container.close().unwrap();
    let container = build("mpiio").open(&path, OpenMode::Read, comm).unwrap();
    let error = container.array("array").map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.what_to_try().is_some_and(|hint| hint.contains("posix")), "{error}");
    container.close().unwrap();
}

/// Offsets, and bytes of one transfer, beyond 2 GiB. The file is sparse: what is written is a few rows far apart, what
/// is read is all of it, on one rank.
fn large(comm: &Arc<dyn Communicator>, directory: &Path) {
    let path = directory.join("large");
    let bytes = (1 << 31) + 7;
    let container = build("mpiio").open(&path, OpenMode::Create, comm).unwrap();
    let array = container.create("array", &ArraySpec::new(Datatype::U8, &[bytes])).unwrap();
    // The first and last bytes of each half of the file, and so on: far apart in one view.
    let step = (bytes - 1) / 8;
    let mine = match comm.rank() {
        0 => Selection::strided(&[0], &[step], &[9], &[1]).unwrap(),
        _ => Selection::empty(1),
    };
    array.write(&mine, MemoryView::packed(&[9; 9][..mine.len() as usize]), TransferMode::Collective).unwrap();
    container.flush(Durability::Visible).unwrap();
    let whole = if comm.rank() == 0 { Selection::all(&[bytes]).unwrap() } else { Selection::empty(1) };
    let mut found = vec![1; whole.len() as usize];
    array.read(&whole, MemoryViewMut::packed(&mut found), TransferMode::Collective).unwrap();
    let zeros = [0; 1 << 16];
    let places = found.chunks(zeros.len()).enumerate().filter(|(_, part)| **part != zeros[..part.len()]);
    let nines: Vec<u64> = places
        .flat_map(|(at, part)| part.iter().enumerate().map(move |(i, byte)| (at * zeros.len() + i, *byte)))
        .filter(|(_, byte)| *byte != 0)
        .map(|(at, byte)| if byte == 9 { at as u64 } else { u64::MAX })
        .collect();
    let expected: Vec<u64> = (0..9).map(|i| i * step).filter(|_| comm.rank() == 0).collect();
    assert_eq!(nines, expected);
    container.close().unwrap();
    if comm.rank() == 0 {
        build("mpiio").remove(&path).unwrap();
    }
}

fn unknown_ranks(directory: &Path) {
    let path = directory.join("threads");
    let opened = Threads::run_each(2, |comm| build("mpiio").open(&path, OpenMode::Create, &comm).map(drop));
    let error = opened[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("processes of an MPI job"), "{error}");
    assert!(!path.exists());
}

fn errors(comm: &Arc<dyn Communicator>, directory: &Path) {
    let path = directory.join("errors");
    let container = build("mpiio").open(&path, OpenMode::Create, comm).unwrap();
    let array = container.create("array", &ArraySpec::new(Datatype::U8, &[100])).unwrap();
    array.close().unwrap();
    comm.barrier().unwrap();
    if comm.rank() == 0 {
        // Shorter than its description says, as an interrupted copy would leave it.
        let file = std::fs::OpenOptions::new().write(true).open(path.join("array.raw")).unwrap();
        file.set_len(10).unwrap();
    }
    comm.barrier().unwrap();
    let error = container.array("array").map(drop).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Peer), "{error:?}");
    // Cut while it is open: MPI reads less than was asked for, and every rank hears of it.
    let array = container.create("cut", &ArraySpec::new(Datatype::U8, &[100])).unwrap();
    comm.barrier().unwrap();
    if comm.rank() == 0 {
        let file = std::fs::OpenOptions::new().write(true).open(path.join("cut.raw")).unwrap();
        file.set_len(10).unwrap();
    }
    comm.barrier().unwrap();
    let mut found = [0; 100];
    let all = Selection::all(&[100]).unwrap();
    for transfer in [TransferMode::Collective, TransferMode::Independent] {
        let error = array.read(&all, MemoryViewMut::packed(&mut found), transfer).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Peer), "{error:?}");
        assert!(error.to_string().contains("cut.raw"), "{error}");
    }
    let layout = MemoryLayout::member(4, 1);
    let error = array.write(&all, MemoryView { data: &found, layout: &layout }, TransferMode::Collective).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error:?}");
    container.close().unwrap();
}

/// Handles dropped in any order, and only then everything closed; an array opened again in between.
fn dropped(comm: &Arc<dyn Communicator>, directory: &Path) {
    let path = directory.join("dropped");
    let container = build("mpiio").open(&path, OpenMode::Create, comm).unwrap();
    let spec = ArraySpec::new(Datatype::U8, &[4]);
    let names = ["a", "b", "c"];
    let mut arrays: Vec<Arc<dyn Array>> = names.iter().map(|name| container.create(name, &spec).unwrap()).collect();
    if comm.rank() == 0 {
        arrays.reverse();
    }
    drop(arrays);
    let all = Selection::all(&[4]).unwrap();
    for name in names {
        let array = container.array(name).unwrap();
        array.write(&all, MemoryView::packed(&[7; 4]), TransferMode::Independent).unwrap();
        let second = container.array(name).unwrap();
        // The last handle goes by a drop here and by a close there.
        if comm.rank() == 0 {
            drop(second);
            array.close().unwrap();
        } else {
            second.close().unwrap();
        }
    }
    container.flush(Durability::Durable).unwrap();
    container.close().unwrap();
    comm.barrier().unwrap();
    assert_eq!(std::fs::read(path.join("c.raw")).unwrap(), [7; 4]);
}

fn after_the_end(job: MpiJob, comm: Arc<dyn Communicator>, directory: &Path) {
    let alone =
        build("mpiio").open(&directory.join(format!("alone {}", comm.rank())), OpenMode::Create, &Solo::shared());
    let alone = alone.unwrap();
    let array = alone.create("array", &ArraySpec::new(Datatype::U8, &[4])).unwrap();
    comm.barrier().unwrap();
    drop(comm);
    drop(job);
    let data = MemoryView::packed(&[1; 4]);
    let error = array.write(&Selection::all(&[4]).unwrap(), data, TransferMode::Independent).unwrap_err();
    assert!(error.to_string().contains("MPI does not run"), "{error}");
    drop((array, alone));
    let error = build("mpiio").open(&directory.join("late"), OpenMode::Create, &Solo::shared()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.what_to_try().is_some_and(|hint| hint.contains("mpirun")), "{error}");
}
