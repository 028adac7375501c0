//! What layers do to what is counted, and to predicted times.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, Step, StepSource, Steps, Workload};
use hyperslab_core::{ArraySpec, CacheState, Datatype, Fill, OpenMode, Result, Selection, TransferMode};
use hyperslab_model::{
    Alignment, Class, Conditions, Contention, ContentionCurve, Costs, Count, Fit, Interval, LayerCost, MachineFacts,
    Overlap, Part, Prediction, Profile, RankKind, count, footprint, predict,
};
use std::sync::Arc;

const ELEMENTS: u64 = 1 << 16;
const WARM_THREADS: Conditions = Conditions { warmth: CacheState::Warm, ranks: RankKind::Threads };

/// Ranks that write every n-th element of an array in each of several steps, and compute in between.
#[derive(Debug, Clone, Copy)]
struct Interleaved {
    ranks: usize,
    steps: u64,
    compute: u64,
    transfer: TransferMode,
    reads: bool,
}

const USUAL: Interleaved =
    Interleaved { ranks: 4, steps: 4, compute: 0, transfer: TransferMode::Collective, reads: false };

impl StepSource for Interleaved {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let name: Arc<str> = "a".into();
        let ranks = self.ranks as u64;
        let selection = Selection::strided(&[rank as u64], &[ranks], &[ELEMENTS / ranks], &[1])?;
        let (how, open) = match self.reads {
            true => (OpenMode::Read, Step::Open { slot: 0, file: 0, array: 0, name }),
            false => (OpenMode::Create, Step::Create { slot: 0, file: 0, array: 0, name }),
        };
        let mut steps = vec![Step::OpenFile { file: 0, how }, open];
        for _ in 0..self.steps {
            let (selection, memory, transfer) = (selection.clone(), Arc::default(), self.transfer);
            steps.push(match self.reads {
                true => Step::Read { slot: 0, selection, memory, transfer },
                false => Step::Write { slot: 0, selection, memory, transfer },
            });
            steps.push(Step::Compute { nanoseconds: self.compute });
        }
        steps.extend([Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }]);
        Ok(Box::new(steps.into_iter().map(Ok)))
    }
}

fn costs(work: Interleaved, stack: &str) -> Costs {
    count(&workload(work), &hyperslab::configuration(&stack.parse().unwrap()).unwrap()).unwrap()
}

fn workload(work: Interleaved) -> Workload {
    let file = if work.reads { FileDeclaration::read("f") } else { FileDeclaration::created("f") };
    let header = Header {
        version: 2,
        name: "interleaved".into(),
        about: String::new(),
        ranks: work.ranks,
        seed: 0,
        recorded: None,
        files: vec![file],
        arrays: vec![ArrayDeclaration { spec: ArraySpec::new(Datatype::F32, &[ELEMENTS]), fill: Fill::Index }],
    };
    Workload::new(header, Arc::new(work)).unwrap()
}

fn profile() -> Profile {
    let mut coefficients = vec![0.0; 2 * Count::ALL.len()];
    for (count, seconds) in
        [(Count::ReadCalls, 1e-5), (Count::WriteCalls, 1e-5), (Count::WriteBytes, 1e-9), (Count::ReadBytes, 1e-9)]
    {
        coefficients[count as usize] = seconds;
        coefficients[Count::ALL.len() + count as usize] = seconds;
    }
    let fit = Fit { coefficients, interval: Interval { factor: 1.2 }, ..Fit::default() };
    let cost = LayerCost { write_call: 1e-6, write_byte: 1e-10, read_call: 1e-6, read_byte: 1e-10 };
    Profile {
        program: String::new(),
        measured: 0.0,
        machine: MachineFacts {
            processor: String::new(),
            processors: 4,
            memory: 1 << 30,
            file_system: String::new(),
            device: String::new(),
        },
        fits: Class::ALL.map(|class| ((class, CacheState::Warm), fit.clone())).into(),
        sharing: [(
            (Class::Posix, RankKind::Threads),
            ContentionCurve::new(vec![Contention { ranks: 1, create: 0.0, open: 0.0, read: 4.0, write: 4.0 }]).unwrap(),
        )]
        .into(),
        missing: Vec::new(),
        layers: ["async", "cache", "log", "twophase"].map(|name| (name.to_owned(), cost)).into(),
        alignment: vec![Alignment { bytes: 4096, read: 1.0, write: 0.5 }],
        copy_rate: Some(1e10),
        python: Default::default(),
    }
}

