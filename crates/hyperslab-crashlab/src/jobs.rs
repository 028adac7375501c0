//! Sixteen programs in one directory, each killed at a moment of its own; one recovery for all of them.

use crate::checker::{Program, Verdict};
use crate::report::{Case, CaseTally};
use crate::subject::Subject;
use crate::workshop::{Preload, Workshop, wait};
use anyhow::Result;

const JOBS: usize = 16;

/// One round: each job is a case.
pub fn together(
    workshop: &mut Workshop<'_>,
    subject: Subject,
    program: Program,
    _: u64,
    tally: &mut CaseTally,
) -> Result<()> {
    workshop.clear()?;
    let programs: Vec<Program> =
        (0..JOBS).map(|job| Program { seed: program.seed * 1000 + job as u64, ..program }).collect();
    let mut children = Vec::new();
    for (job, program) in programs.iter().enumerate() {
        // Spread over what programs of this length do.
        let nth = 1 + (program.seed * 37) % (u64::from(program.length) * 12);
        children.push(workshop.command(job, subject, *program, &Preload::Kill(nth)).spawn()?);
    }
    for child in children {
        wait(child, "a job")?;
    }
    let mut before = Vec::new();
    for (job, program) in programs.iter().enumerate() {
        let (progress, failure) = workshop.progress(job);
        before.push((progress, failure, workshop.judge(job, subject, *program, progress)?));
    }
    let refused = workshop.recover(subject, &Preload::Nothing)?.refused;
    for (job, (program, (progress, failure, before))) in programs.iter().zip(before).enumerate() {
        if progress.acked < 0 {
            continue;
        }
        let after = match failure {
            Some(failure) => Verdict::Lost(format!("the program failed: {failure}")),
            None => workshop.judge(job, subject, *program, progress)?,
        };
        let replay = format!("16 jobs, seed {}, operation {} had returned", program.seed, progress.acked);
        let refused = if job == 0 { refused.clone() } else { None };
        tally.count(&Case { replay, before, after, refused });
    }
    Ok(())
}
