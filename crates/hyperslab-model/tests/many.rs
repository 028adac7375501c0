//! Workloads of millions of requests and chunks.
#![allow(clippy::unwrap_used)]

use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, Step, StepSource, Steps, Workload};
use hyperslab_core::{ArraySpec, Datatype, Fill, OpenMode, Result, Selection, TransferMode};
use hyperslab_model::{Count, count};
use std::sync::Arc;

/// Every rank writes `requests` boxes of `per_request` chunks, one after another.
#[derive(Debug)]
struct Many {
    ranks: u64,
    requests: u64,
    per_request: u64,
}

const CHUNK: u64 = 16;

impl Many {
    fn workload(self) -> Workload {
        let shape = [self.ranks * self.requests * self.per_request * CHUNK];
        let mut spec = ArraySpec::new(Datatype::F32, &shape);
        spec.chunk = Some([CHUNK][..].into());
        let header = Header {
            version: 2,
            name: "many".into(),
            about: String::new(),
            ranks: self.ranks as usize,
            seed: 0,
            recorded: None,
            files: vec![FileDeclaration::created("f")],
            arrays: vec![ArrayDeclaration { spec, fill: Fill::default() }],
        };
        Workload::new(header, Arc::new(self)).unwrap()
    }
}

impl StepSource for Many {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let before = [
            Step::OpenFile { file: 0, how: OpenMode::Create },
            Step::Create { slot: 0, file: 0, array: 0, name: "a".into() },
        ];
        let after = [Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }];
        let count = self.per_request * CHUNK;
        let first = rank as u64 * self.requests;
        let writes = (0..self.requests).map(move |request| {
            let selection = Selection::dense(&[(first + request) * count], &[count])?;
            Ok(Step::Write { slot: 0, selection, memory: Arc::default(), transfer: TransferMode::Independent })
        });
        Ok(Box::new(before.into_iter().map(Ok).chain(writes).chain(after.into_iter().map(Ok))))
    }
}

#[test]
fn a_million_requests_over_ten_million_chunks() {
    let workload = Many { ranks: 1, requests: 1_000_000, per_request: 10 }.workload();
    for stack in ["hdf5", "zarr"] {
        let counts = count(&workload, &hyperslab::configuration(&stack.parse().unwrap()).unwrap()).unwrap().total();
        assert_eq!((counts[Count::Requests], counts[Count::ChunkVisits]), (1_000_000, 10_000_000), "{stack}");
        assert_eq!(counts[Count::WriteCalls], 10_000_000, "{stack}");
        assert_eq!(counts[Count::WriteBytes], 640_000_000, "{stack}");
    }
}

#[test]
fn a_billion_requests_of_a_million_ranks_are_seen_in_some_of_them() {
    let workload = Many { ranks: 1_000_000, requests: 1000, per_request: 1 }.workload();
    let costs = count(&workload, &hyperslab::configuration(&"posix".parse().unwrap()).unwrap()).unwrap();
    let counts = costs.total();
    assert_eq!((counts[Count::Requests], counts[Count::WriteCalls]), (1_000_000_000, 1_000_000_000));
    assert_eq!(costs.bytes_written, 64_000_000_000);
    assert!(costs.by_rank.len() <= 64);
}

#[test]
fn a_billion_runs_in_one_request_are_not_listed() {
    // Every second element along the second dimension: as many runs as elements.
    let mut spec = ArraySpec::new(Datatype::F32, &[1 << 15, 1 << 16]);
    spec.chunk = Some([1 << 10, 1 << 16][..].into());
    let selection = Selection::strided(&[0, 0], &[1, 2], &[1 << 15, 1 << 15], &[1, 1]).unwrap();
    assert_eq!(selection.len(), 1 << 30);
    #[derive(Debug)]
    struct Once(Selection);
    impl StepSource for Once {
        fn steps(&self, _: usize) -> Result<Steps<'_>> {
            let steps = [
                Step::OpenFile { file: 0, how: OpenMode::Read },
                Step::Open { slot: 0, file: 0, array: 0, name: "a".into() },
                Step::Read {
                    slot: 0,
                    selection: self.0.clone(),
                    memory: Arc::default(),
                    transfer: TransferMode::Independent,
                },
                Step::CloseArray { slot: 0 },
                Step::CloseFile { file: 0 },
            ];
            Ok(Box::new(steps.into_iter().map(Ok)))
        }
    }
    let header = Header {
        version: 2,
        name: "strided".into(),
        about: String::new(),
        ranks: 1,
        seed: 0,
        recorded: None,
        files: vec![FileDeclaration::read("f")],
        arrays: vec![ArrayDeclaration { spec, fill: Fill::default() }],
    };
    let workload = Workload::new(header, Arc::new(Once(selection))).unwrap();
    for stack in ["posix", "hdf5", "hdf5(plane=on)", "zarr"] {
        let counts = count(&workload, &hyperslab::configuration(&stack.parse().unwrap()).unwrap()).unwrap().total();
        assert_eq!(counts[Count::Runs] + counts[Count::ShortRuns], 1 << 30, "{stack}");
        assert!(counts[Count::ReadCalls] <= 1 << 20, "{stack} {}", counts[Count::ReadCalls]);
    }
}
