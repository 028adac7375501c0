use super::array::first_half;
use super::{Fault, Faulty};
use crate::Memory;
use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Durability, ErrorKind, Format, MemoryView, MemoryViewMut,
    OpenMode, Result, Selection, TransferMode,
};
use std::path::Path;
use std::sync::Arc;

/// An array of 8 bytes in a new container.
fn bytes(format: &Faulty, name: &str, comm: &Arc<dyn Communicator>) -> Result<(Arc<dyn Container>, Arc<dyn Array>)> {
    let container = format.open(&Path::new("faulty").join(name), OpenMode::Truncate, comm)?;
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[8]))?;
    Ok((container, array))
}

fn all() -> Selection {
    Selection::all(&[8]).unwrap()
}

fn read(array: &Arc<dyn Array>) -> Vec<u8> {
    let mut data = vec![9; 8];
    array.read(&all(), MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
    data
}

#[test]
fn the_chosen_call_fails_as_chosen_and_no_other() {
    let format = Faulty::new(Arc::new(Memory));
    let (_container, array) = bytes(&format, "chosen", &Solo::shared()).unwrap();
    assert_eq!(format.calls(), 2);
    let write = || array.write(&all(), MemoryView::packed(&[1; 8]), TransferMode::Independent);
    for (fault, kind) in [(Fault::Io, ErrorKind::Io), (Fault::NoSpace, ErrorKind::NoSpace)] {
        format.fail_at(2, fault);
        assert!(array.spec().is_ok());
        assert_eq!(write().unwrap_err().kind(), kind);
        assert_eq!((read(&array), format.calls()), (vec![0; 8], 3));
    }
    format.fail_at(1, Fault::ShortWrite);
    assert_eq!(write().unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!(read(&array), [1, 1, 1, 1, 0, 0, 0, 0]);
    write().unwrap();
    assert_eq!(read(&array), [1; 8]);
    format.fail_at(1, Fault::Panic);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).is_err());
}

#[test]
fn half_of_a_selection_comes_first_in_memory() {
    let half = |selection: &Selection| first_half(selection).unwrap();
    let matrix = Selection::strided(&[3, 1], &[1, 2], &[1, 4], &[1, 1]).unwrap();
    assert_eq!(half(&matrix), Selection::strided(&[3, 1], &[1, 2], &[1, 2], &[1, 1]).unwrap());
    assert!(half(&Selection::dense(&[5], &[1]).unwrap()).is_empty());
    assert!(half(&Selection::all(&[]).unwrap()).is_empty());
    assert!(half(&Selection::empty(2)).is_empty());
}

#[test]
fn nobody_waits_for_a_rank_that_fails_in_a_collective_call() {
    for call in 1..=10 {
        let format = Faulty::new(Arc::new(Memory));
        format.fail_at(call, Fault::Io);
        let results = Threads::run_each(2, |comm| {
            let (container, array) = bytes(&format, &format!("collective {call}"), &comm)?;
            let mine = Selection::dense(&[comm.rank() as u64 * 4], &[4])?;
            let written = array.write(&mine, MemoryView::packed(&[1; 4]), TransferMode::Collective);
            // Still in step: nobody has left, and nobody waits inside the transfer.
            comm.barrier()?;
            written?;
            container.flush(Durability::Visible)?;
            container.close()
        });
        let kinds: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).map(|e| e.kind()).collect();
        assert_eq!(format.calls() >= call, !kinds.is_empty());
        assert_eq!(kinds.iter().filter(|kind| **kind == ErrorKind::Io).count(), kinds.len().min(1), "{kinds:?}");
    }
}

#[test]
fn held_calls_wait_for_their_release() {
    let format = Faulty::new(Arc::new(Memory));
    let (container, array) = bytes(&format, "held", &Solo::shared()).unwrap();
    format.hold();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| array.write(&all(), MemoryView::packed(&[1; 8]), TransferMode::Independent));
        format.wait_until_held(1);
        assert!(format.held() == 1 && !writing.is_finished());
        format.release();
        writing.join().unwrap().unwrap();
    });
    assert_eq!((format.held(), read(&array)), (0, vec![1; 8]));
    container.close().unwrap();
}
