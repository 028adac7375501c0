//! Old data never go over new: a log is applied to the file that it was written for, as its job left it, or not at all.
#![allow(clippy::unwrap_used)]

#[path = "common/alone.rs"]
mod alone;
#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use alone::ALONE;
use hyperslab_core::{
    ArraySpec, Datatype, Error, MemoryView, MemoryViewMut, OpenMode, Result, Selection, Stack, TransferMode,
};
use program::{hyperslab, run, said};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const LEN: u64 = 1000;
const OLD: u8 = 2;
const NEW: u8 = 3;

/// Writes one value everywhere. With `crash` the process ends before anything is closed.
fn write(stack: &str, path: &Path, how: OpenMode, value: u8, crash: bool) -> Result<()> {
    let format = hyperslab_run::open_stack(&stack.parse::<Stack>()?)?;
    let container = format.open(path, how, &hyperslab_run::single_rank())?;
    let array = match how {
        OpenMode::Update => container.array("x")?,
        _ => container.create("x", &ArraySpec::new(Datatype::U8, &[LEN]))?,
    };
    let (all, data) = (Selection::all(&[LEN])?, vec![value; LEN as usize]);
    array.write(&all, MemoryView::packed(&data), TransferMode::Independent)?;
    if crash {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    }
    array.close()?;
    container.close()
}

fn content(path: &Path) -> Vec<u8> {
    let format = hyperslab_formats::build(&"hdf5".parse::<Stack>().unwrap().format).unwrap();
    let container = format.open(path, OpenMode::Read, &hyperslab_run::single_rank()).unwrap();
    let (all, mut data) = (Selection::all(&[LEN]).unwrap(), vec![0; LEN as usize]);
    let array = container.array("x").unwrap();
    array.read(&all, MemoryViewMut::packed(&mut data), TransferMode::Independent).unwrap();
    array.close().unwrap();
    container.close().unwrap();
    data
}

/// Not a test: what a process does that is killed.
#[test]
#[ignore = "started by others"]
fn child() {
    let Some(path) = std::env::var_os("HYPERSLAB_TEST_PATH") else { return };
    let stack = std::env::var("HYPERSLAB_TEST_STACK").unwrap();
    write(&stack, Path::new(&path), OpenMode::Update, OLD, true).unwrap();
}

struct Scene {
    folder: tempfile::TempDir,
    path: PathBuf,
    logs: PathBuf,
}

/// A file of ones, for which a log with `OLD` waits.
fn crashed() -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (path, logs) = (root.join("a.h5"), root.join("logs"));
    fs::create_dir(&logs).unwrap();
    write("hdf5", &path, OpenMode::Create, 1, false).unwrap();
    crash(&path, &format!("log(dir={},drain=off)/hdf5", logs.display()));
    Scene { folder, path, logs }
}

fn crash(path: &Path, stack: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--ignored"]);
    let ended = child.env("HYPERSLAB_TEST_PATH", path).env("HYPERSLAB_TEST_STACK", stack).output().unwrap();
    assert!(!ended.status.success() && ended.status.code().is_none(), "{ended:?}");
}

fn later(path: &Path) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
}

impl Scene {
    fn recover(&self, more: &[&str]) -> (i32, String, String) {
        run(self.folder.path(), &[&["recover", "logs"], more].concat())
    }

    /// The recovery refuses with a reason and touches nothing; with --force it goes through.
    fn refuses(&self, path: &Path, why: &str, forced: u8) {
        let (before, logs) = (fs::read(path).unwrap(), fs::read_dir(&self.logs).unwrap().count());
        let (code, out, err) = self.recover(&[]);
        assert!(code == 1 && err.contains(why) && err.contains("--force"), "{code}\n{out}\n{err}");
        assert!(fs::read(path).unwrap() == before, "touched");
        assert_eq!(fs::read_dir(&self.logs).unwrap().count(), logs);
        let (code, out, err) = self.recover(&["--force"]);
        assert!(code == 0 && out.contains("recovered"), "{code}\n{out}\n{err}");
        assert_eq!(content(path)[7], forced);
    }
}

