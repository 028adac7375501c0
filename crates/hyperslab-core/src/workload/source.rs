//! Sources of workload steps.

use super::Step;
use crate::{Result, TransferMode};
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

    /// All steps in file order, if the source is a file: one pass instead of one per rank.
    fn written_steps(&self) -> Option<Result<WrittenSteps<'_>>> {
        None
    }
}

/// A mapping of steps; `None` drops the step.
type Change = fn(Step) -> Option<Step>;

/// `source` without its compute steps.
pub(super) fn without_compute(source: Arc<dyn StepSource>) -> Arc<dyn StepSource> {
    Arc::new(Changed { source, change: |step| (!matches!(step, Step::Compute { .. })).then_some(step) })
}

/// `source` with all transfers independent, or all collective.
pub(super) fn with_transfers(source: Arc<dyn StepSource>, transfer: TransferMode) -> Arc<dyn StepSource> {
    let change: Change = match transfer {
        TransferMode::Independent => |step| Some(transferred(step, TransferMode::Independent)),
        TransferMode::Collective => |step| Some(transferred(step, TransferMode::Collective)),
    };
    Arc::new(Changed { source, change })
}

fn transferred(mut step: Step, how: TransferMode) -> Step {
    if let Step::Write { transfer, .. } | Step::Read { transfer, .. } = &mut step {
        *transfer = how;
    }
    step
}

#[derive(Debug)]
struct Changed {
    source: Arc<dyn StepSource>,
    change: Change,
}

impl StepSource for Changed {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let change = |step: Result<Step>| step.map(self.change).transpose();
        Ok(Box::new(self.source.steps(rank)?.filter_map(change)))
    }

    fn timed_steps(&self, rank: usize) -> Result<TimedSteps<'_>> {
        let change = |(step, took): (Step, Option<u64>)| Some(((self.change)(step)?, took));
        Ok(Box::new(self.source.timed_steps(rank)?.filter_map(move |step| step.map(change).transpose())))
    }

    fn written_steps(&self) -> Option<Result<WrittenSteps<'_>>> {
        let change = |(rank, took, step): (Option<usize>, Option<u64>, Step)| Some((rank, took, (self.change)(step)?));
        let steps = self.source.written_steps()?;
        Some(
            steps.map(|steps| -> WrittenSteps<'_> {
                Box::new(steps.filter_map(move |step| step.map(change).transpose()))
            }),
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Selection;

    #[derive(Debug)]
    struct Fixed;

    impl StepSource for Fixed {
        fn steps(&self, _: usize) -> Result<Steps<'_>> {
            let (selection, memory, transfer) = (Selection::all(&[4])?, Arc::default(), TransferMode::Independent);
            let steps = [
                Step::Write { slot: 0, selection: selection.clone(), memory: Arc::clone(&memory), transfer },
                Step::Compute { nanoseconds: 1 },
                Step::Read { slot: 0, selection, memory, transfer: TransferMode::Collective },
            ];
            Ok(Box::new(steps.into_iter().map(Ok)))
        }

        fn written_steps(&self) -> Option<Result<WrittenSteps<'_>>> {
            let written = |steps: Steps<'static>| -> WrittenSteps<'_> {
                Box::new(steps.map(|step| step.map(|step| (None, None, step))))
            };
            Some(Self.steps(0).map(|steps| written(Box::new(steps.collect::<Vec<_>>().into_iter()))))
        }
    }

    /// How transfers are made, and how many steps there are, by each of the three ways to ask for them.
    fn seen(source: &dyn StepSource) -> Vec<(Vec<TransferMode>, usize)> {
        let transfer = |step: &Step| match step {
            Step::Write { transfer, .. } | Step::Read { transfer, .. } => Some(*transfer),
            _ => None,
        };
        let steps: Vec<Step> = source.steps(0).unwrap().map(Result::unwrap).collect();
        let timed: Vec<Step> = source.timed_steps(0).unwrap().map(|step| step.unwrap().0).collect();
        let written: Vec<Step> = source.written_steps().unwrap().unwrap().map(|step| step.unwrap().2).collect();
        [steps, timed, written].iter().map(|all| (all.iter().filter_map(transfer).collect(), all.len())).collect()
    }

    #[test]
    fn steps_are_changed_however_they_are_asked_for() {
        let (alone, together) = (TransferMode::Independent, TransferMode::Collective);
        assert_eq!(seen(&*without_compute(Arc::new(Fixed))), vec![(vec![alone, together], 2); 3]);
        assert_eq!(seen(&*with_transfers(Arc::new(Fixed), together)), vec![(vec![together; 2], 3); 3]);
        assert_eq!(seen(&*with_transfers(Arc::new(Fixed), alone)), vec![(vec![alone; 2], 3); 3]);
    }
}
