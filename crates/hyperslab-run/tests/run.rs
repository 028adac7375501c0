//! Workloads run for real: every pattern, any number of ranks, and what happens when things go wrong.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, JsonLines, Step, StepSource, WORKLOAD_VERSION, Workload,
    write_json_lines,
};
use hyperslab_core::{
    ArraySpec, CacheState, Datatype, Dims, ErrorKind, Fill, Format, MemoryLayout, OpenMode, Result, Selection,
    TransferMode,
};
use hyperslab_kernels::{FilePattern, MemoryPattern, ParticleSubset, Particles};
use hyperslab_run::{Case, Outcome, Progress, Verified, run_case};
use hyperslab_testkit::Memory;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

fn particles(ranks: usize) -> Particles {
    Particles { time_steps: 2, seed: 9, ..Particles::new("p.raw", ranks, &[24]) }
}

fn posix() -> Arc<dyn Format> {
    hyperslab_formats::build(&hyperslab_core::StackElement::plain("posix")).unwrap()
}

fn run(workload: &Workload, format: &Arc<dyn Format>, directory: &Path, cache: CacheState) -> Outcome {
    let progress = Progress::default();
    run_case(&Case { repeat: 2, cache, verify: true, ..Case::new(workload, format.clone(), directory, &progress) })
}

fn good(outcome: Outcome, bytes: u64) {
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.verified, Verified::Yes);
    for repetition in &outcome.repetitions {
        assert_eq!(repetition.bytes(), bytes);
    }
}

