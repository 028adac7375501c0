//! What is measured better, and not by chance: the program is run as it is and as proposed, in turns.
//!
//! A proposal is chosen by a first few runs and judged by other ones, so that it is not advised because it was lucky
//! when it was chosen.

use super::proposal::Proposal;
use super::recorded_program::RecordedProgram;
use super::timed_run::{Manner, Runner, TimedRun, Unusable};
use anyhow::Result;
use hyperslab_report::ratio::{self, Ratio};
use std::time::{Duration, Instant};

/// Runs of each proposal by which the best is chosen.
const SCREENED: usize = 2;
/// Pairs of runs by which it is judged, and how many there may be while nothing can be told.
const PAIRS: usize = 5;
const MOST_PAIRS: usize = 9;
/// After its first run a proposal that takes this much longer is given up.
const HOPELESS: f64 = 1.15;
/// A run is ended when it takes so many times as long as the program does, and as many seconds more.
const LONGEST: f64 = 3.0;
const LONGER: f64 = 5.0;
/// A gain below this part of the time is not worth a change.
pub const WORTH: f64 = 0.03;
/// Proposals that are judged one after the other, if the better ones fail.
const TRIED: usize = 2;

/// Compares proposals with the program as it is.
pub struct Comparison<'a> {
    /// Runs the program.
    pub runner: &'a Runner<'a>,
    /// What it does.
    pub recorded: &'a RecordedProgram,
    /// Whether its files are netCDF's.
    pub netcdf: bool,
    /// Seconds that it took once.
    pub usual: f64,
    /// When to begin nothing more.
    pub end: Instant,
    /// Runs that were made.
    pub runs: usize,
    /// Whether others keep the machine busy. Times of proposals that run on one processor are then those of processors.
    pub busy: bool,
    /// Whether something was left out for lack of time.
    pub partial: bool,
    /// Proposals that were run, with what became of them.
    pub tried: Vec<Tried>,
}

/// A proposal that was run.
#[derive(Debug, Clone)]
pub struct Tried {
    /// What was tried.
    pub proposal: Proposal,
    /// The least seconds of its first runs; `None` if it was of no use.
    pub seconds: Option<f64>,
    /// The least seconds of the program as it is beside it.
    pub beside: f64,
    /// Why it was of no use.
    pub why: String,
}

/// What was found better.
#[derive(Debug, Clone)]
pub struct Better {
    /// What is better.
    pub proposal: Proposal,
    /// Whether times are those of processors.
    pub of_processors: bool,
    /// Medians of the seconds as it is and as proposed.
    pub medians: [f64; 2],
    /// Seconds as proposed by seconds as it is, with the 95 % interval.
    pub ratio: Ratio,
    /// Pairs of runs.
    pub pairs: usize,
    /// A run as it is, below a connector that passes all calls on, made beside the others.
    pub before: TimedRun,
    /// The run as proposed that is in the middle.
    pub middle: TimedRun,
}

