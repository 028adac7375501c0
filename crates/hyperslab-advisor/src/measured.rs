//! Measuring one trial.

use super::measurement::{Access, Measurement};
use super::metadata_ops::Beside;
use super::timings::Timing;
use anyhow::{Context, Result};
use hyperslab_bench::Launch;
use hyperslab_core::CacheState;
use hyperslab_core::Format;
use hyperslab_core::workload::Workload;
use hyperslab_model::RankKind;
use hyperslab_run::{Case, Progress, Ranks, ThreadRanks, run_case};
use rustix::fs::{IFlags, Mode, OFlags, ioctl_getflags, ioctl_setflags, open};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// What all trials of a run have in common.
pub struct Bench<'a> {
    /// Where directories for files are made; removed with the bench.
    directory: PathBuf,
    /// The wish to stop.
    pub progress: &'a Progress,
}

/// How many timings a trial gives: each access warm, some reads and one write cold.
pub const TIMINGS_OF_A_TRIAL: usize = Access::WRITES.len() + Access::READS.len() + 1 + Access::COLD_READS.len();

/// How often something is measured with several ranks. Processes take much longer to start than to transfer.
fn runs_of_ranks(kind: RankKind) -> usize {
    match kind {
        RankKind::Threads => 7,
        RankKind::Processes => 2,
    }
}

/// What takes fewer seconds than this is disturbed most by what else the machine does, and repeated at little cost.
const SHORT: f64 = 0.02;
/// How often, then, in each round. The durable write is measured once in every round all the same.
const RUNS_OF_SHORT: usize = 3;

/// How often something else than transfers is measured: it is all short.
const RUNS_BESIDE: usize = 7;

/// The words in timings for an array that ranks share.
pub fn shares(kind: RankKind) -> String {
    format!("shares of {}", kind.name())
}

/// The words for arrays that are only made, or opened.
pub fn openings(kind: RankKind) -> String {
    format!("openings by {}", kind.name())
}

fn launch(kind: RankKind, ranks: usize) -> Result<Launch> {
    match kind {
        RankKind::Threads => Ok(Launch::Threads),
        RankKind::Processes => Launch::usual_processes(ranks),
    }
}

impl<'a> Bench<'a> {
    /// Makes a directory for files inside another one.
    pub fn new(inside: &Path, progress: &'a Progress) -> Result<Self> {
        let directory = inside.join("files");
        remove(&directory)
            .and_then(|()| fs::create_dir_all(&directory))
            .with_context(|| format!("make an empty directory {}", directory.display()))?;
        spread(&directory);
        Ok(Self { directory, progress })
    }

    /// Measures all accesses of a trial once, and removes its files. Also says what disturbed.
    pub fn measure(&self, trial: &Measurement) -> Result<(Vec<Timing>, Vec<String>)> {
        let format = hyperslab_run::open_stack(&trial.stack)?;
        let file = format!("train.{}", format.extension());
        let (mut timings, mut warnings) = (Vec::new(), Vec::new());
        let mut take = |direction: &str, access: Access, cache: CacheState, seconds: Vec<f64>| {
            timings.push(Timing {
                trial: trial.name(),
                direction: direction.into(),
                access: access.name().into(),
                cache: cache.name().into(),
                ranks: 1,
                seconds,
            });
        };
        let durable = trial.write(&file, Access::Whole, true)?;
        let (seconds, _) = self.made(&durable, &format, (CacheState::Cold, &ThreadRanks), 1)?;
        take("write", Access::Whole, CacheState::Cold, seconds);
        for access in Access::WRITES.into_iter().filter(|access| *access != Access::Whole) {
            let (seconds, _) = self.made_often(&trial.write(&file, access, false)?, &format)?;
            take("write", access, CacheState::Warm, seconds);
        }
        let (seconds, made) = self.made_often(&trial.write(&file, Access::Whole, false)?, &format)?;
        take("write", Access::Whole, CacheState::Warm, seconds);
        let warm = Access::READS.map(|access| (access, CacheState::Warm));
        let cold = Access::COLD_READS.map(|access| (access, CacheState::Cold));
        for (access, cache) in warm.into_iter().chain(cold) {
            let workload = trial.read(&file, access)?;
            let usual = Case::new(&workload, format.clone(), made.path(), self.progress);
            let warm_up = usize::from(cache == CacheState::Warm);
            let (mut seconds, disturbed) = run(&Case { cache, warm_up, ..usual })?;
            warnings.extend(disturbed);
            if more(&seconds) > 0 {
                let usual = Case::new(&workload, format.clone(), made.path(), self.progress);
                seconds.extend(run(&Case { cache, repeat: more(&seconds), ..usual })?.0);
            }
            take("read", access, cache, seconds);
        }
        Ok((timings, warnings))
    }

    /// Has several ranks write an array, and read it.
    pub fn shared(&self, trial: &Measurement, kind: RankKind, ranks: usize) -> Result<Vec<Timing>> {
        let workload = |file: &str, makes: bool| trial.shared(file, ranks, makes);
        self.of_ranks(trial, (kind, ranks, runs_of_ranks(kind)), &shares(kind), &workload)
    }

