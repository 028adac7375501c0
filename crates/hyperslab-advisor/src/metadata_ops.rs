//! What programs do besides transfers: attributes, changes of shape, flushes. Measured on small arrays, so that each can be told
//! from the rest.

use super::measured::Bench;
use super::measurement::{MeasuredArray, Measurement};
use super::timings::Timings;
use anyhow::Result;
use hyperslab_core::workload::{FileDeclaration, Step, StepSource, Steps, Workload};
use hyperslab_core::{Attribute, Datatype, Dims, Durability, Fill, OpenMode, Selection, TransferMode};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is done again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Attributes are set.
    Attributes,
    /// The array grows by a chunk.
    Resizes,
    /// A chunk is written, and others are to see it.
    Flushes,
}

/// How arrays are stored, one for each class.
const STACKS: [&str; 5] =
    ["posix", "hdf5(chunk=1024)", "hdf5(chunk=1024,plane=on)", "zarr(chunk=1024)", "zarr(chunk=1024,shard=4096)"];
/// What their layout is called.
pub const LAYOUT: &str = "small";
/// Elements of an array: few, since a library may fill them.
const ELEMENTS: u64 = 1 << 12;
/// Elements of a chunk.
const CHUNK: u64 = 1 << 10;
/// How often a step is done in a run.
const TIMES: u64 = 16;

impl Beside {
    const ALL: [Self; 3] = [Self::Attributes, Self::Resizes, Self::Flushes];

    /// The word for it in timings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attributes => "attributes",
            Self::Resizes => "resizes",
            Self::Flushes => "flushes",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Makes the array of a trial and does it to that.
    pub fn workload(self, trial: &Measurement, file: &str) -> hyperslab_core::Result<Workload> {
        let without_limit = (self == Self::Resizes).then(|| vec![None]);
        trial.workload(FileDeclaration::created(file), 1, without_limit, Repeated(self))
    }
}

/// Small arrays.
pub fn trials() -> Result<Vec<Measurement>> {
    let trial = |text: &&str| {
        let subject = MeasuredArray { dtype: Datatype::F64, shape: Dims::from_elem(ELEMENTS, 1), fill: Fill::Random };
        let stack = text.parse()?;
        let class = hyperslab::configuration(&stack)?.class();
        Ok(Measurement { subject, layout: LAYOUT.into(), stack, class })
    };
    STACKS.iter().map(trial).collect()
}

/// Measures what is not measured yet.
pub fn measure(bench: &Bench<'_>, timings: &mut Timings, missing: &mut BTreeSet<String>) -> Result<()> {
    for trial in trials()? {
        for what in Beside::ALL {
            let known = |timings: &Timings| timings.of(&trial.name(), what.name()).next().is_some();
            if bench.progress.stop_requested() || known(timings) {
                continue;
            }
            match bench.beside(&trial, what) {
                Ok(found) => timings.add(vec![found])?,
                Err(error) => {
                    missing.insert(format!("{} of {}: {error:#}", what.name(), trial.class.name()));
                }
            }
        }
    }
    Ok(())
}

/// The steps: an array is made, something is done to it again and again, and it is closed.
#[derive(Debug)]
struct Repeated(Beside);

impl StepSource for Repeated {
    fn steps(&self, _: usize) -> hyperslab_core::Result<Steps<'_>> {
        let array: Arc<str> = "array".into();
        let mut steps = vec![
            Step::OpenFile { file: 0, how: OpenMode::Create },
            Step::Create { slot: 0, file: 0, array: 0, name: array.clone() },
        ];
        for number in 0..TIMES {
            match self.0 {
                Beside::Attributes => {
                    let (name, value) = (format!("attribute {number}").into(), Attribute::text("value"));
                    steps.push(Step::Attribute { file: 0, object: array.clone(), name, value });
                }
                Beside::Resizes => {
                    let shape = Dims::from_elem(ELEMENTS + (number + 1) * CHUNK, 1);
                    steps.push(Step::Resize { slot: 0, shape });
                }
                Beside::Flushes => {
                    let selection = Selection::dense(&[number * CHUNK % ELEMENTS], &[CHUNK])?;
                    let (memory, transfer) = (Arc::default(), TransferMode::Independent);
                    steps.push(Step::Write { slot: 0, selection, memory, transfer });
                    steps.push(Step::Flush { file: 0, how: Durability::Visible });
                }
            }
        }
        steps.extend([Step::CloseArray { slot: 0 }, Step::CloseFile { file: 0 }]);
        Ok(Box::new(steps.into_iter().map(Ok)))
    }
}
