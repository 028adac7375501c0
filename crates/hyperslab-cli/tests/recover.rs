//! `hyperslab recover` as a user meets it.
#![allow(clippy::unwrap_used)]

#[path = "common/alone.rs"]
mod alone;
#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use alone::ALONE;
use hyperslab_core::{ArraySpec, Datatype, MemoryView, MemoryViewMut, OpenMode, Selection, Stack, TransferMode};
use hyperslab_journal::{Append, Directory, Header, Id, Journal, Limits};
use program::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SHAPE: [u64; 2] = [8, 1000];

/// A container whose array `x` holds 1.0 everywhere.
fn container(stack: &str, path: &Path) {
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    let container = format.open(path, OpenMode::Create, &hyperslab_run::single_rank()).unwrap();
    let array = container.create("group/x", &ArraySpec::new(Datatype::F32, &SHAPE)).unwrap();
    let (all, ones) = (Selection::all(&SHAPE).unwrap(), rows(&[1.0; 8]));
    array.write(&all, MemoryView::packed(&ones), TransferMode::Independent).unwrap();
    array.close().unwrap();
    container.close().unwrap();
}

fn rows(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes().repeat(1000)).collect()
}

fn content(stack: &str, path: &Path) -> Vec<u8> {
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>().unwrap()).unwrap();
    let container = format.open(path, OpenMode::Read, &hyperslab_run::single_rank()).unwrap();
    let mut bytes = vec![0; 32_000];
    let all = Selection::all(&SHAPE).unwrap();
    container
        .array("group/x")
        .unwrap()
        .read(&all, MemoryViewMut::packed(&mut bytes), TransferMode::Independent)
        .unwrap();
    container.close().unwrap();
    bytes
}

/// Two ranks that each log rows and leave.
fn leave(logs: &Path, stack: &str, path: &Path) -> Vec<Arc<Journal>> {
    let job = Id::random().unwrap();
    let each = (0..2u64).map(|rank| {
        let header = Header::new(job, rank as usize, 2, stack, path.into()).unwrap();
        let journal = Journal::create(Arc::new(Directory::open(logs).unwrap()), header, Limits::new(1 << 20)).unwrap();
        for (row, values) in [(rank * 4, [2.0, 2.0, 2.0]), (rank * 4 + 1, [3.0, 4.0, 5.0])] {
            let selection = Selection::dense(&[row, 0], &[3, 1000]).unwrap();
            let logged = journal.append("group/x", &Datatype::F32, &selection, &[&rows(&values)]).unwrap();
            assert!(matches!(logged, Append::Logged(_)));
        }
        journal
    });
    each.collect()
}

fn expected() -> Vec<u8> {
    rows(&[2.0, 3.0, 4.0, 5.0, 2.0, 3.0, 4.0, 5.0])
}

struct Scene {
    folder: tempfile::TempDir,
    logs: PathBuf,
    path: PathBuf,
}

fn scene(stack: &str) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let (logs, path) = (folder.path().join("logs"), folder.path().join("container"));
    fs::create_dir(&logs).unwrap();
    container(stack, &path);
    Scene { folder, logs, path }
}

impl Scene {
    fn recover(&self, more: &[&str]) -> (i32, String, String) {
        run(self.folder.path(), &[&["recover", "logs"], more].concat())
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.logs).unwrap().count()
    }
}

#[test]
fn what_a_job_left_is_brought_into_its_file_once() {
    let _alone = ALONE.lock();
    for stack in ["posix", "hdf5", "zarr", "slow(1GB/s,1us)/hdf5(chunk=4x100)"] {
        let scene = scene(stack);
        assert_eq!(scene.recover(&[]).0, 0, "nothing to do");
        drop(leave(&scene.logs, stack, &scene.path));
        let before = scene.files();
        for check in [&["--list"][..], &["--dry-run"]] {
            let (code, out, err) = scene.recover(check);
            assert!(code == 0 && out.contains("1 of 2") && out.contains("complete"), "{out}{err}");
        }
        assert!(
            scene.recover(&["--dry-run"]).1.contains("4 writes of 46.88 KiB together would be written"),
            "{:?}",
            scene.recover(&["--dry-run"])
        );
        assert_eq!((scene.files(), content(stack, &scene.path)), (before, rows(&[1.0; 8])));
        let (code, out, err) = scene.recover(&[]);
        assert!(code == 0 && out.contains("4 writes of 46.88 KiB together recovered"), "{out}{err}");
        assert_eq!((scene.files(), content(stack, &scene.path)), (0, expected()));
        let (code, out, _) = scene.recover(&[]);
        assert!(code == 0 && out.contains("There are no logs"), "{out}");
    }
}

#[test]
fn logs_in_use_are_left_alone_and_said_so() {
    let _alone = ALONE.lock();
    let scene = scene("posix");
    let mut journals = leave(&scene.logs, "posix", &scene.path);
    journals.pop();
    let (code, out, _) = scene.recover(&[]);
    assert!(code == 3 && out.contains("in use") && out.contains("left alone"), "{out}");
    assert_eq!(content("posix", &scene.path), rows(&[1.0; 8]));
    drop(journals);
    assert_eq!(scene.recover(&[]).0, 0);
    assert_eq!(content("posix", &scene.path), expected());
}