fn predicted(work: Interleaved, stack: &str) -> Prediction {
    let class = hyperslab::configuration(&stack.parse().unwrap()).unwrap().class();
    predict(&costs(work, stack), class, &profile(), WARM_THREADS).unwrap()
}

#[test]
fn exchanges_turn_interleaved_pieces_into_few_calls() {
    let calls = |stack: &str| costs(USUAL, stack).total()[Count::WriteCalls];
    assert!(calls("posix") >= 4 * ELEMENTS, "{}", calls("posix"));
    // 256 KiB are written in each step, by one or by two ranks.
    assert_eq!((calls("twophase(aggregators=1)/posix"), calls("twophase/posix")), (4, 8));
    assert_eq!(calls("twophase(aggregators=1,buffer=64KiB)/posix"), 16);
    assert_eq!(calls("log/posix"), 4, "each rank stores a part of what is in the log, once");
    // What ranks transfer for themselves is not exchanged.
    let alone = Interleaved { transfer: TransferMode::Independent, ..USUAL };
    assert_eq!(costs(alone, "twophase/posix").total()[Count::WriteCalls], calls("posix"));
    for stack in ["twophase/posix", "log/posix"] {
        assert_eq!(
            costs(USUAL, stack).total()[Count::WriteBytes],
            match stack {
                "log/posix" => 4 * ELEMENTS, // the last write wins
                _ => 16 * ELEMENTS,
            }
        );
        assert!(predicted(USUAL, stack).seconds < predicted(USUAL, "posix").seconds);
    }
}

#[test]
fn what_layers_add_is_counted_and_grows_with_the_work() {
    let found = costs(USUAL, "async/posix");
    assert_eq!(found.layers.len(), 1);
    assert_eq!((found.layers[0].by_rank[0].writes, found.layers[0].by_rank[0].bytes_written), (4, 4 * ELEMENTS));
    let layers = |steps: u64| predicted(Interleaved { steps, ..USUAL }, "async/posix").parts[&Part::Layer];
    assert!((layers(4) - (4e-6 + 4.0 * ELEMENTS as f64 * 1e-10)).abs() < 1e-9);
    assert!(layers(5) > layers(4));
    let mut unmeasured = profile();
    unmeasured.layers.clear();
    let found = predict(&found, Class::Posix, &unmeasured, WARM_THREADS).unwrap();
    assert_eq!(found.unknown, ["async"]);
    assert!(!found.parts.contains_key(&Part::Layer));
}

#[test]
fn transfers_hide_behind_computing() {
    let long = Interleaved { compute: 3_000_000_000, ..USUAL };
    let (direct, behind) = (predicted(long, "posix"), predicted(long, "async/posix"));
    assert_eq!(direct.hidden, 0.0);
    // The last of four is not hidden.
    assert!(behind.seconds < 0.3 * direct.seconds && behind.hidden > 0.7 * direct.seconds, "{behind:?} {direct:?}");
    assert!(predicted(long, "auto/posix").seconds <= behind.seconds);
    assert_eq!(predicted(USUAL, "auto/posix").hidden, 0.0);
    // A log waits for time to pass, or for much to come.
    assert_eq!(costs(USUAL, "log/posix").behind, Overlap::Nothing);
    assert_eq!(costs(USUAL, "log(drain=64KiB)/posix").behind, Overlap::Writes);
    assert_eq!(costs(long, "log/posix").behind, Overlap::Writes);
    assert_eq!(costs(long, "log(drain=off)/posix").behind, Overlap::Nothing);
}

#[test]
fn emulated_devices_take_their_time() {
    let bytes = (4 * 4 * ELEMENTS) as f64;
    let found = predicted(USUAL, "slow(1MB/s,1ms)/posix");
    assert!(found.seconds >= bytes / 1_048_576.0, "{found:?}");
    assert!(predicted(USUAL, "slow(2MB/s,1ms)/posix").seconds < found.seconds);
    assert!(found.unknown.is_empty());
}

#[test]
fn what_is_kept_is_read_once() {
    let reads = Interleaved { reads: true, transfer: TransferMode::Independent, ..USUAL };
    let calls = |stack: &str| costs(reads, stack).total()[Count::ReadCalls];
    assert_eq!(calls("cache/posix") * 4, calls("posix"));
    assert_eq!(calls("cache(memory=1KiB)/posix"), calls("posix"), "there is no room");
    assert!((costs(reads, "async/posix").read_ahead - 0.75).abs() < 1e-9);
}

