//! Steps seen before they are taken, so that a layer can be told what will be read.

use hyperslab_core::workload::Step;
use hyperslab_core::{Result, Selection};
use std::collections::VecDeque;

/// How many steps are seen beforehand.
const STEPS: usize = 8;

/// A rank's steps, with a look at the next ones if that is of use.
pub(crate) struct Ahead<I> {
    steps: I,
    seen: VecDeque<Result<Step>>,
    most: usize,
    /// How many of the seen steps were looked at already.
    told: usize,
}

impl<I: Iterator<Item = Result<Step>>> Ahead<I> {
    /// `look`: whether to look ahead at all.
    pub fn new(steps: I, look: bool) -> Self {
        Self { steps, seen: VecDeque::new(), most: if look { STEPS } else { 0 }, told: 0 }
    }

    /// The next step.
    pub fn next(&mut self) -> Option<Result<Step>> {
        let next = self.seen.pop_front().or_else(|| self.steps.next());
        self.told = self.told.saturating_sub(1);
        while self.seen.len() < self.most
            && let Some(step) = self.steps.next()
        {
            self.seen.push_back(step);
        }
        next
    }

    /// The reads after the step returned last that were not told before, as far as they can be foretold: up to a step
    /// after which a slot may mean another array, or elements may be others'.
    pub fn reads(&mut self) -> impl Iterator<Item = (u32, &Selection)> {
        let plain = |step: &&Result<Step>| {
            matches!(step, Ok(Step::Read { .. } | Step::Compute { .. } | Step::Epoch { .. } | Step::Write { .. }))
        };
        let reach = self.seen.iter().take_while(plain).count();
        let from = self.told.min(reach);
        self.told = self.told.max(reach);
        self.seen.range(from..reach).filter_map(|step| match step {
            Ok(Step::Read { slot, selection, transfer: hyperslab_core::TransferMode::Independent, .. }) => {
                Some((*slot, selection))
            }
            _ => None,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::{MemoryLayout, TransferMode};
    use std::sync::Arc;

    fn read(slot: u32) -> Step {
        let selection = Selection::dense(&[u64::from(slot)], &[1]).unwrap();
        Step::Read { slot, selection, memory: Arc::new(MemoryLayout::packed()), transfer: TransferMode::Independent }
    }

    #[test]
    fn reads_are_told_once_and_up_to_the_next_change() {
        let compute = || Step::Compute { nanoseconds: 1 };
        let steps = vec![compute(), read(1), compute(), read(2), Step::Barrier, read(3), read(4)];
        let mut ahead = Ahead::new(steps.clone().into_iter().map(Ok), true);
        let (mut told, mut taken) = (Vec::new(), Vec::new());
        while let Some(step) = ahead.next() {
            taken.push(step.unwrap());
            told.push(ahead.reads().map(|(slot, _)| slot).collect::<Vec<_>>());
        }
        assert_eq!(taken, steps);
        assert_eq!(told, [vec![1, 2], vec![], vec![], vec![], vec![3, 4], vec![], vec![]]);
        let mut blind = Ahead::new(steps.into_iter().map(Ok), false);
        assert!(blind.next().is_some() && blind.reads().next().is_none());
    }
}
