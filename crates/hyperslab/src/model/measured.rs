//! Measuring one trial.

use super::timings::Timing;
use super::trial::{Access, Trial};
use anyhow::Result;
use hyperslab_core::Format;
use hyperslab_core::workload::Workload;
use hyperslab_run::{Cache, Case, Progress, Repetition, run_case};
use std::path::Path;
use std::sync::Arc;

/// What all trials of a run have in common.
pub struct Bench<'a> {
    /// Where files are made.
    pub directory: &'a Path,
    /// How often each access is measured.
    pub repeat: usize,
    /// The wish to stop.
    pub progress: &'a Progress,
}

/// How many timings a trial gives: each access warm, some reads and one write cold.
pub const TIMINGS_OF_A_TRIAL: usize = Access::WRITES.len() + Access::READS.len() + 1 + Access::COLD_READS.len();

impl Bench<'_> {
    /// Measures all accesses of a trial, and removes its file. Also says what disturbed.
    pub fn measure(&self, trial: &Trial) -> Result<(Vec<Timing>, Vec<String>)> {
        let format = hyperslab_run::resolve(&trial.stack)?;
        let file = format!("train.{}", format.extension());
        let measured = self.accesses(trial, &format, &file);
        let path = self.directory.join(&file);
        if format.exists(&path)? {
            format.remove(&path)?;
        }
        measured
    }

    fn accesses(&self, trial: &Trial, format: &Arc<dyn Format>, file: &str) -> Result<(Vec<Timing>, Vec<String>)> {
        let (mut timings, mut warnings) = (Vec::new(), Vec::new());
        let mut take = |workload: &Workload, direction: &str, access: Access, cache: Cache| -> Result<()> {
            let repetitions = self.run(workload, format, cache, &mut warnings)?;
            timings.push(Timing {
                trial: trial.name(),
                direction: direction.into(),
                access: access.name().into(),
                cache: cache.name().into(),
                ranks: workload.header.ranks,
                seconds: repetitions.iter().map(|repetition| repetition.observed().max(1e-9)).collect(),
            });
            Ok(())
        };
        take(&trial.write(file, Access::Whole, true)?, "write", Access::Whole, Cache::Cold)?;
        for access in Access::WRITES.into_iter().rev() {
            take(&trial.write(file, access, false)?, "write", access, Cache::Warm)?;
        }
        for access in Access::READS {
            take(&trial.read(file, access)?, "read", access, Cache::Warm)?;
        }
        for access in Access::COLD_READS {
            take(&trial.read(file, access)?, "read", access, Cache::Cold)?;
        }
        Ok((timings, warnings))
    }

    /// Writes an array by several ranks, and returns the middle of the times.
    pub fn seconds_of_ranks(&self, trial: &Trial, ranks: usize) -> Result<Timing> {
        let format = hyperslab_run::resolve(&trial.stack)?;
        let file = format!("train.{}", format.extension());
        let repetitions = self.run(&trial.write_by(&file, ranks)?, &format, Cache::Warm, &mut Vec::new());
        let path = self.directory.join(&file);
        if format.exists(&path)? {
            format.remove(&path)?;
        }
        Ok(Timing {
            trial: trial.name(),
            direction: "write".into(),
            access: "shares".into(),
            cache: "warm".into(),
            ranks,
            seconds: repetitions?.iter().map(|repetition| repetition.observed().max(1e-9)).collect(),
        })
    }

    fn run(
        &self,
        workload: &Workload,
        format: &Arc<dyn Format>,
        cache: Cache,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Repetition>> {
        let usual = Case::new(workload, format.clone(), self.directory, self.progress);
        let warm_up = usize::from(cache == Cache::Warm);
        let outcome = run_case(&Case { cache, warm_up, repeat: self.repeat, overwrite: true, ..usual });
        if let Some(error) = outcome.failure {
            return Err(error.into());
        }
        warnings.extend(outcome.warnings.into_iter().filter(|warning| warning.starts_with("not cold")));
        Ok(outcome.repetitions)
    }
}
