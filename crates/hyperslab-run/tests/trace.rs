//! What the layer `trace` records is what was done.
#![allow(clippy::unwrap_used)]

use hyperslab_comm::{Solo, Threads};
use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, JsonLines, Step, StepSource, Steps, WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{
    ArraySpec, Attribute, Datatype, Dims, Durability, Fill, Format, MemoryLayout, MemoryView, OpenMode, Result,
    Selection, Stack, TransferMode,
};
use hyperslab_run::{Progress, RunContext, run_rank};
use hyperslab_testkit::Memory;
use std::collections::BTreeMap;
use std::fs;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug)]
struct Fixed(Vec<Vec<Step>>);

impl StepSource for Fixed {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        Ok(Box::new(self.0[rank].iter().cloned().map(Ok)))
    }
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn header(ranks: usize, how: OpenMode) -> Header {
    let mut growing = ArraySpec::new(Datatype::F64, &[3, 5]);
    growing.max_shape = Some(vec![None, Some(5)]);
    let compound = Datatype::packed_compound([("a", Datatype::I32), ("b", Datatype::F64)]).unwrap();
    let specs = [ArraySpec::new(Datatype::F32, &[12, 8]), growing, ArraySpec::new(compound, &[20])];
    let file = if how == OpenMode::Read { FileDeclaration::read("c") } else { FileDeclaration::created("c") };
    Header {
        version: WORKLOAD_VERSION,
        name: "random".into(),
        about: String::new(),
        ranks,
        seed: 3,
        recorded: None,
        files: vec![file],
        arrays: specs.into_iter().map(|spec| ArrayDeclaration { spec, fill: Fill::Random }).collect(),
    }
}

/// A part of an array of this shape, perhaps with holes, perhaps nothing.
fn part(random: &mut Random, shape: &[u64]) -> Selection {
    if random.below(8) == 0 {
        return Selection::empty(shape.len());
    }
    let mut dims = [Dims::new(), Dims::new(), Dims::new()];
    for &extent in shape {
        let stride = 1 + random.below(3.min(extent));
        let start = random.below(extent);
        dims[0].push(start);
        dims[1].push(stride);
        dims[2].push(1 + random.below((extent - start).div_ceil(stride)));
    }
    Selection::strided(&dims[0], &dims[1], &dims[2], &vec![1; shape.len()]).unwrap()
}

fn memory(random: &mut Random, selection: &Selection, kind: usize) -> Arc<MemoryLayout> {
    Arc::new(match random.below(4) {
        0 if kind == 0 => MemoryLayout::member(12, 4),
        1 if kind == 2 => MemoryLayout::fields(32, [("b", 8), ("a", 0)]),
        2 if !selection.is_empty() => {
            let count = selection.len();
            MemoryLayout::strided(&[count + 3], Selection::dense(&[2], &[count]).unwrap())
        }
        _ => MemoryLayout::packed(),
    })
}

/// Steps of all ranks: what is collective is drawn once, what is not for each rank.
fn random_workload(seed: u64, ranks: usize, resize: bool) -> Workload {
    let (mut random, file) = (Random(seed), 0);
    let header = header(ranks, OpenMode::Create);
    let mut steps = vec![vec![Step::OpenFile { file, how: OpenMode::Truncate }]; ranks];
    let mut open: BTreeMap<u32, (usize, Dims)> = BTreeMap::new();
    let all = |steps: &mut Vec<Vec<Step>>, step: Step| steps.iter_mut().for_each(|own| own.push(step.clone()));
    for number in 0..25 {
        let slot = open.keys().copied().nth(random.below(open.len().max(1) as u64) as usize);
        match (random.below(9), slot) {
            (0, _) => all(&mut steps, Step::Group { file, name: format!("g{number}").into() }),
            (1, _) => {
                let (object, name, value) = ("".into(), format!("n{number}").into(), Attribute::float(0.5));
                all(&mut steps, Step::Attribute { file, object, name, value });
            }
            (2, _) => all(&mut steps, Step::Flush { file, how: Durability::Visible }),
            (3, Some(slot)) if resize && open[&slot].0 == 1 => {
                let shape: Dims = [open[&slot].1[0] + 1 + random.below(3), 5].as_slice().into();
                all(&mut steps, Step::Resize { slot, shape: shape.clone() });
                open.insert(slot, (1, shape));
            }
            (4, Some(slot)) => {
                all(&mut steps, Step::CloseArray { slot });
                open.remove(&slot);
            }
            (5.., Some(slot)) => {
                let (kind, shape) = &open[&slot];
                let transfer = if random.below(2) == 0 { TransferMode::Collective } else { TransferMode::Independent };
                let write = random.below(3) > 0;
                for own in &mut steps {
                    let selection = part(&mut random, shape);
                    let memory = memory(&mut random, &selection, *kind);
                    own.push(match write {
                        true => Step::Write { slot, selection, memory, transfer },
                        false => Step::Read { slot, selection, memory, transfer },
                    });
                }
            }
            _ => {
                let kind = random.below(if resize { 3 } else { 1 }) as usize;
                let slot = (0..).find(|slot| !open.contains_key(slot)).unwrap();
                let name = format!("a{number}").into();
                all(&mut steps, Step::Create { slot, file, array: kind as u32, name });
                open.insert(slot, (kind, header.arrays[kind].spec.shape.clone()));
            }
        }
    }
    for slot in open.into_keys() {
        all(&mut steps, Step::CloseArray { slot });
    }
    all(&mut steps, Step::CloseFile { file });
    Workload::new(header, Arc::new(Fixed(steps))).unwrap()
}

