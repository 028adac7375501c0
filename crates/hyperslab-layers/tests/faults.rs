//! Every call that a layer makes fails once, in every way: the caller hears of it, and nobody hangs.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Threads;
use hyperslab_core::{
    ArraySpec, Attribute, Bytes, Communicator, Datatype, Durability, ErrorKind, Format, MemoryLayout, MemoryView,
    MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use hyperslab_testkit::{Fault, Faulty, Memory, watchdog};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Layers as a user writes them. Small buffers, so that transfers take several rounds.
const LAYERS: &[&str] = &[
    "async",
    "async(threads=3,ahead=0)",
    "auto(state=off)",
    "auto(state=off,dir=DIR)",
    "auto(choices=async,state=off)",
    "cache(dir=DIR,threads=2)",
    "cache",
    "cache(memory=4KiB,block=64)",
    "log(dir=DIR,buffer=4KiB,drain=off)",
    "log(dir=DIR,drain=1)",
    "log(dir=DIR,durability=none)",
    "twophase(aggregators=1,buffer=8,unit=1)",
    "twophase(aggregators=2,buffer=8,unit=1)",
    "loglayout",
    "loglayout(room=100)",
    "trace",
];

/// More than anything here needs.
const LIMIT: Duration = Duration::from_secs(60);

/// Bytes of the array that each rank writes.
const EACH: u64 = 32;

/// Something of everything, with the data checked at the end.
fn play(format: &dyn Format, path: &Path, comm: &Arc<dyn Communicator>) -> Result<()> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let container = format.open(path, OpenMode::Truncate, comm)?;
    container.set_attribute("", "title", &Attribute::integer(3))?;
    let array = container.create("group/a", &ArraySpec::new(Datatype::U8, &[2, ranks * EACH]))?;
    let data: Vec<u8> = (0..EACH as u8).map(|byte| byte + 100 * rank as u8 + 1).collect();
    let interleaved = Selection::strided(&[0, rank], &[1, ranks], &[1, EACH], &[1, 1])?;
    array.write(&interleaved, MemoryView::packed(&data), TransferMode::Collective)?;
    let (left, right) = (Selection::dense(&[1, rank * EACH], &[1, EACH / 2])?, EACH as usize / 2);
    array.write(&left, MemoryView::packed(&data[..right]), TransferMode::Independent)?;
    let rest = Selection::dense(&[1, rank * EACH + EACH / 2], &[1, EACH / 2])?;
    let submitted = Bytes::copy_from_slice(&data[right..]);
    array.submit_write(&rest, submitted, &MemoryLayout::packed(), TransferMode::Independent)?.wait()?;
    container.flush(Durability::Visible)?;
    let mut found = vec![0; 2 * EACH as usize];
    let mine = interleaved.union_with(&Selection::dense(&[1, rank * EACH], &[1, EACH])?)?;
    array.read(&mine, MemoryViewMut::packed(&mut found), TransferMode::Collective)?;
    assert_eq!(found, [&data[..], &data[..]].concat(), "wrong data without an error");
    array.close()?;
    container.close()
}

/// Plays with call number `call` failing. Returns whether there was such a call.
fn fails_once(layer: &str, fault: Fault, ranks: usize, call: u64) -> bool {
    let faulty = Faulty::new(Arc::new(Memory));
    faulty.fail_at(call, fault);
    let staged = tempfile::tempdir().unwrap();
    let stack = format!("{layer}/faulty").replace("DIR", &staged.path().display().to_string());
    let stack: Stack = stack.parse().unwrap();
    let format = hyperslab_layers::build(&stack, Arc::new(faulty.clone())).unwrap();
    let path = PathBuf::from(format!("faults/{layer} {fault:?} {ranks}"));
    let played = watchdog::within(LIMIT, move || Ok(Threads::run_each(ranks, |comm| play(&*format, &path, &comm))));
    let what = format!("{layer}, {ranks} ranks, {fault:?} at call {call}");
    let results = played.unwrap_or_else(|failed| panic!("{what}: {}", failed.message().unwrap_or("failed")));
    let there = faulty.calls() >= call;
    let errors: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(errors.is_empty(), !there, "{what}: {errors:?}");
    let expected = if matches!(fault, Fault::Io | Fault::Panic) { ErrorKind::Io } else { ErrorKind::NoSpace };
    let told = |error: &&hyperslab_core::Error| error.kind() == expected && !error.to_string().contains("wrong data");
    assert!(!there || errors.iter().any(told), "{what}: the cause is not told: {errors:?}");
    there
}

#[test]
fn every_call_may_fail_in_every_way() {
    for layer in LAYERS {
        for (fault, ranks) in Fault::ALL.into_iter().flat_map(|fault| [(fault, 1), (fault, 2)]) {
            let calls = (1..).take_while(|&call| fails_once(layer, fault, ranks, call)).count();
            assert!(calls >= 9 * ranks, "{layer}: only {calls} calls");
        }
    }
}
