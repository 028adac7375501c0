//! What `auto` promises beside the data: the right choice where it is clear, ranks that choose alike, a history.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Datatype, Durability, Format, MemoryView, MemoryViewMut, OpenMode,
    Result, Selection, Stack, TransferMode,
};
use hyperslab_testkit::{Fault, Faulty};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROW: u64 = 256 << 10;
const ROWS: u64 = 24;

fn build(layer: &str, below: &str) -> Arc<dyn Format> {
    let stack: Stack = format!("{layer}/{below}").parse().unwrap();
    hyperslab_layers::build(&stack, hyperslab_formats::build(&stack.format).unwrap()).unwrap()
}

fn open(format: &dyn Format, folder: &Path, comm: &Arc<dyn Communicator>) -> (Arc<dyn Container>, Arc<dyn Array>) {
    let container = format.open(&folder.join("container"), OpenMode::Truncate, comm).unwrap();
    let rows = ROWS * comm.size() as u64;
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[rows, ROW])).unwrap();
    (container, array)
}

fn row(number: u64) -> Selection {
    Selection::dense(&[number, 0], &[1, ROW]).unwrap()
}

fn write(array: &dyn Array, number: u64, value: u8, transfer: TransferMode) -> Result<()> {
    array.write(&row(number), MemoryView::packed(&vec![value; ROW as usize]), transfer)
}

fn read(array: &dyn Array, number: u64) -> Vec<u8> {
    let mut data = vec![0; ROW as usize];
    array.read(&row(number), MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
    data
}

/// The choices of an explanation, in their order.
fn choices(explained: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(explained).unwrap();
    text.lines().map(|line| line.split_whitespace().nth(2).unwrap().to_owned()).collect()
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

#[test]
fn slow_storage_and_computing_call_for_async() {
    let folder = tempfile::tempdir().unwrap();
    let explained = folder.path().join("why");
    let layer = format!("auto(state=off,explain={})", explained.display());
    // 256 KiB take 25 ms.
    let format = build(&layer, "slow(10MB/s,1ms)/posix");
    let (container, array) = open(&*format, folder.path(), &Solo::shared());
    for step in 0..12 {
        pause(40);
        write(&*array, step, 1 + step as u8, TransferMode::Independent).unwrap();
    }
    assert_eq!(read(&*array, 11), vec![12; ROW as usize]);
    container.close().unwrap();
    let chosen = choices(&explained);
    let behind = chosen.iter().filter(|choice| *choice == "async").count();
    assert!(behind >= 9, "{chosen:?}");
    assert!(
        container.diagnostics().iter().any(|diagnostic| diagnostic.contains("epochs async")),
        "{:?}",
        container.diagnostics()
    );
    assert!(container.background().bytes > 0);
}

#[test]
fn fast_storage_without_computing_calls_for_waiting() {
    // A machine that does something else meanwhile looks like one that computes.
    let mut seen = Vec::new();
    let waited = (0..5).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        let explained = folder.path().join("why");
        let layer = format!("auto(state=off,explain={})", explained.display());
        let format = build(&layer, "posix");
        let (container, array) = open(&*format, folder.path(), &Solo::shared());
        for step in 0..200 {
            write(&*array, step % ROWS, step as u8, TransferMode::Independent).unwrap();
        }
        container.close().unwrap();
        seen.push(choices(&explained));
        container.background().bytes == 0 && choices(&explained).iter().all(|choice| choice == "sync")
    });
    assert!(waited, "{seen:?}");
}

#[test]
fn data_are_right_whatever_is_chosen_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let explained = folder.path().join("why");
    let layer = format!("auto(state=off,dir={},explain={})", folder.path().display(), explained.display());
    let format = build(&layer, "slow(50MB/s,500us)/posix");
    let (container, array) = open(&*format, folder.path(), &Solo::shared());
    for step in 0..120u64 {
        // Computing comes and goes.
        if step / 30 % 2 == 0 {
            pause(12);
        }
        let (number, value) = (step * 7 % ROWS, step as u8);
        write(&*array, number, value, TransferMode::Independent).unwrap();
        if step % 5 == 0 {
            assert_eq!(read(&*array, number), vec![value; ROW as usize], "step {step}");
        }
        if step % 40 == 39 {
            container.flush(Durability::Visible).unwrap();
        }
    }
    let mut last = vec![0; ROWS as usize];
    (0..120u64).for_each(|step| last[(step * 7 % ROWS) as usize] = step as u8);
    for (number, value) in last.iter().enumerate() {
        assert_eq!(read(&*array, number as u64), vec![*value; ROW as usize]);
    }
    container.close().unwrap();
    assert!(!choices(&explained).is_empty());
    let plain = hyperslab_formats::build(&"posix".parse::<Stack>().unwrap().format).unwrap();
    let plain = plain.open(&folder.path().join("container"), OpenMode::Read, &Solo::shared()).unwrap();
    let array = plain.array("a").unwrap();
    for (number, value) in last.iter().enumerate() {
        assert_eq!(read(&*array, number as u64), vec![*value; ROW as usize]);
    }
}

