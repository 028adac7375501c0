//! The program that the demonstration plays: compute, write, compute, write.

use hyperslab_core::units::{display_size, exact_size};
use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, SEED_ATTRIBUTE, Step, StepSource, WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{
    ArraySpec, Attribute, Datatype, Durability, Error, Fill, OpenMode, Result, Selection, TransferMode,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const SEED: u64 = 1;

/// How much of everything.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Time steps.
    pub steps: u64,
    /// Computing in each.
    pub compute: Duration,
    /// Bytes that each writes.
    pub bytes: u64,
}

impl Shape {
    /// 32-bit floats that a time step writes.
    fn elements(&self) -> u64 {
        self.bytes.div_ceil(4).max(1)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.bytes >> 20 == 0 { exact_size(self.bytes) } else { display_size(self.bytes) };
        write!(f, "{} x (compute {:?}, write {size})", self.steps, self.compute)
    }
}

/// One array with a row for each time step. It is open all the time, so that nothing but its data is waited for.
pub fn workload(shape: &Shape) -> Result<Workload> {
    let spec = ArraySpec::new(Datatype::F32, &[shape.steps, shape.elements()]);
    let header = Header {
        version: WORKLOAD_VERSION,
        recorded: None,
        name: "demo".into(),
        about: shape.to_string(),
        ranks: 1,
        seed: SEED,
        files: vec![FileDeclaration::created("data")],
        arrays: vec![ArrayDeclaration { spec, fill: Fill::Ramp }],
    };
    Workload::new(header, Arc::new(Source(shape.clone())))
}

#[derive(Debug)]
struct Source(Shape);

impl StepSource for Source {
    fn steps(&self, _rank: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
        let Shape { steps, compute, .. } = self.0;
        let nanoseconds = u64::try_from(compute.as_nanos())
            .map_err(|_| Error::invalid("make workload", "computing takes centuries"))?;
        let (elements, slot, file) = (self.0.elements(), 0, 0);
        let value = Attribute::integer(SEED as i64);
        let begin = [
            Step::OpenFile { file, how: OpenMode::Create },
            Step::Attribute { file, object: "".into(), name: SEED_ATTRIBUTE.into(), value },
            Step::Create { slot, file, array: 0, name: "data".into() },
        ];
        let row = move |number: u64| {
            let selection = Selection::dense(&[number, 0], &[1, elements])?;
            let write = Step::Write { slot, selection, memory: Arc::default(), transfer: TransferMode::Independent };
            Ok([Step::Compute { nanoseconds }, write])
        };
        let rows = (0..steps).flat_map(move |number| match row(number) {
            Ok(steps) => steps.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        let end = [Step::Flush { file, how: Durability::Visible }, Step::CloseArray { slot }, Step::CloseFile { file }];
        Ok(Box::new(begin.into_iter().map(Ok).chain(rows).chain(end.into_iter().map(Ok))))
    }
}
