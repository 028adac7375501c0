//! Calls whose time is compared with and without a layer.

use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, Step, StepSource, Steps, WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{ArraySpec, Datatype, Fill, OpenMode, Result, Selection, TransferMode};
use std::sync::Arc;

/// Ranks that go over one array together, each call of a rank beside those of the others.
#[derive(Debug, Clone, Copy)]
pub struct LayerTrial {
    /// Number of ranks.
    pub ranks: usize,
    /// Calls of each.
    pub calls: u64,
    /// Elements of a call.
    pub elements: u64,
    /// Whether they write a new array, or read one that is there.
    pub writes: bool,
    /// Alone or together.
    pub transfer: TransferMode,
}

impl LayerTrial {
    /// Bytes of an element.
    pub const ELEMENT: u64 = 4;

    /// The workload on a container of this name.
    pub fn workload(&self, file: &str) -> Result<Workload> {
        let extent = self.calls * self.elements * self.ranks as u64;
        let file = if self.writes { FileDeclaration::created(file) } else { FileDeclaration::read(file) };
        let header = Header {
            version: WORKLOAD_VERSION,
            name: "layers".into(),
            about: String::new(),
            ranks: self.ranks,
            seed: 1,
            recorded: None,
            files: vec![file],
            arrays: vec![ArrayDeclaration { spec: ArraySpec::new(Datatype::F32, &[extent]), fill: Fill::default() }],
        };
        Workload::new(header, Arc::new(*self))
    }
}

impl StepSource for LayerTrial {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let Self { ranks, calls, elements, writes, transfer } = *self;
        let name: Arc<str> = "array".into();
        let before = match writes {
            true => {
                [Step::OpenFile { file: 0, how: OpenMode::Create }, Step::Create { slot: 0, file: 0, array: 0, name }]
            }
            false => [Step::OpenFile { file: 0, how: OpenMode::Read }, Step::Open { slot: 0, file: 0, array: 0, name }],
        };
        let transfers = (0..calls).map(move |call| {
            let start = (call * ranks as u64 + rank as u64) * elements;
            let (selection, memory) = (Selection::dense(&[start], &[elements])?, Arc::default());
            Ok(match writes {
                true => Step::Write { slot: 0, selection, memory, transfer },
                false => Step::Read { slot: 0, selection, memory, transfer },
            })
        });
        let after = [Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }];
        Ok(Box::new(before.into_iter().map(Ok).chain(transfers).chain(after.into_iter().map(Ok))))
    }
}