impl Comparison<'_> {
    /// The best of the proposals, if it is better beyond noise than `base`, or than the program as it is.
    pub fn best_of(&mut self, proposals: &[Proposal], base: Option<&Proposal>) -> Result<Option<Better>> {
        let chosen = self.screen(proposals, base)?;
        for proposal in chosen.iter().take(TRIED) {
            if let Some(better) = self.judge(proposal, base)? {
                return Ok(Some(better));
            }
        }
        Ok(None)
    }

    /// The proposals that may be better, the best first.
    fn screen(&mut self, proposals: &[Proposal], beside: Option<&Proposal>) -> Result<Vec<Proposal>> {
        if proposals.is_empty() {
            return Ok(Vec::new());
        }
        if Instant::now() > self.end {
            self.partial = true;
            return Ok(Vec::new());
        }
        let mut base: Vec<f64> = Vec::new();
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); proposals.len()];
        let mut given_up: Vec<Option<String>> = vec![None; proposals.len()];
        for round in 0..SCREENED {
            let run = self.base(beside)?;
            base.push(self.time(&run, proposals));
            for (number, proposal) in proposals.iter().enumerate() {
                if given_up[number].is_some() {
                    continue;
                }
                if Instant::now() > self.end {
                    self.partial = true;
                    if times[number].is_empty() {
                        given_up[number] = Some("there was no time for it".into());
                    }
                    continue;
                }
                match self.proposed(proposal)? {
                    Ok(run) => {
                        let seconds = self.time(&run, proposals);
                        times[number].push(seconds);
                        if round == 0 && seconds > HOPELESS * least(&base) {
                            given_up[number] = Some("it was slower".into());
                        }
                    }
                    Err(why) => given_up[number] = Some(why),
                }
            }
        }
        let mut promising: Vec<(f64, Proposal)> = Vec::new();
        for ((proposal, times), why) in proposals.iter().zip(&times).zip(given_up) {
            let seconds = Some(least(times)).filter(|seconds| seconds.is_finite());
            let gains = seconds.filter(|seconds| why.is_none() && *seconds < (1.0 - WORTH) * least(&base));
            promising.extend(gains.map(|seconds| (seconds, proposal.clone())));
            let why = why.unwrap_or_default();
            self.tried.push(Tried { proposal: proposal.clone(), seconds, beside: least(&base), why });
        }
        promising.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(promising.into_iter().map(|(_, proposal)| proposal).collect())
    }

    /// Runs one proposal and the program as it is in turns, until it can be told which is faster.
    fn judge(&mut self, proposal: &Proposal, beside: Option<&Proposal>) -> Result<Option<Better>> {
        let (mut base, mut runs): (Vec<f64>, Vec<TimedRun>) = (Vec::new(), Vec::new());
        let one = std::slice::from_ref(proposal);
        let before = self.watched(beside)?;
        for pair in 0..MOST_PAIRS {
            if Instant::now() > self.end {
                self.partial = true;
                break;
            }
            // Each is first as often as the other.
            let run = if pair % 2 == 0 {
                let run = self.base(beside)?;
                base.push(self.time(&run, one));
                self.proposed(proposal)?
            } else {
                let proposed = self.proposed(proposal)?;
                let run = self.base(beside)?;
                base.push(self.time(&run, one));
                proposed
            };
            let Ok(run) = run else { return Ok(None) };
            runs.push(run);
            if pair + 1 < PAIRS {
                continue;
            }
            let times: Vec<f64> = runs.iter().map(|run| self.time(run, one)).collect();
            let Some((medians, ratio)) = ratio::of_medians(&base, &times) else { return Ok(None) };
            let Some([low, high]) = ratio.interval else { return Ok(None) };
            if high < 1.0 && ratio.value <= 1.0 - WORTH {
                let of_processors = self.of_processors(one);
                runs.sort_by(|a, b| self.time(a, one).total_cmp(&self.time(b, one)));
                let middle = runs.swap_remove(runs.len() / 2);
                return Ok(Some(Better {
                    proposal: proposal.clone(),
                    of_processors,
                    medians,
                    ratio,
                    pairs: pair + 1,
                    before,
                    middle,
                }));
            }
            if low > 1.0 - WORTH {
                break;
            }
        }
        Ok(None)
    }

    /// Whether proposals are compared by the time of processors: where others keep these busy, and no mode of the connector
    /// makes a program use more of them.
    fn of_processors(&self, proposals: &[Proposal]) -> bool {
        self.busy && proposals.iter().all(|proposal| proposal.modes.is_none())
    }

    /// The time by which these proposals are compared.
    fn time(&self, run: &TimedRun, proposals: &[Proposal]) -> f64 {
        if self.of_processors(proposals) { run.processor } else { run.seconds }
    }

    /// A run of what proposals are compared with.
    fn base(&mut self, beside: Option<&Proposal>) -> Result<TimedRun> {
        match beside {
            None => self.alone(),
            Some(proposal) => match self.proposed(proposal)? {
                Ok(run) => Ok(run),
                Err(why) => anyhow::bail!("what was found better did not end well when it was run again: {why}"),
            },
        }
    }

    /// The same with the times of its phases.
    fn watched(&mut self, beside: Option<&Proposal>) -> Result<TimedRun> {
        let usual = Proposal::default();
        match self.proposed(beside.unwrap_or(&usual))? {
            Ok(run) => Ok(run),
            Err(why) => anyhow::bail!("the program did not end well when it was run again: {why}"),
        }
    }

    /// A run of the program as it is.
    fn alone(&mut self) -> Result<TimedRun> {
        self.runs += 1;
        let outcome = self.runner.run(&Manner::Alone, &self.recorded.outputs(), None)?;
        match outcome.fate {
            Ok(()) => Ok(outcome.run),
            Err(Unusable::Failed(why)) => {
                anyhow::bail!("the program did not end well when it was run again: {why}")
            }
            Err(Unusable::TooLong) => anyhow::bail!("the program did not end"),
        }
    }

    /// A run as proposed, or why it is of no use.
    fn proposed(&mut self, proposal: &Proposal) -> Result<Result<TimedRun, String>> {
        self.runs += 1;
        let manner = Manner::Proposed(proposal, self.recorded, self.netcdf);
        let outcome = self.runner.run(&manner, &self.recorded.outputs(), Some(LONGEST * self.usual + LONGER))?;
        Ok(match outcome.fate {
            Err(Unusable::TooLong) => Err("it was much slower".into()),
            Err(Unusable::Failed(why)) => Err(why),
            Ok(()) if !proposal.keeps_storage() && outcome.run.overridden == 0 => {
                Err("its datasets had other names in this run".into())
            }
            Ok(()) => Ok(outcome.run),
        })
    }

    /// Until when proposals may be run, if the user gives it so long.
    pub fn until(budget: Duration) -> Instant {
        Instant::now() + budget
    }
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}