#[test]
fn an_ordinary_crash_is_recovered_by_directory_and_by_file() {
    let _alone = ALONE.lock();
    let scene = crashed();
    assert!(scene.folder.path().join(".a.h5.hyperslab-log").exists());
    let (code, out, err) = scene.recover(&["--check"]);
    assert!(code == 0 && out.contains("read back the same; all"), "{out}{err}");
    assert_eq!(content(&scene.path)[7], OLD);
    assert!(!scene.folder.path().join(".a.h5.hyperslab-log").exists());
    crash(&scene.path, &format!("log(dir={},drain=off)/hdf5", scene.logs.display()));
    let (code, out, err) = run(scene.folder.path(), &["recover", "a.h5"]);
    assert!(code == 0 && out.contains("recovered, read back the same; it opens, with 1 array"), "{out}{err}");
    assert_eq!(fs::read_dir(&scene.logs).unwrap().count(), 0);
}

fn waits(error: &Error) -> bool {
    error.to_string().contains("wait in the log") && error.to_string().contains("hyperslab recover")
}

#[test]
fn way_1_a_symbolic_link() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let link = scene.folder.path().join("link.h5");
    symlink(&scene.path, &link).unwrap();
    assert!(waits(&write("hdf5", &link, OpenMode::Update, NEW, false).unwrap_err()));
    // Somebody else, who does not look.
    let plain = hyperslab_formats::build(&"hdf5".parse::<Stack>().unwrap().format).unwrap();
    plain.open(&link, OpenMode::Update, &hyperslab_run::single_rank()).unwrap().close().unwrap();
    later(&link);
    scene.refuses(&scene.path, "changed by something else", OLD);
}

#[test]
fn way_2_a_hard_link() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let link = scene.folder.path().join("hard.h5");
    fs::hard_link(&scene.path, &link).unwrap();
    let other = scene.folder.path().join("others");
    fs::create_dir(&other).unwrap();
    let refused = write(&format!("log(dir={})/hdf5", other.display()), &link, OpenMode::Update, NEW, false);
    match refused {
        Err(error) => assert!(waits(&error), "{error}"),
        // A file system without extended attributes: the recovery notices.
        Ok(()) => later(&link),
    }
    later(&link);
    scene.refuses(&scene.path, "changed by something else", OLD);
}

#[test]
fn way_3_another_log_directory() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let other = scene.folder.path().join("others");
    fs::create_dir(&other).unwrap();
    let stack = format!("log(dir={})/hdf5", other.display());
    let error = write(&stack, &scene.path, OpenMode::Update, NEW, false).unwrap_err();
    assert!(waits(&error), "{error}");
    assert!(write(&stack, &scene.path, OpenMode::Truncate, NEW, false).is_err_and(|error| waits(&error)));
    later(&scene.path);
    scene.refuses(&scene.path, "changed by something else", OLD);
}

#[test]
fn way_4_a_mode_without_a_log() {
    let _alone = ALONE.lock();
    let scene = crashed();
    for stack in ["hdf5", "async/hdf5", "cache/hdf5", "hdf5(plane=on)"] {
        let error = write(stack, &scene.path, OpenMode::Update, NEW, false).unwrap_err();
        assert!(waits(&error), "{stack}: {error}");
    }
    // Reading is allowed, with a word.
    let (code, out, err) = run(scene.folder.path(), &["show", "a.h5"]);
    assert!(code == 0 && err.contains("warning") && err.contains("the file lacks them"), "{out}{err}");
}

#[test]
fn way_5_a_plain_program_makes_the_file_anew() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let fresh = scene.folder.path().join("fresh.h5");
    write("hdf5", &fresh, OpenMode::Create, NEW, false).unwrap();
    // The same inode, cut off and written again.
    fs::write(&scene.path, fs::read(&fresh).unwrap()).unwrap();
    later(&scene.path);
    scene.refuses(&scene.path, "changed by something else", OLD);
}

#[test]
fn way_6_another_file_is_moved_there() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let fresh = scene.folder.path().join("fresh.h5");
    write("hdf5", &fresh, OpenMode::Create, NEW, false).unwrap();
    // As the HDF5 connector leaves one: also this journal is of the file that was there.
    leave_rollback_journal(&scene.path);
    fs::rename(&fresh, &scene.path).unwrap();
    scene.refuses(&scene.path, "another file is there now", OLD);
}

/// What a killed writer leaves that had overwritten nothing yet.
fn leave_rollback_journal(path: &Path) {
    let file = Arc::new(File::options().read(true).write(true).open(path).unwrap());
    let rollback = hyperslab_rollback::Rollback::begin(file, path, false).unwrap();
    rollback.overwrite(0, 1, || Ok(())).unwrap();
}

