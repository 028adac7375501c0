//! Workloads that change files that are there: whose seed counts, and that every run starts from the same state.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, MIXED_SEEDS, SEED_ATTRIBUTE, Step, StepSource, Update, WORKLOAD_VERSION,
    Workload,
};
use hyperslab_core::{
    ArraySpec, Attribute, Datatype, ErrorKind, Fill, Format, OpenMode, Result, Selection, StackElement, TransferMode,
};
use hyperslab_run::{Cache, Case, Outcome, Progress, Verified, run_case};
use std::path::Path;
use std::sync::Arc;

const ROW: u64 = 16;
const ROWS: u64 = 6;

fn formats() -> Vec<Arc<dyn Format>> {
    ["posix", "hdf5", "zarr"].map(|name| hyperslab_formats::build(&StackElement::plain(name)).unwrap()).into()
}

#[derive(Debug)]
struct Fixed(Vec<Step>);

impl StepSource for Fixed {
    fn steps(&self, _: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
        Ok(Box::new(self.0.iter().cloned().map(Ok)))
    }
}

fn workload(seed: u64, file: FileDeclaration, steps: Vec<Step>) -> Workload {
    let ranks = if file.per_rank { 3 } else { 1 };
    let mut spec = ArraySpec::new(Datatype::F64, &[ROWS, ROW]);
    spec.max_shape = Some(vec![None, Some(ROW)]);
    let header = Header {
        version: WORKLOAD_VERSION,
        recorded: None,
        name: "updates".into(),
        about: String::new(),
        ranks,
        seed,
        files: vec![file],
        arrays: vec![ArrayDeclaration { spec, fill: Fill::Random }],
    };
    Workload::new(header, Arc::new(Fixed(steps))).unwrap()
}

fn rows(first: u64, count: u64) -> Selection {
    Selection::dense(&[first, 0], &[count, ROW]).unwrap()
}

fn write(first: u64, count: u64) -> Step {
    Step::Write { slot: 0, selection: rows(first, count), memory: Arc::default(), transfer: TransferMode::Independent }
}

fn read(first: u64, count: u64) -> Step {
    Step::Read { slot: 0, selection: rows(first, count), memory: Arc::default(), transfer: TransferMode::Independent }
}

fn open(how: OpenMode) -> [Step; 2] {
    [Step::OpenFile { file: 0, how }, Step::Open { slot: 0, file: 0, array: 0, name: "a".into() }]
}

fn seed_becomes(value: i64) -> Step {
    let value = Attribute::integer(value);
    Step::Attribute { file: 0, object: "".into(), name: SEED_ATTRIBUTE.into(), value }
}

fn close() -> [Step; 2] {
    [Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }]
}

fn writing(seed: u64) -> Workload {
    writing_to(FileDeclaration::created("f"), seed)
}

fn writing_to(file: FileDeclaration, seed: u64) -> Workload {
    let mut steps = vec![
        Step::OpenFile { file: 0, how: OpenMode::Create },
        seed_becomes(seed as i64),
        Step::Create { slot: 0, file: 0, array: 0, name: "a".into() },
        write(0, ROWS),
    ];
    steps.extend(close());
    workload(seed, file, steps)
}

fn overwriting(seed: u64) -> Workload {
    let mut steps = open(OpenMode::Update).to_vec();
    steps.extend([write(1, 2), seed_becomes(MIXED_SEEDS)]);
    steps.extend(close());
    workload(seed, FileDeclaration::updated("f", Update::Overwrite), steps)
}

/// Two rows more; `then` are further steps before closing.
fn extending(seed: u64, then: &[Step]) -> Workload {
    extending_to(FileDeclaration::updated("f", Update::Extend), seed, then)
}

fn extending_to(file: FileDeclaration, seed: u64, then: &[Step]) -> Workload {
    let mut steps = open(OpenMode::Update).to_vec();
    steps.extend([Step::Resize { slot: 0, shape: [ROWS + 2, ROW].as_slice().into() }, write(ROWS, 2)]);
    steps.extend_from_slice(then);
    steps.extend(close());
    workload(seed, file, steps)
}

fn reading(count: u64) -> Workload {
    let mut steps = open(OpenMode::Read).to_vec();
    steps.push(read(0, count));
    steps.extend(close());
    workload(77, FileDeclaration::read("f"), steps)
}

