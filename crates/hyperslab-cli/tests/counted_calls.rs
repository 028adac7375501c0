//! What the model counts, against what the kernel counts in real runs.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, Step, StepSource, Steps, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Fill, OpenMode, Result, Selection, Stack, TransferMode};
use hyperslab_model::{Count, count};
use hyperslab_run::{Case, Progress, run_case};
use std::sync::Arc;

/// Writes all of an array in one way and reads it in another, in one run.
#[derive(Debug, Clone)]
struct WriteAndRead {
    writes: Vec<Selection>,
    reads: Vec<Selection>,
}

impl StepSource for WriteAndRead {
    fn steps(&self, _: usize) -> Result<Steps<'_>> {
        let (memory, transfer) = (Arc::default(), TransferMode::Independent);
        let write = |selection: &Selection| Step::Write {
            slot: 0,
            selection: selection.clone(),
            memory: Arc::clone(&memory),
            transfer,
        };
        let read = |selection: &Selection| Step::Read {
            slot: 0,
            selection: selection.clone(),
            memory: Arc::clone(&memory),
            transfer,
        };
        let close = || [Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }];
        let mut steps = vec![
            Step::OpenFile { file: 0, how: OpenMode::Create },
            Step::Create { slot: 0, file: 0, array: 0, name: "a".into() },
        ];
        steps.extend(self.writes.iter().map(write));
        steps.extend(close());
        steps.extend([
            Step::OpenFile { file: 0, how: OpenMode::Read },
            Step::Open { slot: 0, file: 0, array: 0, name: "a".into() },
        ]);
        steps.extend(self.reads.iter().map(read));
        steps.extend(close());
        Ok(Box::new(steps.into_iter().map(Ok)))
    }
}

fn workload(spec: ArraySpec, steps: WriteAndRead) -> Workload {
    let header = Header {
        version: 2,
        name: "calls".into(),
        about: String::new(),
        ranks: 1,
        seed: 1,
        recorded: None,
        files: vec![FileDeclaration::created("file")],
        arrays: vec![ArrayDeclaration { spec, fill: Fill::default() }],
    };
    Workload::new(header, Arc::new(steps)).unwrap()
}

/// Calls that read and that write, of this process so far; `None` where the kernel does not count them.
fn calls() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Some((of("syscr:")?, of("syscw:")?))
}

/// Every workload of the test with its name.
fn accesses() -> Vec<(&'static str, WriteAndRead)> {
    let all = vec![Selection::all(&[512, 512]).unwrap()];
    let row = |r: u64| Selection::dense(&[r, 0], &[1, 512]).unwrap();
    let column = |c: u64| Selection::dense(&[0, c], &[512, 1]).unwrap();
    let tile = |i: u64| Selection::dense(&[i / 5 * 100, i % 5 * 100], &[100, 100]).unwrap();
    let steps = |writes: &[Selection], reads: Vec<Selection>| WriteAndRead { writes: writes.to_vec(), reads };
    vec![
        ("whole", steps(&all, all.clone())),
        ("rows", steps(&(0..512).map(row).collect::<Vec<_>>(), (0..512).map(row).collect())),
        ("columns", steps(&all, (0..512).step_by(8).map(column).collect())),
        ("tiles", steps(&all, (0..25).map(tile).collect())),
        ("changed tiles", steps(&(0..25).map(tile).collect::<Vec<_>>(), all.clone())),
        ("strided", steps(&all, vec![Selection::strided(&[0, 0], &[4, 4], &[128, 128], &[1, 2]).unwrap()])),
    ]
}

/// One test, so that nothing else in the process makes calls.
#[test]
fn the_kernel_counts_what_the_model_does() {
    let Some(_) = calls() else {
        eprintln!("skipped: this kernel does not count calls in /proc/self/io");
        return;
    };
    let chunked = "chunk=64x64";
    let stacks = [
        "posix".to_owned(),
        "hdf5".to_owned(),
        "hdf5(plane=on)".to_owned(),
        format!("hdf5({chunked})"),
        format!("hdf5({chunked},cache=64KiB)"),
        format!("hdf5({chunked},cache=8KiB)"),
        format!("hdf5({chunked},plane=on)"),
        format!("hdf5({chunked},deflate=1,cache=64KiB)"),
        format!("hdf5({chunked},deflate=1,cache=64KiB,plane=on)"),
        format!("zarr({chunked})"),
        format!("zarr({chunked},codec=gzip)"),
        "zarr(chunk=64x64,shard=256x256)".to_owned(),
    ];
    let (progress, mut wrong) = (Progress::default(), Vec::new());
    for text in stacks {
        let stack: Stack = text.parse().unwrap();
        let format = hyperslab_run::open_stack(&stack).unwrap();
        for (name, steps) in accesses() {
            let directory = tempfile::tempdir().unwrap();
            let workload = workload(ArraySpec::new(Datatype::F32, &Dims::from_slice(&[512, 512])), steps);
            let counted = count(&workload, &hyperslab::configuration(&stack).unwrap()).unwrap().total();
            let before = calls().unwrap();
            let outcome = run_case(&Case::new(&workload, format.clone(), directory.path(), &progress));
            let after = calls().unwrap();
            assert!(outcome.failure.is_none(), "{text} {name}: {:?}", outcome.failure);
            // Descriptions, superblocks and the index are read and written too; a window may reach beyond the end of a
            // file that is not full yet, which takes a second call. Files that compress well take fewer calls.
            let fewer = if text.contains("gzip") { 8 } else { u64::MAX };
            let right =
                |model: u64, kernel: u64| kernel + 2 + model / fewer >= model && kernel <= model + model / 20 + 64;
            let (reads, writes) = (after.0 - before.0, after.1 - before.1);
            let index = counted[Count::IndexBlocks] + counted[Count::IndexEntries] / 57;
            if !right(counted[Count::ReadCalls] + index, reads + index) || !right(counted[Count::WriteCalls], writes) {
                let said = (counted[Count::ReadCalls], counted[Count::WriteCalls]);
                wrong.push(format!("{text}, {name}: the model says {said:?}, the kernel {:?}", (reads, writes)));
            }
        }
    }
    assert!(wrong.is_empty(), "reads and writes\n{}", wrong.join("\n"));
}