#[test]
fn a_file_or_directory_that_was_moved_is_not_said_to_lack_nothing() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let moved = scene.folder.path().join("moved.h5");
    fs::rename(&scene.path, &moved).unwrap();
    let asked = |file: &str, words: &str| {
        let (code, out, err) = run(scene.folder.path(), &["recover", file]);
        assert!(code == 1 && err.contains(words) && !out.contains("There are no logs"), "{code}\n{out}\n{err}");
    };
    asked("moved.h5", "which name another path");
    let away = scene.folder.path().join("away");
    fs::rename(&scene.logs, &away).unwrap();
    asked("moved.h5", "this directory is gone");
    // Back again, nothing is lost.
    fs::rename(&away, &scene.logs).unwrap();
    fs::rename(&moved, &scene.path).unwrap();
    let (code, out, err) = run(scene.folder.path(), &["recover", "a.h5"]);
    assert!(code == 0 && content(&scene.path)[7] == OLD, "{out}{err}");
}

#[test]
fn way_7_a_copied_directory() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let copy = scene.folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&scene.logs).unwrap().map(|entry| entry.unwrap()) {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    assert_eq!(scene.recover(&[]).0, 0);
    write("hdf5", &scene.path, OpenMode::Update, NEW, false).unwrap();
    let scene = Scene { logs: copy.clone(), ..scene };
    let (code, out, err) = run(scene.folder.path(), &["recover", "copy"]);
    assert!(code == 1 && err.contains("a copy of others") && content(&scene.path)[7] == NEW, "{out}{err}");
    assert_eq!(run(scene.folder.path(), &["recover", "copy", "--force"]).0, 0);
    assert_eq!(content(&scene.path)[7], OLD);
}

#[test]
fn a_file_that_was_put_back_is_not_touched() {
    let _alone = ALONE.lock();
    let scene = crashed();
    File::options().write(true).open(&scene.path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    scene.refuses(&scene.path, "it was put back", OLD);
}

#[test]
fn logs_are_thrown_away_when_asked_and_with_their_file() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let (code, out, err) = run(scene.folder.path(), &["recover", "--discard", "a.h5"]);
    assert!(code == 0 && out.contains("1 write of 1000 B thrown away"), "{out}{err}");
    assert_eq!((fs::read_dir(&scene.logs).unwrap().count(), content(&scene.path)[7]), (0, 1));
    write("hdf5", &scene.path, OpenMode::Update, NEW, false).unwrap();
    // Files without a head.
    let name = format!("hyperslab-{0}-0-{0}.00000001.meta", "0123456789abcdef".repeat(2));
    fs::write(scene.logs.join(&name), "x").unwrap();
    assert_eq!(scene.recover(&[]).0, 1);
    let (code, out, err) = scene.recover(&["--discard"]);
    assert!(code == 0 && out.contains("without a readable head") && !scene.logs.join(&name).exists(), "{out}{err}");
    // Whoever removes a file by its format removes its logs.
    crash(&scene.path, &format!("log(dir={},drain=off)/hdf5", scene.logs.display()));
    hyperslab_run::open_stack(&"hdf5".parse::<Stack>().unwrap()).unwrap().remove(&scene.path).unwrap();
    assert_eq!(fs::read_dir(&scene.logs).unwrap().count(), 0);
    assert!(!scene.folder.path().join(".a.h5.hyperslab-log").exists());
}

#[test]
fn a_missing_first_or_last_segment_is_a_loss_that_is_told() {
    let _alone = ALONE.lock();
    for last in [false, true] {
        let scene = crashed();
        let mut segments: Vec<PathBuf> =
            fs::read_dir(&scene.logs).unwrap().map(|entry| entry.unwrap().path()).collect();
        segments.retain(|name| name.extension().is_some_and(|ending| ending == "meta"));
        segments.sort();
        fs::remove_file(if last { segments.last() } else { segments.first() }.unwrap()).unwrap();
        let (code, out, err) = scene.recover(&[]);
        assert!(code == 1 && out.contains("LOST") && out.contains("segment 1 is missing"), "{out}{err}");
        assert!(out.contains("nothing could be recovered") && !out.contains("are removed"), "{out}{err}");
        assert_eq!(content(&scene.path)[7], 1);
    }
}

