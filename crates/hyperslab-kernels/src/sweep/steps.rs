//! The steps of the exerciser kernel: a handful, with a barrier before each so that no call waits for another rank's.

use super::Sweep;
use crate::shared_file;
use hyperslab_core::workload::{Step, StepSource};
use hyperslab_core::{Attribute, ByteOrder, Datatype, MemoryLayout, Result};
use std::sync::Arc;

/// The steps of one rank.
pub type StepsOf = fn(&Sweep, usize) -> Result<Vec<Step>>;

#[derive(Debug)]
pub struct Turn {
    pub sweep: Sweep,
    pub steps: StepsOf,
}

impl StepSource for Turn {
    fn steps(&self, rank: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
        Ok(Box::new((self.steps)(&self.sweep, rank)?.into_iter().map(Ok)))
    }
}

const GROUP: &str = "Data";
const DERIVED_GROUP: &str = "Data/derivedData";
const DERIVED_NAME: &str = "Data/derivedData/simulation parameters";
const ATTRIBUTES: usize = 64;
const ATTRIBUTE_BYTES: usize = 1024;
/// The one array that is open at a time.
const SLOT: u32 = 0;
/// Numbers of the declarations.
const DOUBLES: u32 = 0;
const COMPOUNDS: u32 = 1;

pub fn writing(sweep: &Sweep, rank: usize) -> Result<Vec<Step>> {
    let mut steps = shared_file::create(sweep.seed);
    steps.extend([Step::Barrier, Step::Group { file: 0, name: GROUP.into() }]);
    if sweep.attributes {
        steps.push(Step::Barrier);
        steps.extend((0..ATTRIBUTES).map(attribute));
    }
    steps.extend([Step::Barrier, Step::Create { slot: SLOT, file: 0, array: DOUBLES, name: name(sweep)? }]);
    let (selection, memory, transfer) = (sweep.doubles_of(rank, 1)?, Arc::new(sweep.memory()?), sweep.transfer);
    steps.extend([Step::Barrier, Step::Write { slot: SLOT, selection, memory, transfer }]);
    steps.extend([Step::Barrier, Step::CloseArray { slot: SLOT }]);
    if sweep.derived {
        let (selection, memory) = (sweep.compounds_of(rank)?, Arc::new(MemoryLayout::packed()));
        let create = Step::Create { slot: SLOT, file: 0, array: COMPOUNDS, name: DERIVED_NAME.into() };
        steps.extend([Step::Barrier, Step::Group { file: 0, name: DERIVED_GROUP.into() }, Step::Barrier, create]);
        steps.extend([Step::Barrier, Step::Write { slot: SLOT, selection, memory, transfer }]);
        steps.extend([Step::Barrier, Step::CloseArray { slot: SLOT }]);
    }
    steps.extend(shared_file::flush_and_close());
    Ok(steps)
}

pub fn reading(sweep: &Sweep, rank: usize) -> Result<Vec<Step>> {
    let mut steps = shared_file::open();
    steps.extend([Step::Barrier, Step::Open { slot: SLOT, file: 0, array: DOUBLES, name: name(sweep)? }]);
    let (selection, memory, transfer) = (sweep.doubles_of(rank, 2)?, Arc::new(sweep.memory()?), sweep.transfer);
    steps.extend([Step::Barrier, Step::Read { slot: SLOT, selection, memory, transfer }]);
    steps.extend([Step::Barrier, Step::CloseArray { slot: SLOT }]);
    steps.extend(shared_file::close());
    Ok(steps)
}

/// Every repetition writes a new file, so that all are the first iteration.
fn name(sweep: &Sweep) -> Result<Arc<str>> {
    Ok(format!("{GROUP}/hdf5DataSet1-iter0-size{}", sweep.memory_elements()?).into())
}

fn attribute(number: usize) -> Step {
    let mut data = format!("Value of attribute {number}").into_bytes();
    data.resize(ATTRIBUTE_BYTES, 0);
    let dtype = Datatype::Integer { size: 1, signed: true, order: ByteOrder::NATIVE };
    let value = Attribute { dtype, shape: [ATTRIBUTE_BYTES as u64].as_slice().into(), data };
    Step::Attribute { file: 0, object: GROUP.into(), name: format!("Attribute {number} Name").into(), value }
}
