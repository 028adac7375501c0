//! Step streams of kernels that are made a batch at a time.

use hyperslab_core::Result;
use hyperslab_core::workload::{Header, Step, StepSource, Steps, Workload};
use std::fmt::Debug;
use std::sync::Arc;

/// A kernel as numbered batches of steps, each made when it is due, so that memory does not grow with their number.
pub trait StepBatches: Send + Sync + Debug {
    /// What is worked out once for a rank, such as its selections.
    type Rank: Send;

    /// Works it out.
    fn rank(&self, rank: usize) -> Result<Self::Rank>;
    /// Number of batches; the same for all ranks.
    fn batches(&self) -> u64;
    /// The steps of batch `number`.
    fn batch(&self, rank: &Self::Rank, number: u64) -> Result<Vec<Step>>;
}

#[derive(Debug)]
struct Batched<B>(B);

impl<B: StepBatches> StepSource for Batched<B> {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let state = self.0.rank(rank)?;
        Ok(Box::new((0..self.0.batches()).flat_map(move |number| match self.0.batch(&state, number) {
            Ok(steps) => steps.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        })))
    }
}

/// The checked workload of these batches.
pub fn workload(header: Header, batches: impl StepBatches + 'static) -> Result<Workload> {
    Workload::new(header, Arc::new(Batched(batches)))
}