/// Wherever the last segment is cut off: the head says how long it was.
#[test]
fn a_last_segment_that_was_cut_off_is_a_loss_that_is_told() {
    let _alone = ALONE.lock();
    for keep in [|_| 0, |_| 30, |_| 60, |_| 200, |len| len / 2, |len: u64| len - 1] {
        let scene = crashed();
        let mut names = fs::read_dir(&scene.logs).unwrap().map(|entry| entry.unwrap().path());
        let segment = names.find(|name| name.extension().is_some_and(|ending| ending == "meta")).unwrap();
        let len = segment.metadata().unwrap().len();
        File::options().write(true).open(&segment).unwrap().set_len(keep(len)).unwrap();
        for more in [&["--dry-run"][..], &[]] {
            let (code, out, err) = scene.recover(more);
            assert!(code == 1 && out.contains("LOST") && out.contains(&format!("had {len} or more")), "{out}{err}");
            assert!(!out.contains("are removed") && !out.contains("nothing missing"), "{out}{err}");
        }
        // What was in the log when its end was cut off, and no other bytes.
        assert!([1, OLD].contains(&content(&scene.path)[7]));
    }
}

#[test]
fn no_number_of_ranks_needs_more_descriptors() {
    let _alone = ALONE.lock();
    use hyperslab_journal::{Append, Directory, Header, Id, Journal, Limits};
    let scene = crashed();
    assert_eq!(scene.recover(&[]).0, 0);
    let job = Id::random().unwrap();
    for rank in 0..200 {
        let header = Header::new(job, rank, 200, "hdf5", scene.path.clone()).unwrap();
        let files = std::sync::Arc::new(Directory::open(&scene.logs).unwrap());
        let journal = Journal::create(files, header, Limits::new(1 << 20)).unwrap();
        let one = Selection::dense(&[rank as u64], &[1]).unwrap();
        assert!(matches!(journal.append("x", &Datatype::U8, &one, &[&[9]]).unwrap(), Append::Logged(_)));
    }
    let program = hyperslab(scene.folder.path()).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell.current_dir(scene.folder.path()).args(["-c", "ulimit -n 64; exec \"$0\" recover logs"]).arg(program);
    let (code, out, err) = said(shell.output().unwrap());
    assert!(code == 0 && out.contains("200 writes"), "{out}{err}");
    let found = content(&scene.path);
    assert!(found[..200].iter().all(|byte| *byte == 9) && found[200] == OLD);
}

#[test]
fn heads_of_strangers_do_no_harm() {
    let _alone = ALONE.lock();
    use hyperslab_journal::{Directory, Header, Id, Journal, Limits};
    let scene = crashed();
    assert_eq!(scene.recover(&[]).0, 0);
    let trace = scene.folder.path().join("trace.jsonl");
    let fifo = scene.folder.path().join("fi\u{1b}[31mfo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let stack = format!("trace(file={})/slow(rate=1B/s)/hdf5", trace.display());
    let leave = |path: &Path| {
        let header = Header::new(Id::random().unwrap(), 0, 1, &stack, path.into()).unwrap();
        let files = std::sync::Arc::new(Directory::open(&scene.logs).unwrap());
        let journal = Journal::create(files, header, Limits::new(1 << 20)).unwrap();
        let one = Selection::dense(&[0], &[1]).unwrap();
        journal.append("x", &Datatype::U8, &one, &[&[9]]).unwrap();
    };
    leave(&scene.path);
    let (code, out, err) = scene.recover(&[]);
    assert!(code == 0 && content(&scene.path)[0] == 9 && !trace.exists(), "{out}{err}");
    leave(&fifo);
    let (code, out, err) = scene.recover(&[]);
    assert!(code == 1 && err.contains("neither a plain file nor a directory"), "{out}{err}");
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}') && out.contains("fi\\u{1b}[31mfo"), "{out}{err}");
}

#[test]
fn directories_of_a_group_are_refused() {
    let _alone = ALONE.lock();
    let scene = crashed();
    let group = rustix::fs::Gid::from_raw(rustix::process::geteuid().as_raw() + 1);
    if rustix::fs::chown(&scene.logs, None, Some(group)).is_err() {
        return; // Only root may.
    }
    fs::set_permissions(&scene.logs, fs::Permissions::from_mode(0o770)).unwrap();
    let (code, _, err) = scene.recover(&[]);
    assert!(code == 2 && err.contains("may exchange its files"), "{err}");
}
