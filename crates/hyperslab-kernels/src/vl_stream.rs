//! Streams of single elements: an array that grows by one and is written by one, again and again.

use crate::batches::StepBatches;
use crate::named::{Files, Growth, Kernel, Phase, SEED, Values, key};
use crate::shared_file;
use hyperslab_core::workload::{ArrayDeclaration, FileDeclaration, Header, Step, WORKLOAD_VERSION, Workload};
use hyperslab_core::{ArraySpec, Datatype, Dims, Error, Fill, Result, Selection, TransferMode};
use std::sync::Arc;

/// Parameters of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    /// Number of ranks; the first one appends, as the program is serial.
    pub ranks: usize,
    /// The container, relative to the run's directory.
    pub file: String,
    /// Appends.
    pub operations: u64,
    /// Elements of an append.
    pub batch: u64,
    /// Elements of a chunk.
    pub chunk: u64,
    /// Whether elements are strings of variable length, all "abcd", instead of 32-bit integers.
    pub strings: bool,
    /// Seed of the data.
    pub seed: u64,
}

/// The kernel by name.
pub const KERNEL: Kernel = Kernel {
    name: "vl-stream",
    about: "a stream of single elements, each of which makes an array grow",
    stands_for: "h5bench's vl_stream: a serial program makes an array that may grow without limit, in chunks of 2048, and appends \
        to it: the array grows by one element, and this element is written. Elements are int32, or with type=vl strings of \
        variable length, \"abcd\" each. What counts is the latency of the calls: results.json has their percentiles.",
    keys: &[
        key("operations", "N", "2000", "appends"),
        key("batch", "N", "1", "elements of an append"),
        key("chunk", "N", "2048", "elements of a chunk"),
        key("type", "int32|vl", "int32", "type of an element; vl: strings of variable length"),
        SEED,
    ],
    ranks: 1,
    growth: Growth::Other,
    plan,
};

fn plan(values: &Values, ranks: usize, _: &dyn Files) -> Result<Vec<Phase>> {
    let stream = Stream {
        ranks,
        file: "vl_stream.h5".into(),
        operations: values.positive("operations")?,
        batch: values.positive("batch")?,
        chunk: values.positive("chunk")?,
        strings: values.word("type", &[("int32", false), ("vl", true)])?,
        seed: values.number("seed")?,
    };
    Ok(vec![Phase::new("vl-stream append", stream.write()?)])
}

impl Stream {
    /// Creates the array without elements, and appends.
    pub fn write(&self) -> Result<Workload> {
        let bad = |message: &str| Err(Error::invalid("plan stream", message));
        if self.ranks == 0 || self.operations == 0 || self.batch == 0 || self.chunk == 0 {
            return bad("ranks, operations, batch and chunk must be at least 1");
        }
        if self.operations.checked_mul(self.batch).is_none_or(|all| all > 1 << 40) {
            return bad("more than 2^40 elements are appended");
        }
        let (dtype, fill, what) = match self.strings {
            true => (Datatype::VariableString, Fill::Text("abcd".into()), "strings"),
            false => (Datatype::I32, Fill::Index, "elements of 4 bytes"),
        };
        let mut spec = ArraySpec::new(dtype, &[0]);
        spec.max_shape = Some(vec![None]);
        spec.chunk = Some(Dims::from_slice(&[self.chunk]));
        let header = Header {
            version: WORKLOAD_VERSION,
            recorded: None,
            name: "vl-stream".into(),
            about: format!("append {} times {} {what}", self.operations, self.batch),
            ranks: self.ranks,
            seed: self.seed,
            files: vec![FileDeclaration::created(&self.file)],
            arrays: vec![ArrayDeclaration { spec, fill }],
        };
        crate::batches::workload(header, Appending(self.clone()))
    }
}

#[derive(Debug)]
struct Appending(Stream);

impl StepBatches for Appending {
    type Rank = usize;

    fn rank(&self, rank: usize) -> Result<usize> {
        Ok(rank)
    }

    fn batches(&self) -> u64 {
        self.0.operations + 2
    }

    fn batch(&self, rank: &usize, number: u64) -> Result<Vec<Step>> {
        let Some(operation) = number.checked_sub(1) else {
            let mut steps = shared_file::create(self.0.seed);
            steps.push(Step::Create { slot: 0, file: 0, array: 0, name: "my_test_dataset".into() });
            return Ok(steps);
        };
        if operation == self.0.operations {
            let close = [Step::CloseArray { slot: 0 }];
            return Ok(close.into_iter().chain(shared_file::flush_and_close()).collect());
        }
        let start = operation * self.0.batch;
        let mut steps = vec![Step::Resize { slot: 0, shape: Dims::from_slice(&[start + self.0.batch]) }];
        if *rank == 0 {
            let (selection, memory) = (Selection::dense(&[start], &[self.0.batch])?, Arc::default());
            steps.push(Step::Write { slot: 0, selection, memory, transfer: TransferMode::Independent });
        }
        Ok(steps)
    }
}
