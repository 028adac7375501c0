//! Random programs against a model: whenever the writer stops, a rollback gives the state of the last commit.

use hyperslab_rollback::{Pending, Refusal, Rollback, RollbackOutcome, journal, pending, roll_back};
use proptest::prelude::*;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Step {
    Write { at: u64, bytes: Vec<u8> },
    Length(u64),
    Commit,
}

/// Bytes of one value, so that failures can be read.
fn bytes(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    (length, 1..=255u8).prop_map(|(length, value)| vec![value; length])
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..40_000u64, bytes(1..9_000));
    prop_oneof![
        6 => write.prop_map(|(at, bytes)| Step::Write { at, bytes }),
        2 => (0..50_000u64).prop_map(Step::Length),
        1 => Just(Step::Commit),
    ]
}

/// How the writer ends.
#[derive(Debug, Clone, Copy)]
enum End {
    /// Between two steps.
    After,
    /// With so many thousandths of a last write made.
    Within(u64),
    /// While old bytes of a last write were saved, with so many thousandths of the last record.
    Saving(u64),
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::After), (0..=1000u64).prop_map(End::Within), (0..1000u64).prop_map(End::Saving)]
}

fn open(path: &Path) -> Arc<File> {
    Arc::new(File::options().read(true).write(true).create(true).truncate(false).open(path).expect("open"))
}

fn write(rollback: &Rollback, file: &File, at: u64, bytes: &[u8]) {
    rollback.overwrite(at, bytes.len() as u64, || file.write_all_at(bytes, at)).expect("write");
}

/// The same on bytes in memory.
fn apply(model: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Write { at, bytes } => {
            let end = *at as usize + bytes.len();
            model.resize(model.len().max(end), 0);
            model[*at as usize..end].copy_from_slice(bytes);
        }
        Step::Length(length) => model.resize(*length as usize, 0),
        Step::Commit => {}
    }
}

fn seen(rollback: &Rollback, path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).expect("read");
    bytes.truncate(rollback.length().expect("length") as usize);
    bytes
}

fn run(before: &[u8], steps: &[Step], last: &(u64, Vec<u8>), end: End) {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    std::fs::write(&path, before).expect("before");
    let file = open(&path);
    let rollback = Rollback::begin(file.clone(), &path, false).expect("begin");
    let (mut model, mut committed) = (before.to_vec(), before.to_vec());
    for step in steps {
        match step {
            Step::Write { at, bytes } => write(&rollback, &file, *at, bytes),
            Step::Length(length) => rollback.set_length(*length).expect("length"),
            Step::Commit => {
                rollback.commit().expect("commit");
                committed.clone_from(&model);
            }
        }
        apply(&mut model, step);
        assert!(seen(&rollback, &path) == model, "what the writer sees");
    }
    let (at, bytes) = last;
    let journal = journal::path_of(&path);
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    match end {
        End::After => {}
        End::Within(part) => {
            let made = &bytes[..bytes.len() * part as usize / 1000];
            rollback.overwrite(*at, bytes.len() as u64, || file.write_all_at(made, *at)).expect("last");
        }
        End::Saving(part) => {
            // A shortened file may get zeros before the write, which the cut journal would have to have.
            let shortened = rollback.length().expect("length") < length(&path);
            let was = length(&journal);
            let stopped = rollback.overwrite(*at, bytes.len() as u64, || Err::<(), _>(io::ErrorKind::Other.into()));
            assert!(stopped.is_err() && rollback.is_failed());
            let one_record = length(&journal).saturating_sub(was) < 256 << 10;
            if length(&journal) > was && was > 0 && one_record && !shortened {
                let cut = was + (length(&journal) - was) * part / 1000;
                File::options().write(true).open(&journal).expect("journal").set_len(cut).expect("cut");
            }
        }
    }
    assert!(matches!(pending(&path).expect("pending"), Pending::Live | Pending::Nothing));
    drop((rollback, file));
    let outcome = roll_back(&path, false).expect("roll back");
    assert!(!matches!(outcome, RollbackOutcome::Refused(_)), "{outcome:?}");
    assert!(std::fs::read(&path).expect("read") == committed, "{outcome:?}");
    assert!(!journal.exists());
    assert_eq!(roll_back(&path, false).expect("again"), RollbackOutcome::Nothing);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_rollback_gives_the_last_commit(
        before in bytes(0..30_000),
        steps in prop::collection::vec(step(), 0..12),
        last in (0..40_000u64, bytes(1..9_000)),
        end in end(),
    ) {
        run(&before, &steps, &last, end);
    }
}

/// A file of zeros with some of its bytes overwritten and its writer gone.
fn orphaned(path: &Path) {
    std::fs::write(path, vec![0; 10_000]).expect("before");
    let file = open(path);
    let rollback = Rollback::begin(file.clone(), path, false).expect("begin");
    write(&rollback, &file, 5_000, &[1; 8_000]);
}

