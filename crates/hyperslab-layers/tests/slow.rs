//! Emulated storage: no call takes less than it would there.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Bytes, Communicator, Container, Datatype, Durability, Format, MemoryLayout, MemoryView,
    MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use hyperslab_testkit::Memory;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The layer over the oracle.
fn slow(options: &str) -> Arc<dyn Format> {
    let stack: Stack = format!("slow({options})/memory").parse().unwrap();
    hyperslab_layers::build(&stack, Arc::new(Memory)).unwrap()
}

/// An array of `shape` bytes in a new container.
fn array(
    format: &Arc<dyn Format>,
    name: &str,
    shape: u64,
    comm: &Arc<dyn Communicator>,
) -> Result<(Arc<dyn Container>, Arc<dyn Array>)> {
    let container = format.open(&Path::new("slow").join(name), OpenMode::Truncate, comm)?;
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[shape]))?;
    Ok((container, array))
}

/// How long `work` takes.
fn time(work: impl FnOnce() -> Result<()>) -> Duration {
    let from = Instant::now();
    work().unwrap();
    from.elapsed()
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn transfers_take_the_time_of_their_bytes_and_requests() {
    // 1000 bytes take 20 ms.
    let format = slow("50000/s,10ms");
    let (container, array) = array(&format, "bytes", 1000, &Solo::shared()).unwrap();
    let all = Selection::all(&[1000]).unwrap();
    let mut data = vec![7; 1000];
    let independent = TransferMode::Independent;
    assert!(time(|| array.write(&all, MemoryView::packed(&data), independent)) >= 30 * MILLISECOND);
    assert!(time(|| array.read(&all, MemoryViewMut::packed(&mut data), independent)) >= 30 * MILLISECOND);
    let halves = [Selection::dense(&[0], &[500]).unwrap(), Selection::dense(&[500], &[500]).unwrap()];
    let parts: Vec<_> = halves.iter().map(|half| (half, MemoryView::packed(&data[..500]))).collect();
    // The parts queue; of their latencies the last counts.
    assert!(time(|| array.write_many(&parts, independent)) >= 30 * MILLISECOND);
    assert!(time(|| container.create_group("g")) >= 10 * MILLISECOND);
    assert!(time(|| container.flush(Durability::Visible)) >= 10 * MILLISECOND);
    assert!(time(|| container.close()) >= 10 * MILLISECOND);
}

#[test]
fn thread_ranks_share_one_device() {
    let format = slow("100000/s,0");
    let took = time(|| {
        Threads::run(4, |comm| {
            let (container, array) = array(&format, "shared", 4000, &comm)?;
            let mine = Selection::dense(&[comm.rank() as u64 * 1000], &[1000])?;
            array.write(&mine, MemoryView::packed(&[1; 1000]), TransferMode::Independent)?;
            container.close()
        })
        .map(drop)
    });
    assert!(took >= 40 * MILLISECOND, "{took:?}");
}

#[test]
fn submitted_writes_are_complete_in_their_time_and_at_the_latest_when_flushed() {
    let format = slow("100000/s,1ms");
    let (container, array) = array(&format, "submitted", 4000, &Solo::shared()).unwrap();
    let part = |number: u64| Selection::dense(&[number * 1000], &[1000]).unwrap();
    let submit = |number: u64| {
        let (data, packed) = (Bytes::from(vec![number as u8; 1000]), MemoryLayout::packed());
        array.submit_write(&part(number), data, &packed, TransferMode::Independent).unwrap()
    };
    let from = Instant::now();
    let (first, mut second) = (submit(0), submit(1));
    first.wait().unwrap();
    assert!(from.elapsed() >= 11 * MILLISECOND);
    drop(submit(2));
    container.flush(Durability::Visible).unwrap();
    assert!(from.elapsed() >= 31 * MILLISECOND);
    assert!(second.test().is_some_and(|result| result.is_ok()), "complete, though nobody waited for it");
    let mut read = vec![9; 4000];
    array.read(&Selection::all(&[4000]).unwrap(), MemoryViewMut::packed(&mut read), TransferMode::Independent).unwrap();
    assert_eq!((read[0], read[1000], read[2999], read[3000]), (0, 1, 2, 0));
    let before = Instant::now();
    drop(submit(3));
    container.close().unwrap();
    assert!(before.elapsed() >= 11 * MILLISECOND);
}

#[test]
fn it_says_that_it_is_emulated_and_hides_nothing() {
    let format = slow("1GiB/s,5us");
    assert_eq!(format.caps(), Memory.caps());
    let (container, array) = array(&format, "remarks", 10, &Solo::shared()).unwrap();
    let diagnostics = container.diagnostics();
    assert!(diagnostics.iter().any(|diagnostic| diagnostic.contains("1.00 GiB/s and 5µs")), "{diagnostics:?}");
    let outside = Selection::dense(&[8], &[4]).unwrap();
    assert!(array.write(&outside, MemoryView::packed(&[0; 4]), TransferMode::Independent).is_err());
    container.close().unwrap();
    assert!(array.write(&outside, MemoryView::packed(&[0; 4]), TransferMode::Independent).is_err());
}