/// Ranks compute for different times; what each has moved in the background shows what it chose.
fn ranks_choose_alike(transfer: TransferMode) {
    let folder = tempfile::tempdir().unwrap();
    let format = build("auto(state=off)", "slow(20MB/s,1ms)/posix");
    let moved = Threads::run(3, |comm| {
        let (container, array) = open(&*format, folder.path(), &comm);
        let rank = comm.rank() as u64;
        for step in 0..16 {
            // Alone, the first would not choose as the last does.
            pause(if step < 8 { rank * 30 } else { 0 });
            write(&*array, rank * ROWS + step, step as u8, transfer)?;
            if transfer == TransferMode::Independent && step % 4 == 3 {
                container.flush(Durability::Visible)?;
            }
        }
        container.flush(Durability::Visible)?;
        assert_eq!(read(&*array, rank * ROWS + 15), vec![15; ROW as usize]);
        comm.barrier()?;
        assert_eq!(read(&*array, (rank + 1) % 3 * ROWS + 7), vec![7; ROW as usize]);
        comm.barrier()?;
        container.close()?;
        Ok(container.background().bytes)
    });
    let moved = moved.unwrap();
    assert!(moved[0] > 0 && moved.iter().all(|bytes| *bytes == moved[0]), "{moved:?}");
}

#[test]
fn ranks_that_transfer_together_choose_alike() {
    ranks_choose_alike(TransferMode::Collective);
}

#[test]
fn ranks_that_transfer_each_for_itself_choose_alike() {
    ranks_choose_alike(TransferMode::Independent);
}

#[test]
fn what_was_learnt_is_there_in_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let play = |state: &Path, explained: &str| {
        let explained = folder.path().join(explained);
        let layer = format!("auto(state={},explain={})", state.display(), explained.display());
        let format = build(&layer, "slow(10MB/s,1ms)/posix");
        let (container, array) = open(&*format, folder.path(), &Solo::shared());
        for step in 0..6 {
            // The first step says nothing of the others.
            pause(if step == 0 { 0 } else { 40 });
            write(&*array, step, 1, TransferMode::Independent).unwrap();
        }
        container.close().unwrap();
        (container.diagnostics(), std::fs::read_to_string(explained).unwrap())
    };
    let (_, without) = play(&first, "without");
    assert!(without.lines().next().unwrap().contains("nothing is known"), "{without}");
    // As another process finds it: this one remembers the folder.
    std::fs::create_dir(&second).unwrap();
    std::fs::copy(first.join("auto-history.json"), second.join("auto-history.json")).unwrap();
    let (diagnostics, with) = play(&second, "with");
    let line = with.lines().next().unwrap();
    assert!(line.starts_with("epoch 1: async") && line.contains("foreseen sync"), "{with}");
    assert!(!diagnostics.iter().any(|diagnostic| diagnostic.contains("not used")), "{diagnostics:?}");
    // A damaged file is told, and nothing else happens.
    let third = folder.path().join("third");
    std::fs::create_dir(&third).unwrap();
    std::fs::write(third.join("auto-history.json"), "{\"hyperslab_auto").unwrap();
    let (diagnostics, anew) = play(&third, "anew");
    assert!(
        diagnostics.iter().any(|diagnostic| diagnostic.contains("what earlier runs learnt is not used")),
        "{diagnostics:?}"
    );
    assert!(anew.lines().next().unwrap().contains("nothing is known"), "{anew}");
}

#[test]
fn an_error_of_the_background_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let explained = folder.path().join("why");
    let faulty = Faulty::new(build("slow(10MB/s,1ms)", "posix"));
    let stack: Stack = format!("auto(state=off,explain={})/faulty", explained.display()).parse().unwrap();
    let format = hyperslab_layers::build(&stack, Arc::new(faulty.clone())).unwrap();
    let (container, array) = open(&*format, folder.path(), &Solo::shared());
    let mut step = |pauses| {
        pause(pauses);
        write(&*array, 0, 1, TransferMode::Independent)
    };
    (0..4).for_each(|_| step(40).unwrap());
    faulty.fail_at(1, Fault::Io);
    // One that fails behind, and some after it without a pause, which would be waited for.
    let results: Vec<Result<()>> = [40, 40, 0, 0, 0].into_iter().map(&mut step).collect();
    assert!(results.iter().any(Result::is_err) || container.flush(Durability::Visible).is_err());
    let later = write(&*array, 1, 2, TransferMode::Independent);
    assert!(later.is_err(), "everything but close is refused");
    let _ = container.close();
}