#[test]
fn every_pattern_on_any_number_of_ranks_is_written_read_and_verified() {
    use {FilePattern as F, MemoryPattern as M};
    for format in [Arc::new(Memory) as Arc<dyn Format>, posix()] {
        for ranks in [1, 2, 3, 8] {
            for extent in [&[24][..], &[6, 5], &[3, 4, 2]] {
                for (memory, pattern) in [
                    (M::Contiguous, F::Contiguous),
                    (M::Contiguous, F::Interleaved),
                    (M::Interleaved, F::Contiguous),
                    (M::Interleaved, F::Interleaved),
                ] {
                    for file_per_rank in [false, true] {
                        let directory = tempfile::tempdir().unwrap();
                        let delayed_close = (ranks % 3) as u64;
                        let extent = Dims::from_slice(extent);
                        let p = Particles { extent, memory, pattern, file_per_rank, delayed_close, ..particles(ranks) };
                        let bytes = p.total_bytes().unwrap();
                        good(run(&p.write().unwrap(), &format, directory.path(), CacheState::Warm), bytes);
                        let cache = if ranks == 2 { CacheState::Cold } else { CacheState::Warm };
                        good(run(&p.read().unwrap(), &format, directory.path(), cache), bytes);
                        for rank in 0..ranks {
                            // The memory format outlives the directory.
                            let name = if file_per_rank { format!("rank_{rank}_p.raw") } else { "p.raw".into() };
                            let _ = format.remove(&directory.path().join(name));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_partial_read_reads_so_much() {
    let directory = tempfile::tempdir().unwrap();
    let p = particles(3);
    good(run(&p.write().unwrap(), &posix(), directory.path(), CacheState::Warm), p.total_bytes().unwrap());
    let partial = Particles { part: ParticleSubset::First(5), ..p.clone() }.read().unwrap();
    good(run(&partial, &posix(), directory.path(), CacheState::Warm), 3 * 5 * 32 * 2);
}

#[test]
fn one_wrong_byte_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let p = particles(2);
    let path = directory.path().join("p.raw");
    good(run(&p.write().unwrap(), &posix(), directory.path(), CacheState::Warm), p.total_bytes().unwrap());
    let data = |f: &PathBuf| f.ends_with("Timestep_1/py.raw");
    let file = posix().files(&path).unwrap().into_iter().find(data).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 4;
    std::fs::write(&file, bytes).unwrap();
    let outcome = run(&p.read().unwrap(), &posix(), directory.path(), CacheState::Warm);
    let error = outcome.failure.unwrap();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
    assert_eq!(outcome.verified, Verified::No);
    let text = error.to_string();
    assert!(text.contains("Timestep_1/py") && text.contains("[25]") && text.contains("rank 1"), "{text}");
}

#[test]
fn an_existing_file_is_refused_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("p.raw");
    std::fs::write(&path, "precious").unwrap();
    let outcome = run(&particles(2).write().unwrap(), &posix(), directory.path(), CacheState::Warm);
    assert_eq!(outcome.failure.unwrap().kind(), ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

#[test]
fn reading_with_other_ranks_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let p = particles(2);
    good(run(&p.write().unwrap(), &posix(), directory.path(), CacheState::Warm), p.total_bytes().unwrap());
    let three = Particles { ranks: 3, ..p.clone() }.read().unwrap();
    let error = run(&three, &posix(), directory.path(), CacheState::Warm).failure.unwrap();
    assert!(error.to_string().contains("as many ranks"), "{error}");
    let fewer = Particles { ranks: 1, ..p }.read().unwrap();
    good(run(&fewer, &posix(), directory.path(), CacheState::Warm), 24 * 32 * 2);
}

#[test]
fn reading_what_is_not_there_or_not_ours_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let p = particles(1);
    let read = p.read().unwrap();
    let error = run(&read, &posix(), directory.path(), CacheState::Warm).failure.unwrap();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let container = posix().open(&directory.path().join("p.raw"), OpenMode::Create, &Solo::shared()).unwrap();
    container.close().unwrap();
    let error = run(&read, &posix(), directory.path(), CacheState::Warm).failure.unwrap();
    assert!(error.to_string().contains("not written by hyperslab"), "{error}");
}

#[test]
fn a_file_is_checked_with_the_seed_it_was_written_with() {
    let directory = tempfile::tempdir().unwrap();
    let p = particles(2);
    let other = Particles { seed: 10, ..p.clone() };
    let bytes = p.total_bytes().unwrap();
    good(run(&other.write().unwrap(), &posix(), directory.path(), CacheState::Warm), bytes);
    good(run(&p.read().unwrap(), &posix(), directory.path(), CacheState::Warm), bytes);
}

#[test]
fn a_stopped_run_leaves_no_partial_file() {
    let directory = tempfile::tempdir().unwrap();
    let p = Particles { compute: Duration::from_secs(60), time_steps: 3, ..particles(2) };
    let workload = p.write().unwrap();
    let progress = Progress::default();
    let outcome = std::thread::scope(|scope| {
        let running = scope.spawn(|| run_case(&Case::new(&workload, posix(), directory.path(), &progress)));
        while progress.bytes() == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        progress.request_stop();
        running.join().unwrap()
    });
    assert_eq!(outcome.failure.unwrap().kind(), ErrorKind::Interrupted);
    assert!(!directory.path().join("p.raw").exists());
}

#[test]
fn every_call_is_sampled_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let progress = Progress::default();
    let workload = particles(2).write().unwrap();
    let outcome = run_case(&Case {
        samples: Some(directory.path().join("s")),
        ..Case::new(&workload, posix(), directory.path(), &progress)
    });
    assert!(outcome.failure.is_none(), "{:?}", outcome.failure);
    assert_eq!(outcome.verified, Verified::NotAsked);
    for rank in 0..2 {
        let text = std::fs::read_to_string(directory.path().join(format!("s-repetition-1-rank-{rank}.csv"))).unwrap();
        let writes: u64 = text
            .lines()
            .filter(|l| l.contains(",write,"))
            .map(|l| l.rsplit(',').next().unwrap().parse::<u64>().unwrap())
            .sum();
        assert_eq!(writes, 24 * 32 * 2);
        let measured = &outcome.repetitions[0].ranks[rank];
        assert_eq!(measured.operations["write"].count, 16);
        for (name, l) in &measured.operations {
            let rising = [l.min, l.p50, l.p90, l.p99, l.max];
            assert!(rising.windows(2).all(|w| w[0] <= w[1]), "{name}: {l:?}");
            assert!(l.max <= l.total * 1.002 && l.total <= l.max * l.count as f64 * 1.002, "{name}: {l:?}");
        }
        assert!(measured.raw <= measured.observed && measured.observed <= measured.wall);
    }
}

#[test]
fn a_written_workload_runs_like_the_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let p = Particles { extent: [4, 3].as_slice().into(), ..particles(2) };
    let mut text = Vec::new();
    write_json_lines(&p.write().unwrap(), &mut text).unwrap();
    let text: Arc<[u8]> = text.into();
    let again = JsonLines::workload(Box::new(move || Ok(Box::new(std::io::Cursor::new(text.clone()))))).unwrap();
    good(run(&again, &posix(), directory.path(), CacheState::Warm), p.total_bytes().unwrap());
    good(run(&p.read().unwrap(), &posix(), directory.path(), CacheState::Warm), p.total_bytes().unwrap());
}

#[derive(Debug)]
struct Fixed(Vec<Step>);

impl StepSource for Fixed {
    fn steps(&self, _: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
        Ok(Box::new(self.0.iter().cloned().map(Ok)))
    }
}

#[test]
fn steps_that_make_no_sense_are_errors() {
    let open = Step::OpenFile { file: 0, how: OpenMode::Create };
    let create = |slot| Step::Create { slot, file: 0, array: 0, name: "a".into() };
    let write =
        |slot, selection| Step::Write { slot, selection, memory: Arc::default(), transfer: TransferMode::Independent };
    let all = Selection::all(&[4]).unwrap();
    let odd_memory = Step::Write {
        slot: 0,
        selection: all.clone(),
        memory: Arc::new(MemoryLayout::strided(&[9], Selection::dense(&[0], &[3]).unwrap())),
        transfer: TransferMode::Independent,
    };
    let cases = [
        vec![open.clone()],
        vec![open.clone(), open.clone()],
        vec![Step::OpenFile { file: 7, how: OpenMode::Create }],
        vec![Step::OpenFile { file: 1, how: OpenMode::Create }],
        vec![create(0)],
        vec![open.clone(), create(u32::MAX)],
        vec![open.clone(), create(0), Step::Create { slot: 0, file: 0, array: 0, name: "b".into() }],
        vec![open.clone(), Step::Create { slot: 0, file: 0, array: 9, name: "a".into() }],
        vec![open.clone(), write(3, all.clone())],
        vec![open.clone(), create(0), write(0, Selection::all(&[5]).unwrap())],
        vec![open.clone(), create(0), write(0, Selection::all(&[2, 2]).unwrap())],
        vec![open.clone(), create(0), odd_memory],
        vec![open.clone(), Step::CloseArray { slot: 0 }],
        vec![Step::CloseFile { file: 0 }],
    ];
    for steps in cases {
        let directory = tempfile::tempdir().unwrap();
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: "odd".into(),
            about: String::new(),
            ranks: 1,
            seed: 0,
            files: vec![FileDeclaration::created("f")],
            arrays: vec![ArrayDeclaration { spec: ArraySpec::new(Datatype::F32, &[4]), fill: Fill::Random }],
        };
        let workload = Workload::new(header, Arc::new(Fixed(steps.clone()))).unwrap();
        let outcome = run(&workload, &posix(), directory.path(), CacheState::Warm);
        let error = outcome.failure.unwrap_or_else(|| panic!("no error for {steps:?}"));
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
}
