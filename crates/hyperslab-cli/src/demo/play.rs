//! One side of the comparison: a stack, and the run on it.

use super::probe::{Probe, Seen};
use super::timeline::Timeline;
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{Error, Format, Result, Stack};
use hyperslab_run::{Case, Progress, open_stack, run_case};
use std::path::Path;
use std::sync::Arc;

/// A stack that the workload is played on.
#[derive(Debug)]
pub struct Side {
    /// What people call it.
    pub name: &'static str,
    /// As the user wrote it.
    pub stack: Stack,
    format: Arc<dyn Format>,
    seen: Arc<Seen>,
}

impl Side {
    /// Builds the stack. What is done below its first `above` layers by other threads than the program's is the
    /// background.
    pub fn new(name: &'static str, stack: Stack, above: usize) -> Result<Self> {
        hyperslab_layers::check_order(&stack)?;
        let (upper, lower) = stack.layers.split_at(above.min(stack.layers.len()));
        let seen = Arc::default();
        let below = open_stack(&Stack { layers: lower.to_vec(), format: stack.format.clone() })?;
        let probe: Arc<dyn Format> = Arc::new(Probe::new(below, &seen));
        let upper = Stack { layers: upper.to_vec(), format: stack.format.clone() };
        let format = hyperslab_layers::build(&upper, probe).map_err(|error| error.target(&stack))?;
        Ok(Self { name, stack, format, seen })
    }

    /// Plays the workload once in `folder`, compares all data, and removes them.
    pub fn play(&self, workload: &Workload, folder: &Path, progress: &Progress) -> Result<Timeline> {
        let mut case = Case::new(workload, self.format.clone(), folder, progress);
        case.verify = true;
        case.samples = Some(folder.join(self.name));
        let outcome = run_case(&case);
        for warning in &outcome.warnings {
            eprintln!("note: {warning}");
        }
        if let Some(error) = outcome.failure {
            return Err(error);
        }
        for file in &workload.header.files {
            self.format.remove(&folder.join(&file.name))?;
        }
        let rank = outcome.repetitions.first().and_then(|repetition| repetition.ranks.first());
        let measured = rank.ok_or_else(|| Error::invalid("run workload", "there was no repetition"))?;
        let samples = folder.join(format!("{}-repetition-1-rank-0.csv", self.name));
        let samples = std::fs::read_to_string(&samples).map_err(|error| Error::io("read samples", error))?;
        let computes = |(number, step): (u64, Result<Step>)| match step {
            Ok(Step::Compute { .. }) => Some(Ok(number)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        };
        let computes = (0..).zip(workload.steps(0)?).filter_map(computes).collect::<Result<Vec<u64>>>()?;
        Timeline::new(&samples, &computes, measured, self.seen.background())
    }
}
