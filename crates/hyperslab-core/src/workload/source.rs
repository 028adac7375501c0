//! Where the steps of a workload come from.

use super::Step;
use crate::Result;
use std::fmt::Debug;
use std::sync::Arc;

/// A rank's steps, lazily and in order.
pub type Steps<'a> = Box<dyn Iterator<Item = Result<Step>> + Send + 'a>;

/// The same with the nanoseconds that each took when it was recorded, where that is known.
pub type TimedSteps<'a> = Box<dyn Iterator<Item = Result<(Step, Option<u64>)>> + Send + 'a>;

/// Steps of all ranks in the order of a file: the rank, or all, the recorded time, and the step.
pub type WrittenSteps<'a> = Box<dyn Iterator<Item = Result<(Option<usize>, Option<u64>, Step)>> + Send + 'a>;

/// Where a workload's steps come from: a kernel's generator, or a file. Each call starts the rank's stream anew.
pub trait StepSource: Send + Sync + Debug {
    /// The steps of `rank`, lazily and in order.
    fn steps(&self, rank: usize) -> Result<Steps<'_>>;

    /// The same with recorded times; most sources have none.
    fn timed_steps(&self, rank: usize) -> Result<TimedSteps<'_>> {
        Ok(Box::new(self.steps(rank)?.map(|step| step.map(|step| (step, None)))))
    }

    /// All steps as they are written down, if they are: reading a file once is better than once for every rank.
    fn written_steps(&self) -> Option<Result<WrittenSteps<'_>>> {
        None
    }
}

/// `source` without its compute steps.
pub(super) fn without_compute(source: Arc<dyn StepSource>) -> Arc<dyn StepSource> {
    Arc::new(WithoutCompute(source))
}

#[derive(Debug)]
struct WithoutCompute(Arc<dyn StepSource>);

impl StepSource for WithoutCompute {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        Ok(Box::new(self.0.steps(rank)?.filter(|step| !matches!(step, Ok(Step::Compute { .. })))))
    }

    fn timed_steps(&self, rank: usize) -> Result<TimedSteps<'_>> {
        Ok(Box::new(self.0.timed_steps(rank)?.filter(|step| !matches!(step, Ok((Step::Compute { .. }, _))))))
    }

    fn written_steps(&self) -> Option<Result<WrittenSteps<'_>>> {
        let steps = self.0.written_steps()?;
        Some(steps.map(|steps| -> WrittenSteps<'_> {
            Box::new(steps.filter(|step| !matches!(step, Ok((_, _, Step::Compute { .. })))))
        }))
    }
}