fn refusal(path: &Path) -> Refusal {
    match roll_back(path, false).expect("roll back") {
        RollbackOutcome::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_live_writer_is_left_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![0; 10_000]).expect("before");
    let file = open(&path);
    let rollback = Rollback::begin(file.clone(), &path, true).expect("begin");
    write(&rollback, &file, 0, &[1; 10]);
    assert_eq!(pending(&path).expect("pending"), Pending::Live);
    assert_eq!(refusal(&path), Refusal::WriterAlive);
    rollback.finish().expect("finish");
    assert_eq!(pending(&path).expect("pending"), Pending::Nothing);
    assert_eq!(std::fs::read(&path).expect("read")[..11], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn another_file_of_the_name_is_not_touched() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    orphaned(&path);
    std::fs::rename(&path, folder.path().join("moved")).expect("rename");
    std::fs::write(&path, vec![7; 10_000]).expect("another");
    assert_eq!(refusal(&path), Refusal::AnotherFile);
    assert_eq!(std::fs::read(&path).expect("read"), vec![7; 10_000]);
    std::fs::remove_file(&path).expect("remove");
    assert!(matches!(refusal(&path), Refusal::NoFile(_)));
}

#[test]
fn a_file_that_changed_since_is_touched_by_force_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    orphaned(&path);
    let file = open(&path);
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(60)).expect("time");
    assert!(matches!(refusal(&path), Refusal::Changed(_)));
    file.set_len(9_000).expect("shorten");
    assert!(matches!(refusal(&path), Refusal::Changed(_)));
    assert!(matches!(roll_back(&path, true).expect("force"), RollbackOutcome::RolledBack { .. }));
    assert_eq!(std::fs::read(&path).expect("read"), vec![0; 10_000]);
}

#[test]
fn a_change_right_after_the_writer_is_noticed_unless_it_died_within_a_write() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    for settled in [true, false] {
        std::fs::write(&path, vec![0; 10_000]).expect("before");
        let file = open(&path);
        let rollback = Rollback::begin(file.clone(), &path, false).expect("begin");
        write(&rollback, &file, 5_000, &[1; 100]);
        rollback.commit().expect("commit");
        write(&rollback, &file, 6_000, &[2; 100]);
        if settled {
            rollback.settle();
        }
        drop((rollback, file));
        // The clock of file times may stand still for some milliseconds.
        std::thread::sleep(std::time::Duration::from_millis(20));
        open(&path).write_all_at(&[3; 100], 7_000).expect("change");
        if settled {
            assert!(matches!(refusal(&path), Refusal::Changed(_)));
        }
        assert!(matches!(roll_back(&path, settled).expect("roll back"), RollbackOutcome::RolledBack { .. }));
    }
}

#[test]
fn a_file_that_is_as_its_writer_left_it_is_rolled_back_however_late() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![0; 10_000]).expect("before");
    let file = open(&path);
    let rollback = Rollback::begin(file.clone(), &path, false).expect("begin");
    write(&rollback, &file, 5_000, &[1; 100]);
    rollback.settle();
    drop((rollback, file));
    let journal = File::options().write(true).open(journal::path_of(&path)).expect("journal");
    journal.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("time");
    drop(journal);
    assert!(matches!(roll_back(&path, false).expect("roll back"), RollbackOutcome::RolledBack { .. }));
    assert_eq!(std::fs::read(&path).expect("read"), vec![0; 10_000]);
}

#[test]
fn a_file_in_use_is_not_touched() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    orphaned(&path);
    let reader = File::open(&path).expect("open");
    reader.lock_shared().expect("lock");
    assert_eq!(refusal(&path), Refusal::InUse);
    drop(reader);
    assert!(matches!(roll_back(&path, false).expect("roll back"), RollbackOutcome::RolledBack { .. }));
}

#[test]
fn damage_inside_the_journal_is_told() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![0; 100_000]).expect("before");
    let file = open(&path);
    let rollback = Rollback::begin(file.clone(), &path, false).expect("begin");
    write(&rollback, &file, 0, &[1; 10]);
    write(&rollback, &file, 50_000, &[1; 10]);
    drop((rollback, file));
    let journal = journal::path_of(&path);
    let mut bytes = std::fs::read(&journal).expect("journal");
    bytes[200] ^= 1;
    std::fs::write(&journal, bytes).expect("damage");
    assert!(matches!(refusal(&path), Refusal::Damaged(_)));
}

#[test]
fn a_folder_that_cannot_be_written_means_no_journal() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![0; 100]).expect("before");
    std::fs::create_dir(journal::path_of(&path)).expect("in the way");
    let file = open(&path);
    let rollback = Rollback::begin(file.clone(), &path, false).expect("begin");
    write(&rollback, &file, 0, &[1; 10]);
    assert!(rollback.take_missing().is_some());
    rollback.finish().expect("finish");
}

#[test]
fn what_is_meant_to_stay_stays() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![0; 100_000]).expect("before");
    let file = open(&path);
    let rollback = Rollback::begin(file.clone(), &path, false).expect("begin");
    write(&rollback, &file, 0, &[1; 10]);
    // In a page that is saved, in one that is not, and across both.
    for at in [100u64, 50_000, 4_090] {
        rollback.overwrite_for_good(at, 20, || file.write_all_at(&[2; 20], at)).expect("for good");
    }
    write(&rollback, &file, 49_000, &[3; 500]);
    drop((rollback, file));
    assert!(matches!(roll_back(&path, false).expect("roll back"), RollbackOutcome::RolledBack { .. }));
    let mut expected = vec![0; 100_000];
    for at in [100, 50_000, 4_090] {
        expected[at..at + 20].fill(2);
    }
    assert!(std::fs::read(&path).expect("read") == expected);
}

#[test]
fn a_commit_empties_the_journal_and_bulk_overwrites_give_room_back() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("file");
    std::fs::write(&path, vec![0; 5 << 20]).expect("before");
    let file = open(&path);
    let rollback = Rollback::begin(file.clone(), &path, false).expect("begin");
    write(&rollback, &file, 0, &vec![1; 5 << 20]);
    write(&rollback, &file, 0, &vec![2; 5 << 20]);
    assert_eq!(rollback.take_saved_bytes(), 5 << 20);
    rollback.commit().expect("commit");
    let length = std::fs::metadata(journal::path_of(&path)).expect("journal").len();
    assert_eq!(length, journal::RECORDS);
    write(&rollback, &file, 5 << 20, &vec![3; 5 << 20]);
    assert_eq!(rollback.take_saved_bytes(), 0, "new data cost nothing");
}
