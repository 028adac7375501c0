//! Small workloads on one array, put together call by call.
#![allow(dead_code, clippy::unwrap_used)]

use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, Step, StepSource, Steps, Update, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Fill, MemoryLayout, OpenMode, Result, Selection, TransferMode};
use hyperslab_model::{Counting, Counts, count};
use std::sync::Arc;

/// Transfers of one array, by rank.
#[derive(Debug, Clone)]
pub struct Transfers {
    spec: ArraySpec,
    file: FileDeclaration,
    how: OpenMode,
    by_rank: Vec<Vec<Step>>,
}

impl Transfers {
    fn new(dtype: Datatype, shape: &[u64], file: FileDeclaration, how: OpenMode) -> Self {
        Self { spec: ArraySpec::new(dtype, shape), file, how, by_rank: vec![Vec::new()] }
    }

    /// On an array that is made.
    pub fn making(dtype: Datatype, shape: &[u64]) -> Self {
        Self::new(dtype, shape, FileDeclaration::created("f"), OpenMode::Create)
    }

    /// On one that is there, and read.
    pub fn reading(dtype: Datatype, shape: &[u64]) -> Self {
        Self::new(dtype, shape, FileDeclaration::read("f"), OpenMode::Read)
    }

    /// On one that is there, and changed.
    pub fn changing(dtype: Datatype, shape: &[u64]) -> Self {
        Self::new(dtype, shape, FileDeclaration::updated("f", Update::Overwrite), OpenMode::Update)
    }

    pub fn chunk(mut self, chunk: &[u64]) -> Self {
        self.spec.chunk = Some(Dims::from_slice(chunk));
        self
    }

    fn step(mut self, rank: usize, step: Step) -> Self {
        self.by_rank.resize(self.by_rank.len().max(rank + 1), Vec::new());
        self.by_rank[rank].push(step);
        self
    }

    pub fn read(self, selection: Selection) -> Self {
        self.read_by(0, selection)
    }

    pub fn read_by(self, rank: usize, selection: Selection) -> Self {
        let memory = Arc::default();
        self.step(rank, Step::Read { slot: 0, selection, memory, transfer: TransferMode::Independent })
    }

    pub fn write(self, selection: Selection) -> Self {
        self.write_by(0, selection)
    }

    pub fn write_by(self, rank: usize, selection: Selection) -> Self {
        let memory = Arc::default();
        self.step(rank, Step::Write { slot: 0, selection, memory, transfer: TransferMode::Independent })
    }

    pub fn write_from(self, selection: Selection, memory: MemoryLayout) -> Self {
        let memory = Arc::new(memory);
        self.step(0, Step::Write { slot: 0, selection, memory, transfer: TransferMode::Independent })
    }

    pub fn workload(&self) -> Workload {
        let header = Header {
            version: 2,
            name: "transfers".into(),
            about: String::new(),
            ranks: self.by_rank.len(),
            seed: 0,
            recorded: None,
            files: vec![self.file.clone()],
            arrays: vec![ArrayDeclaration { spec: self.spec.clone(), fill: Fill::default() }],
        };
        Workload::new(header, Arc::new(self.clone())).unwrap()
    }
}

impl StepSource for Transfers {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let name: Arc<str> = "a".into();
        let open = match self.how {
            OpenMode::Create => Step::Create { slot: 0, file: 0, array: 0, name },
            _ => Step::Open { slot: 0, file: 0, array: 0, name },
        };
        let before = [Step::OpenFile { file: 0, how: self.how }, open];
        let after = [Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }];
        let steps = before.into_iter().chain(self.by_rank[rank].iter().cloned()).chain(after);
        Ok(Box::new(steps.map(Ok)))
    }
}

/// What all ranks make a stack do.
pub fn total(transfers: &Transfers, stack: &str, counting: Counting) -> Counts {
    let configuration = hyperslab::configuration(&stack.parse().unwrap()).unwrap().counting(counting);
    count(&transfers.workload(), &configuration).unwrap().total()
}