    /// Has several ranks make arrays, and open them.
    pub fn opened(&self, trial: &Measurement, kind: RankKind, ranks: usize) -> Result<Vec<Timing>> {
        let workload = |file: &str, makes: bool| trial.opened(file, ranks, makes);
        self.of_ranks(trial, (kind, ranks, runs_of_ranks(kind).div_ceil(2)), &openings(kind), &workload)
    }

    /// Does something else than transfers to an array.
    pub fn beside(&self, trial: &Measurement, what: Beside) -> Result<Timing> {
        let format = hyperslab_run::open_stack(&trial.stack)?;
        let workload = what.workload(trial, &format!("train.{}", format.extension()))?;
        let (seconds, _) = self.made(&workload, &format, (CacheState::Warm, &ThreadRanks), RUNS_BESIDE)?;
        Ok(Timing {
            trial: trial.name(),
            direction: "write".into(),
            access: what.name().into(),
            cache: CacheState::Warm.name().into(),
            ranks: 1,
            seconds,
        })
    }

    /// Runs a workload that makes a file, and one that reads it, on ranks of a kind, some times.
    fn of_ranks(
        &self,
        trial: &Measurement,
        (kind, ranks, times): (RankKind, usize, usize),
        access: &str,
        workload: &dyn Fn(&str, bool) -> hyperslab_core::Result<Workload>,
    ) -> Result<Vec<Timing>> {
        let format = hyperslab_run::open_stack(&trial.stack)?;
        let file = format!("train.{}", format.extension());
        let launch = launch(kind, ranks)?;
        let workers = launch.ranks(&trial.stack, &self.directory, 1);
        let timing = |direction: &str, seconds: Vec<f64>| Timing {
            trial: trial.name(),
            direction: direction.into(),
            access: access.into(),
            cache: CacheState::Warm.name().into(),
            ranks,
            seconds,
        };
        let (written, made) = self.made(&workload(&file, true)?, &format, (CacheState::Warm, &*workers), times)?;
        let opened = workload(&file, false)?;
        let usual = Case::new(&opened, format.clone(), made.path(), self.progress);
        let (read, _) = run(&Case { ranks: &*workers, repeat: times, ..usual })?;
        Ok(vec![timing("write", written), timing("read", read)])
    }

    /// Runs a workload that makes a file, more than once if it is short. Returns the last file.
    fn made_often(&self, workload: &Workload, format: &Arc<dyn Format>) -> Result<(Vec<f64>, TempDir)> {
        let (mut seconds, mut made) = self.made(workload, format, (CacheState::Warm, &ThreadRanks), 1)?;
        if more(&seconds) > 0 {
            drop(made);
            let (again, last) = self.made(workload, format, (CacheState::Warm, &ThreadRanks), more(&seconds))?;
            seconds.extend(again);
            made = last;
        }
        Ok((seconds, made))
    }

    /// Runs a workload that makes a file, every time in a directory of its own. Returns the last one.
    fn made(
        &self,
        workload: &Workload,
        format: &Arc<dyn Format>,
        (cache, ranks): (CacheState, &dyn Ranks),
        times: usize,
    ) -> Result<(Vec<f64>, TempDir)> {
        let fresh = || TempDir::with_prefix_in("trial-", &self.directory).context("make a directory for a trial");
        let (mut seconds, mut last) = (Vec::new(), fresh()?);
        for repetition in 0..times {
            if repetition > 0 {
                last = fresh()?;
            }
            let usual = Case::new(workload, format.clone(), last.path(), self.progress);
            seconds.extend(run(&Case { cache, ranks, ..usual })?.0);
        }
        Ok((seconds, last))
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next run.
        let _ = remove(&self.directory);
    }
}

fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Asks the file system to put directories inside this one far from each other. ext4 looks at the place of every file
/// that was removed nearby within the last minute when it makes one: without this, a trial would be slowed down by the
/// files of those before it. Other file systems do not know the wish.
pub fn spread(directory: &Path) {
    if let Ok(opened) = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        && let Ok(flags) = ioctl_getflags(&opened)
    {
        let _ = ioctl_setflags(&opened, flags | IFlags::TOPDIR);
    }
}

/// How often what took so long once is run again.
fn more(seconds: &[f64]) -> usize {
    if seconds.iter().all(|s| *s < SHORT) { RUNS_OF_SHORT - 1 } else { 0 }
}

/// Seconds of every repetition, and what disturbed.
fn run(case: &Case<'_>) -> Result<(Vec<f64>, Vec<String>)> {
    let outcome = run_case(case);
    if let Some(error) = outcome.failure {
        return Err(error.into());
    }
    let seconds = outcome.repetitions.iter().map(|repetition| repetition.observed().max(1e-9)).collect();
    let disturbed = outcome.warnings.into_iter().filter(|warning| warning.starts_with("not cold")).collect();
    Ok((seconds, disturbed))
}
