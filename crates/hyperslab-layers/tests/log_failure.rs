//! What becomes of writes when a sync of the file fails, and when the storage of the log does.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::{
    Array, ArraySpec, Container, Datatype, Durability, MemoryView, OpenMode, Selection, Stack, TransferMode,
};
use hyperslab_testkit::{Fault, Faulty, Memory};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn open(layer: &str, logs: &Path, below: &Faulty, name: &str) -> (Arc<dyn Container>, Arc<dyn Array>) {
    let stack = format!("{layer}/faulty").replace("DIR", &logs.display().to_string());
    let format = hyperslab_layers::build(&stack.parse::<Stack>().unwrap(), Arc::new(below.clone())).unwrap();
    let path = PathBuf::from(format!("log_failure/{layer}/{name}"));
    let container = format.open(&path, OpenMode::Truncate, &Solo::shared()).unwrap();
    let array = container.create("a", &ArraySpec::new(Datatype::U8, &[100])).unwrap();
    (container, array)
}

fn write(array: &dyn Array, value: u8) -> hyperslab_core::Result<()> {
    array.write(&Selection::all(&[100])?, MemoryView::packed(&[value; 100]), TransferMode::Independent)
}

fn files(logs: &Path) -> usize {
    fs::read_dir(logs).map_or(0, |entries| entries.count())
}

/// The kernel tells of a page that it could not write once, and forgets it.
#[test]
fn a_sync_that_failed_stays_failed_and_the_log_stays() {
    for layer in ["log(dir=DIR,drain=off)", "cache(dir=DIR)", "log(dir=DIR,drain=off,durability=every-write)"] {
        let mut failed = 0;
        for nth in 1..6 {
            let logs = tempfile::tempdir().unwrap();
            let below = Faulty::new(Arc::new(Memory));
            let (container, array) = open(layer, logs.path(), &below, &format!("sync {nth}"));
            write(&*array, 1).unwrap();
            below.fail_at(nth, Fault::Io);
            if container.flush(Durability::Durable).is_ok() {
                continue;
            }
            failed += 1;
            for _ in 0..3 {
                assert!(container.flush(Durability::Durable).is_err(), "{layer}: forgotten at call {nth}");
            }
            assert!(container.close().is_err() || files(logs.path()) > 0, "{layer}: nobody is told at call {nth}");
            drop((array, container));
            assert!(files(logs.path()) > 0, "{layer}: the log is gone at call {nth}");
        }
        assert!(failed > 0, "{layer}");
    }
}

#[test]
fn writes_go_past_a_log_that_fails_and_into_it_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let below = Faulty::new(Arc::new(Memory));
    let (container, array) = open("log(dir=DIR,drain=off)", &logs, &below, "away");
    fs::remove_dir_all(&logs).unwrap();
    let before = below.calls();
    write(&*array, 1).unwrap();
    assert!(below.calls() > before, "written through");
    fs::create_dir(&logs).unwrap();
    write(&*array, 2).unwrap();
    assert_eq!(files(&logs), 0, "not tried at every write");
    std::thread::sleep(Duration::from_millis(3100));
    let before = below.calls();
    write(&*array, 3).unwrap();
    assert!(files(&logs) > 0 && below.calls() == before, "logged again");
    array.close().unwrap();
    container.close().unwrap();
    assert_eq!(files(&logs), 0);
    assert!(container.diagnostics().iter().any(|diagnostic| diagnostic.contains("straight to the storage")));
}

#[test]
fn writes_fail_with_the_log_where_the_user_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let below = Faulty::new(Arc::new(Memory));
    let (container, array) = open("log(dir=DIR,drain=off,on-log-failure=error)", &logs, &below, "error");
    fs::remove_dir_all(&logs).unwrap();
    assert!(write(&*array, 1).is_err());
    assert!(write(&*array, 1).is_err());
    let _ = (array.close(), container.close());
}