fn stack(text: &str) -> Arc<dyn Format> {
    let stack: Stack = text.parse().unwrap();
    let bottom: Arc<dyn Format> = match stack.format.name.as_str() {
        "memory" => Arc::new(Memory),
        _ => hyperslab_formats::build(&stack.format).unwrap(),
    };
    hyperslab_layers::build(&stack, bottom).unwrap()
}

fn play(workload: &Workload, format: &dyn Format, directory: &Path) -> Vec<Vec<String>> {
    let progress = Progress::default();
    let context =
        RunContext { workload, format, directory, verify: false, durable: false, samples: None, progress: &progress };
    let runs = Threads::run(workload.header.ranks, |comm| run_rank(&context, &comm)).unwrap();
    runs.into_iter().map(|run| run.remarks).collect()
}

fn read(path: PathBuf) -> Workload {
    JsonLines::workload(Box::new(move || Ok(Box::new(BufReader::new(fs::File::open(&path)?))))).unwrap()
}

/// Steps with what they refer to instead of numbers, without those that a layer does not see.
fn plain(workload: &Workload, rank: usize) -> Vec<(Option<ArraySpec>, Step)> {
    let steps = workload.steps(rank).unwrap().map(Result::unwrap);
    let seen = steps.filter(|step| !matches!(step, Step::Compute { .. } | Step::Barrier | Step::Epoch { .. }));
    seen.map(|mut step| match &mut step {
        Step::Create { array, .. } | Step::Open { array, .. } => {
            let spec = workload.header.arrays[std::mem::take(array) as usize].spec.clone();
            (Some(spec), step)
        }
        _ => (None, step),
    })
    .collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn random_workloads_are_recorded_as_they_are() {
    for text in ["trace/memory", "trace(gap=1s)/posix", "trace/async/memory"] {
        for seed in 0..40 {
            let format = stack(text);
            let directory = tempfile::tempdir().unwrap();
            let ranks = 1 + seed as usize % 3;
            let before = random_workload(seed, ranks, format.caps().data.resize);
            let remarks = play(&before, &*format, directory.path());
            let after = read(directory.path().join("c.trace.jsonl"));
            assert!(remarks.iter().flatten().all(|remark| !remark.contains("trac")), "{remarks:?}");
            assert_eq!(after.header.files, before.header.files);
            for rank in 0..ranks {
                assert_eq!(plain(&after, rank), plain(&before, rank), "{text} {seed}, rank {rank}");
                let mut steps = after.timed_steps(rank).unwrap().map(Result::unwrap);
                assert!(steps.any(|(_, took)| took.is_some()));
            }
            let summary = after.validate().unwrap();
            assert!(summary.took.is_some() && summary.inputs.is_empty());
            let left = names(directory.path());
            assert!(left.iter().all(|name| name == "c" || name == "c.trace.jsonl"), "{left:?}");
        }
    }
}

#[test]
fn later_openings_get_numbers_and_new_containers_old_names() {
    let directory = tempfile::tempdir().unwrap();
    let format = stack("trace/posix");
    let write = random_workload(1, 2, false);
    play(&write, &*format, directory.path());
    let look = vec![Step::OpenFile { file: 0, how: OpenMode::Read }, Step::CloseFile { file: 0 }];
    let look = Workload::new(header(2, OpenMode::Read), Arc::new(Fixed(vec![look.clone(), look]))).unwrap();
    play(&look, &*format, directory.path());
    assert_eq!(names(directory.path()), ["c", "c.trace.2.jsonl", "c.trace.jsonl"]);
    play(&write, &*format, directory.path());
    assert_eq!(names(directory.path()), ["c", "c.trace.2.jsonl", "c.trace.jsonl"]);
    let second = read(directory.path().join("c.trace.2.jsonl"));
    assert_eq!(plain(&second, 1), plain(&look, 1));
}

#[test]
fn a_run_that_ends_early_leaves_what_it_did() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("c.trace.jsonl");
    let format = stack("trace/posix");
    let done = Threads::run(2, |comm| {
        let container = format.open(&directory.path().join("c"), OpenMode::Create, &comm)?;
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[8]))?;
        for at in 0..(2 + comm.rank() as u64) {
            let one = Selection::dense(&[at], &[1])?;
            array.write(&one, MemoryView::packed(&[7]), TransferMode::Independent)?;
        }
        assert!(hyperslab_layers::trace_parts(&trace).is_none_or(|parts| parts.merge().is_err()), "under way");
        comm.barrier()
    });
    done.unwrap();
    let parts = hyperslab_layers::trace_parts(&trace).unwrap();
    // What was being written when the run was killed.
    let part = directory.path().join("c.trace.jsonl.rank-1.part");
    let mut text = fs::read(&part).unwrap();
    text.extend(b"{\"rank\":1,\"do\":\"wri");
    fs::write(&part, text).unwrap();
    let away = directory.path().join("away");
    fs::rename(&part, &away).unwrap();
    assert!(parts.merge().unwrap_err().what_to_try().is_some(), "a part is missing");
    fs::rename(&away, &part).unwrap();
    parts.merge().unwrap();
    let found = read(trace.clone());
    let recorded = found.header.recorded.clone().unwrap();
    assert!(!recorded.complete);
    let summary = found.validate().unwrap();
    assert_eq!((summary.bytes_written, summary.steps), (5, recorded.steps));
    assert!(hyperslab_layers::trace_parts(&trace).is_none());
    assert_eq!(names(directory.path()), ["c", "c.trace.jsonl"]);
}