fn run(workload: &Workload, format: &Arc<dyn Format>, directory: &Path, warm_up: usize, repeat: usize) -> Outcome {
    run_until(workload, format, directory, warm_up, repeat, &Progress::default())
}

fn run_until(
    workload: &Workload,
    format: &Arc<dyn Format>,
    directory: &Path,
    warm_up: usize,
    repeat: usize,
    progress: &Progress,
) -> Outcome {
    // Updated files are dropped from the page cache like files to read.
    let cache = if warm_up > 0 { Cache::Cold } else { Cache::Warm };
    run_case(&Case {
        repeat,
        warm_up,
        cache,
        verify: true,
        samples: Some(directory.join("s")),
        ..Case::new(workload, format.clone(), directory, progress)
    })
}

#[track_caller]
fn good(outcome: Outcome, repetitions: usize, verified: Verified) -> Vec<String> {
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!((outcome.repetitions.len(), outcome.verified), (repetitions, verified));
    outcome.warnings
}

/// The seed a container carries.
fn seed_of(format: &Arc<dyn Format>, directory: &Path) -> i64 {
    let container = format.open(&directory.join("f"), OpenMode::Read, &Solo::shared()).unwrap();
    let attribute = container.attribute("", SEED_ATTRIBUTE).unwrap();
    container.close().unwrap();
    i64::from_ne_bytes(attribute.data.try_into().unwrap())
}

fn no_copy_is_left(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with('.'), "{name} was left behind");
    }
}

#[test]
fn appended_rows_continue_the_file_and_every_run_starts_from_the_same_state() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        good(run(&writing(5), &format, here, 0, 1), 1, Verified::Yes);
        // The seed of the workload is another one: the file's own is what counts.
        good(run(&extending(8, &[read(0, ROWS + 2)]), &format, here, 1, 3), 3, Verified::Yes);
        no_copy_is_left(here);
        let found = (1..=3).filter(|n| here.join(format!("s-repetition-{n}-rank-0.csv")).exists()).count();
        assert_eq!(found, 3, "only repetitions are sampled");
        assert_eq!(std::fs::read_dir(here).unwrap().count(), 4);
        good(run(&reading(ROWS + 2), &format, here, 1, 1), 1, Verified::Yes);

        let error = run(&extending(8, &[]), &format, here, 0, 1).failure.unwrap();
        let text = error.to_string();
        assert!(text.contains("8x16") && text.contains("appended to before") && text.contains("anew"), "{text}");
    }
}

#[test]
fn a_partly_overwritten_file_can_no_longer_be_checked_as_a_whole() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        good(run(&writing(5), &format, here, 0, 1), 1, Verified::Yes);
        let warnings = good(run(&overwriting(6), &format, here, 1, 2), 2, Verified::Yes);
        assert!(!warnings.iter().any(|w| w.contains("overwrite")), "{warnings:?}");
        no_copy_is_left(here);
        assert_eq!(seed_of(&format, here), MIXED_SEEDS);
        let warnings = good(run(&reading(ROWS), &format, here, 0, 1), 1, Verified::Impossible);
        assert!(warnings.iter().any(|w| w.contains("parts of the file were overwritten")), "{warnings:?}");
        // What is added to it can be checked nevertheless.
        good(run(&extending(8, &[]), &format, here, 0, 1), 1, Verified::Yes);
    }
}

#[test]
fn overwriting_with_the_same_data_is_warned_about() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        good(run(&writing(5), &format, directory.path(), 0, 1), 1, Verified::Yes);
        let warnings = good(run(&overwriting(5), &format, directory.path(), 0, 2), 2, Verified::Yes);
        assert!(warnings.iter().any(|w| w.contains("lost overwrite")), "{warnings:?}");
    }
}

#[test]
fn a_failed_run_puts_the_file_back() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        good(run(&writing(5), &format, here, 0, 1), 1, Verified::Yes);
        let outside = [seed_becomes(9), read(1000, 1)];
        let outcome = run(&extending(5, &outside), &format, here, 0, 2);
        assert_eq!(outcome.failure.unwrap().kind(), ErrorKind::InvalidInput);
        assert_eq!((outcome.verified, outcome.repetitions.len()), (Verified::No, 0));
        no_copy_is_left(here);
        assert_eq!(seed_of(&format, here), 5);
        good(run(&extending(5, &[]), &format, here, 0, 2), 2, Verified::Yes);

        let outcome = run(&overwriting(5), &format, &here.join("elsewhere"), 0, 2);
        let error = outcome.failure.unwrap();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("put a write benchmark"), "{error}");
    }
}

