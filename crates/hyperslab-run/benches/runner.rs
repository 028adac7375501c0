//! What the runner itself costs: a million steps through it and the `null` format, on one core.
//! `cargo bench -p hyperslab-run --bench runner`; with `-- --check` a missed target fails.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use hyperslab_comm::Solo;
use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, Step, StepSource, WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{
    ArraySpec, Datatype, Fill, MemoryLayout, OpenMode, Result, Selection, StackElement, TransferMode,
};
use hyperslab_run::{Progress, RunContext, run_rank};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

const ELEMENTS: u64 = 64;

/// One array, written `writes` times, a row at a time.
#[derive(Debug)]
struct ManyWrites(u64);

impl StepSource for ManyWrites {
    fn steps(&self, _: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
        let memory = Arc::new(MemoryLayout::packed());
        let before = [
            Step::OpenFile { file: 0, how: OpenMode::Create },
            Step::Create { slot: 0, file: 0, array: 0, name: "a".into() },
        ];
        let writes = (0..self.0).map(move |row| {
            Ok(Step::Write {
                slot: 0,
                selection: Selection::dense(&[row, 0], &[1, ELEMENTS])?,
                memory: memory.clone(),
                transfer: TransferMode::Independent,
            })
        });
        let after = [Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }];
        Ok(Box::new(before.into_iter().map(Ok).chain(writes).chain(after.into_iter().map(Ok))))
    }
}

fn seconds(writes: u64) -> f64 {
    let header = Header {
        version: WORKLOAD_VERSION,
        recorded: None,
        name: "many-writes".into(),
        about: String::new(),
        ranks: 1,
        seed: 1,
        files: vec![FileDeclaration::created("null")],
        arrays: vec![ArrayDeclaration { spec: ArraySpec::new(Datatype::F32, &[writes, ELEMENTS]), fill: Fill::Random }],
    };
    let workload = Workload::new(header, Arc::new(ManyWrites(writes))).unwrap();
    let format = hyperslab_formats::build(&StackElement::plain("null")).unwrap();
    let progress = Progress::default();
    let context = RunContext {
        workload: &workload,
        format: &*format,
        directory: Path::new("."),
        verify: false,
        durable: false,
        samples: None,
        progress: &progress,
    };
    let from = Instant::now();
    let measured = run_rank(&context, &Solo::shared()).unwrap().measured;
    assert_eq!(measured.bytes_written, writes * ELEMENTS * 4);
    let took = from.elapsed().as_secs_f64();
    let _ = format.remove(Path::new("./null"));
    took
}

/// Largest memory this process ever held, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() -> ExitCode {
    let check = std::env::args().any(|a| a == "--check");
    seconds(10_000);
    let small = peak_memory();
    let best = (0..5).map(|_| seconds(1_000_000)).fold(f64::INFINITY, f64::min);
    let grown = peak_memory() - small;
    println!("a million steps of {} bytes through runner and null: {best:.3} s (target: below 1 s)", ELEMENTS * 4);
    println!("memory: {grown} KiB more at a million steps than at ten thousand (target: below 1024 KiB)");
    if check && (best >= 1.0 || grown >= 1024) {
        println!("missed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