#[test]
fn only_traces_are_replaced_and_a_missing_place_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let container = directory.path().join("c");
    let notes = directory.path().join("notes");
    fs::write(&notes, "mine").unwrap();
    let link = directory.path().join("link.jsonl");
    std::os::unix::fs::symlink(&notes, &link).unwrap();
    for file in [&notes, &link] {
        let format = stack(&format!("trace(file={})/posix", file.display()));
        let error = format.open(&container, OpenMode::Create, &Solo::shared()).unwrap_err();
        assert!(error.to_string().contains("would be replaced"), "{error}");
    }
    assert_eq!(fs::read(&notes).unwrap(), b"mine");
    assert_eq!(names(directory.path()), ["link.jsonl", "notes"]);
    let format = stack(&format!("trace(file={}/no/where.jsonl)/posix", directory.path().display()));
    let workload = random_workload(5, 2, false);
    let remarks = play(&workload, &*format, directory.path());
    assert!(remarks[0].iter().any(|remark| remark.contains("nothing is traced")), "{remarks:?}");
    assert!(container.exists());
    // A place that the container takes in the end.
    let format = stack(&format!("trace(file={})/posix", container.display()));
    fs::remove_dir_all(&container).unwrap();
    let remarks = play(&workload, &*format, directory.path());
    assert!(remarks[0].iter().any(|remark| remark.contains("there is no trace")), "{remarks:?}");
    assert_eq!(names(directory.path()), ["c", "link.jsonl", "notes"]);
}

/// Prints what recording costs; run it alone.
#[test]
#[ignore = "prints times: cargo test -p hyperslab-run --test trace -- --ignored --nocapture"]
#[allow(clippy::print_stdout)]
fn overhead_of_an_idle_layer() {
    let directory = tempfile::tempdir().unwrap();
    let time = |text: &str| {
        let container = stack(text).open(&directory.path().join("c"), OpenMode::Truncate, &Solo::shared()).unwrap();
        let array = container.create("a", &ArraySpec::new(Datatype::U8, &[1 << 20])).unwrap();
        let (count, data) = (200_000u64, [0; 64]);
        let begin = std::time::Instant::now();
        for at in 0..count {
            let selection = Selection::dense(&[at * 5 % (1 << 19)], &[64]).unwrap();
            array.write(&selection, MemoryView::packed(&data), TransferMode::Independent).unwrap();
        }
        let each = begin.elapsed().as_nanos() as u64 / count;
        array.close().unwrap();
        container.close().unwrap();
        each
    };
    for _ in 0..5 {
        let (without, with) = (time("null"), time("trace/null"));
        println!("null {without} ns, trace/null {with} ns: {} ns per write", with.saturating_sub(without));
    }
}