#[test]
fn another_file_can_be_written_instead() {
    let _alone = ALONE.lock();
    let scene = scene("hdf5");
    drop(leave(&scene.logs, "hdf5", &scene.path));
    fs::remove_file(&scene.path).unwrap();
    let (code, _, err) = scene.recover(&[]);
    assert!(code == 1 && err.contains("--to FILE") && err.contains("are kept as they are"), "{err}");
    let (code, out, err) = scene.recover(&["--to", "new.h5"]);
    assert!(code == 0 && out.contains("the logs are kept"), "{out}{err}");
    assert_eq!(content("hdf5", &scene.folder.path().join("new.h5")), expected());
    assert!(scene.files() > 0);
}

#[test]
fn a_damaged_log_is_a_loss_that_is_told_once() {
    let _alone = ALONE.lock();
    let scene = scene("posix");
    drop(leave(&scene.logs, "posix", &scene.path));
    let names: Vec<PathBuf> = fs::read_dir(&scene.logs).unwrap().map(|entry| entry.unwrap().path()).collect();
    let first = names
        .iter()
        .find(|name| name.display().to_string().contains("-0-") && name.extension().is_some_and(|e| e == "meta"))
        .unwrap();
    let mut bytes = fs::read(first).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(first, bytes).unwrap();
    for more in [&["--dry-run"][..], &[]] {
        let (code, out, err) = scene.recover(more);
        assert!(code == 1 && out.contains("LOST") && out.contains("damaged in segment 1"), "{out}{err}");
    }
    assert_eq!(content("posix", &scene.path), rows(&[2.0, 2.0, 2.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    let left = scene.files();
    let (code, out, _) = scene.recover(&[]);
    assert!(code == 0 && out.contains("damaged is kept") && scene.files() == left, "{out}");
}

#[test]
fn places_that_make_no_sense_are_refused() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(folder.path(), &["recover", "missing"]);
    assert!(code == 2 && err.contains("missing"), "{err}");
    let (code, _, err) = run(folder.path(), &["recover", ".", "--list", "--to", "x"]);
    assert!(code == 2 && err.contains("--to"), "{err}");
}

/// What a job leaves that ends while it makes its log.
#[test]
fn a_head_that_was_never_finished_goes() {
    let _alone = ALONE.lock();
    use std::os::unix::fs::OpenOptionsExt;
    let folder = tempfile::tempdir().unwrap();
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    let name = format!("hyperslab-{}-0-{}.new", Id::random().unwrap(), Id::random().unwrap());
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(logs.join(&name)).unwrap();
    let left = || fs::read_dir(&logs).unwrap().count();
    for (options, remain) in [(vec!["--list"], 1), (vec!["--dry-run"], 1), (vec![], 0)] {
        let words: Vec<&str> = ["recover", "logs"].into_iter().chain(options).collect();
        let (code, said, wrong) = run(folder.path(), &words);
        assert_eq!((code, left()), (0, remain), "{words:?}: {said}{wrong}");
    }
}

/// What a writer leaves that is killed while it makes its file, after so many bytes.
fn killed_in_creation(path: &Path, bytes: &[u8]) {
    let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    let file = Arc::new(file);
    let rollback = hyperslab_rollback::Rollback::begin(file.clone(), path, false).unwrap();
    rollback.overwrite(0, bytes.len() as u64, || std::os::unix::fs::FileExt::write_all_at(&*file, bytes, 0)).unwrap();
}

#[test]
fn a_file_that_was_never_flushed_is_empty_and_said_so() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    for bytes in [&[][..], b"\x89HDF\r\n\x1a\n and some forty bytes of a superblock"] {
        for words in [&["recover", "."][..], &["recover", "a.h5"], &["recover", "a.h5", "--check"]] {
            killed_in_creation(&path, bytes);
            let (code, out, err) = run(folder.path(), words);
            assert!(code == 0 && out.contains("it is empty") && err.is_empty(), "{code} {out}{err}");
            assert_eq!(fs::metadata(&path).unwrap().len(), 0);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the journal is still there");
            fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn a_file_that_somebody_emptied_is_not_taken_for_one_that_was_never_flushed() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    fs::write(&path, [1; 5000]).unwrap();
    let file = Arc::new(fs::OpenOptions::new().read(true).write(true).open(&path).unwrap());
    hyperslab_rollback::Rollback::begin(file, &path, false).unwrap().overwrite(0, 1, || Ok(())).unwrap();
    fs::File::create(&path).unwrap();
    let (code, out, err) = run(folder.path(), &["recover", "a.h5"]);
    assert!(code == 1 && err.contains("it has 0 bytes, and had 5000"), "{out}{err}");
    // Without the journal nobody knows what it held.
    fs::remove_file(folder.path().join(".a.h5.hyperslab-rollback")).unwrap();
    let (code, _, err) = run(folder.path(), &["recover", "a.h5", "--check"]);
    assert!(code == 1 && err.contains("cannot be read"), "{err}");
}