#[test]
fn what_codecs_leave_is_what_is_moved_and_stored() {
    let bytes = |stack: &str, shares: Vec<f64>| {
        let configuration = hyperslab::configuration(&stack.parse().unwrap()).unwrap().stored(shares);
        let work = Interleaved { ranks: 1, steps: 1, ..USUAL };
        let found = count(&workload(work), &configuration).unwrap();
        let on_storage = footprint(&workload(work), &configuration, &found).unwrap();
        (found.total()[Count::WriteBytes], on_storage.stored["f"].elements)
    };
    let all = 4 * ELEMENTS;
    for stack in
        ["hdf5(chunk=4096,deflate=1)", "zarr(chunk=4096,codec=zstd)", "zarr(chunk=4096,shard=16384,codec=zstd)"]
    {
        let ((moved, stored), (all_moved, all_stored)) = (bytes(stack, vec![0.25]), bytes(stack, Vec::new()));
        assert_eq!((stored, all_stored), (all / 4, all), "{stack}");
        assert!((3.9..4.1).contains(&(all_moved as f64 / moved as f64)), "{stack}: {moved} {all_moved}");
    }
    assert_eq!(bytes("hdf5(chunk=4096)", vec![0.25]), (all, all), "nothing is coded");
}

#[test]
fn sizes_follow_from_chunks_and_layers() {
    let found = |stack: &str| {
        let configuration = hyperslab::configuration(&stack.parse().unwrap()).unwrap();
        footprint(&workload(USUAL), &configuration, &count(&workload(USUAL), &configuration).unwrap()).unwrap()
    };
    let of = |stack: &str| found(stack).stored["f"];
    assert_eq!((of("hdf5").elements, of("hdf5").files), (4 * ELEMENTS, 1));
    assert_eq!(of("zarr(chunk=1000)").files, 66 + 2, "chunks, the array's and the container's description");
    assert!(of("hdf5(chunk=60000)").elements == 2 * 4 * 60_000, "whole chunks are stored");
    assert!(of("hdf5(chunk=64)").rest > of("hdf5(chunk=4096)").rest);
    assert!(of("hdf5(chunk=64,align=4KiB)").rest > 1024 * 2000);
    assert_eq!(found("async/posix").memory, 2 * 4 * ELEMENTS);
    assert!(found("cache(memory=1MiB)/posix").memory <= (1 << 20) + 2 * 4 * ELEMENTS);
    assert_eq!(found("posix").memory, 0);
}

#[test]
fn alignment_changes_writing_as_measured() {
    let work = Interleaved { ranks: 1, steps: 1, ..USUAL };
    let (plain, aligned) = (predicted(work, "hdf5"), predicted(work, "hdf5(align=1MiB)"));
    assert!((aligned.seconds - 0.5 * plain.seconds).abs() < 1e-9, "{plain:?} {aligned:?}");
    assert_eq!(predicted(work, "hdf5(align=512)").seconds, plain.seconds, "smaller than what was measured");
}

#[test]
fn counting_gives_up_where_it_is_told_to() {
    let configuration = hyperslab::configuration(&"hdf5(chunk=64)".parse().unwrap()).unwrap();
    let visits = count(&workload(USUAL), &configuration).unwrap().total()[Count::ChunkVisits];
    assert_eq!(visits, 4 * 4 * ELEMENTS / 64);
    assert!(count(&workload(USUAL), &configuration.clone().at_most(visits)).is_ok());
    let error = count(&workload(USUAL), &configuration.at_most(visits - 1)).unwrap_err();
    assert!(error.to_string().contains("chunks are visited"), "{error}");
}

#[test]
fn what_the_format_refuses_is_refused_here_too() {
    let scalar = ArraySpec::new(Datatype::F32, &[]);
    let header =
        Header { arrays: vec![ArrayDeclaration { spec: scalar, fill: Fill::Index }], ..workload(USUAL).header };
    let workload = workload(USUAL).with_header(header).unwrap();
    for stack in ["hdf5(deflate=1)", "hdf5(chunk=8)", "zarr(chunk=8)"] {
        let configuration = hyperslab::configuration(&stack.parse().unwrap()).unwrap();
        assert!(count(&workload, &configuration).is_err(), "{stack}");
    }
}