#[test]
fn without_a_copy_a_failed_change_is_said_to_be_one() {
    let format = formats().remove(0);
    let directory = tempfile::tempdir().unwrap();
    good(run(&writing(5), &format, directory.path(), 0, 1), 1, Verified::Yes);
    let outcome = run(&extending(5, &[read(1000, 1)]), &format, directory.path(), 0, 1);
    assert!(outcome.failure.is_some());
    assert!(outcome.warnings.iter().any(|w| w.contains("changed in part")), "{:?}", outcome.warnings);
}

#[test]
fn a_file_is_only_changed_if_declared_so() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        good(run(&writing(5), &format, directory.path(), 0, 1), 1, Verified::Yes);
        let mut steps = open(OpenMode::Update).to_vec();
        steps.extend(close());
        let undeclared = workload(5, FileDeclaration::read("f"), steps);
        let error = run(&undeclared, &format, directory.path(), 0, 1).failure.unwrap();
        assert!(error.to_string().contains("not declared"), "{error}");
    }
}

#[test]
fn a_format_that_keeps_nothing_can_be_changed_again_and_again() {
    let null = hyperslab_formats::build(&StackElement::plain("null")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    good(run(&writing(5), &null, directory.path(), 0, 1), 1, Verified::Impossible);
    good(run(&extending(5, &[]), &null, directory.path(), 1, 2), 2, Verified::Impossible);
    null.remove(&directory.path().join("f")).unwrap();
}

#[test]
fn files_of_the_warm_up_may_be_replaced_by_the_repetitions() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        let outcome = run(&writing(5), &format, directory.path(), 2, 2);
        assert_eq!(outcome.operations["write"].count, 2, "calls of the warm-up do not count");
        assert_eq!(outcome.operations["close_file"].count, 2);
        good(outcome, 2, Verified::Yes);
    }
}

#[test]
fn a_stopped_run_puts_the_file_back() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        good(run(&writing(5), &format, here, 0, 1), 1, Verified::Yes);
        let slow = extending(5, &[Step::Compute { nanoseconds: 60_000_000_000 }]);
        let progress = Progress::default();
        let outcome = std::thread::scope(|scope| {
            let running = scope.spawn(|| run_until(&slow, &format, here, 1, 1, &progress));
            while progress.bytes() == 0 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            progress.request_stop();
            running.join().unwrap()
        });
        assert_eq!(outcome.failure.unwrap().kind(), ErrorKind::Interrupted);
        no_copy_is_left(here);
        good(run(&extending(5, &[]), &format, here, 0, 1), 1, Verified::Yes);
    }
}

#[test]
fn every_rank_may_have_a_file_of_its_own() {
    for format in formats() {
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path();
        let write = writing_to(FileDeclaration::created("f").per_rank(true), 5);
        good(run(&write, &format, here, 0, 1), 1, Verified::Yes);
        let file = FileDeclaration::updated("f", Update::Extend).per_rank(true);
        good(run(&extending_to(file, 6, &[read(0, ROWS + 2)]), &format, here, 1, 2), 2, Verified::Yes);
        no_copy_is_left(here);
        // One that is not as the others is noticed before anything is measured.
        format.remove(&here.join("rank_1_f")).unwrap();
        let file = FileDeclaration::updated("f", Update::Overwrite).per_rank(true);
        let error = run(&extending_to(file, 6, &[]), &format, here, 0, 2).failure.unwrap();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        no_copy_is_left(here);
    }
}

#[test]
fn too_short_an_array_is_not_appended_to() {
    let format = formats().remove(0);
    let directory = tempfile::tempdir().unwrap();
    let mut steps = vec![
        Step::OpenFile { file: 0, how: OpenMode::Create },
        Step::Create { slot: 0, file: 0, array: 0, name: "a".into() },
        Step::Resize { slot: 0, shape: [2, ROW].as_slice().into() },
    ];
    steps.extend(close());
    let short = workload(5, FileDeclaration::created("f"), steps);
    good(run(&short, &format, directory.path(), 0, 1), 1, Verified::Yes);
    let progress = Progress::default();
    let append = extending(5, &[]);
    let outcome = run_case(&Case { repeat: 2, ..Case::new(&append, format, directory.path(), &progress) });
    let error = outcome.failure.unwrap();
    assert!(error.to_string().contains("2x16") && error.to_string().contains("other extents"), "{error}");
}
