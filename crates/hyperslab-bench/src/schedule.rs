//! Which points of a sweep run, in which order, and what they are expected to take.

use super::plan::{Plan, PlannedCase};
use crate::options::BenchOptions;
use anyhow::Result;
use hyperslab_core::units::display_size;
use hyperslab_report::table::{Align, Table};
use hyperslab_run::{Results, Status};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Rows of the table that is shown before a sweep.
const MOST_ROWS: usize = 40;
/// What remains of a budget for what no prediction knows: starting, making data, comparing.
const USABLE: f64 = 0.9;

/// Says what each case of a plan takes once, in seconds, where that is known.
pub type Estimate = dyn Fn(&Plan) -> Vec<Option<f64>>;

/// The points of a sweep that are to run.
pub struct Schedule {
    /// In the order of running.
    points: Vec<usize>,
    /// Seconds of all runs of each case, where that is known beforehand.
    seconds: Vec<Option<f64>>,
    budget: Option<Duration>,
}

/// Runs of a case, warm-up included; comparing reads everything once more.
fn runs(case: &PlannedCase) -> f64 {
    let reads_back = if case.verify { f64::from(case.repeat) } else { 0.0 };
    f64::from(case.repeat) + f64::from(case.warm_up) + reads_back
}

fn cases_at(plan: &Plan, point: usize) -> impl Iterator<Item = (usize, &PlannedCase)> {
    plan.cases.iter().enumerate().filter(move |(_, case)| case.point == point)
}

impl Schedule {
    /// Estimates all cases if there is a sweep. With a budget, points from all over the axes come first, as many as fit.
    pub fn of(plan: &Plan, options: &BenchOptions, estimate: &Estimate) -> Self {
        let all: Vec<usize> = (0..plan.points()).collect();
        if plan.points() < 2 {
            return Self { points: all, seconds: vec![None; plan.cases.len()], budget: None };
        }
        let once = estimate(plan);
        let seconds = plan.cases.iter().zip(once).map(|(case, once)| Some(once? * runs(case))).collect();
        let mut schedule = Self { points: all, seconds, budget: options.budget };
        if let Some(budget) = options.budget {
            schedule.points.sort_by_key(|point| plan.levels[*point]);
            let usable = budget.as_secs_f64() * USABLE;
            let mut total = 0.0;
            let mut first = true;
            let fits = |point: &usize| {
                let seconds = schedule.at(plan, *point).unwrap_or(0.0);
                let fits = first || total + seconds <= usable;
                first = false;
                total += if fits { seconds } else { 0.0 };
                fits
            };
            schedule.points = schedule.points.iter().copied().filter(fits).collect();
        }
        schedule
    }

    /// Seconds of a point; `None` if any of its cases is not known.
    fn at(&self, plan: &Plan, point: usize) -> Option<f64> {
        let able = cases_at(plan, point).filter(|(_, case)| case.work.is_ok());
        able.map(|(index, _)| self.seconds[index]).sum()
    }

    /// Places of the cases to run, point by point.
    pub fn order(&self, plan: &Plan) -> Vec<usize> {
        self.points.iter().flat_map(|point| cases_at(plan, *point).map(|(index, _)| index)).collect()
    }

    /// A table of the points, in words what they take, and what is left out.
    pub fn describe(&self, plan: &Plan) -> Result<String> {
        let names: BTreeSet<&String> = plan.cases.iter().flat_map(|case| case.axes.keys()).collect();
        let mut columns: Vec<(String, Align)> = vec![("point".into(), Align::Right)];
        columns.extend(names.iter().map(|name| ((*name).clone(), Align::Right)));
        for name in ["cases", "data", "disk", "time"] {
            columns.push((name.into(), Align::Right));
        }
        let mut table = Table::new(&columns);
        let (mut disk, mut known, mut unknown) = (0, 0.0, 0);
        for (row, point) in self.points.iter().enumerate() {
            let cases: Vec<&PlannedCase> = cases_at(plan, *point).map(|(_, case)| case).collect();
            let room = cases.iter().filter_map(|case| case.work.as_ref().ok()).map(|work| work.room).max().unwrap_or(0);
            disk = disk.max(room);
            let seconds = self.at(plan, *point);
            known += seconds.unwrap_or(0.0);
            unknown += usize::from(seconds.is_none());
            if row >= MOST_ROWS {
                continue;
            }
            let axis = |name: &&String| {
                let value = cases.iter().find_map(|case| case.axes.get(*name));
                value.map_or("-".into(), |value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            };
            let mut cells = vec![(point + 1).to_string()];
            cells.extend(names.iter().map(axis));
            cells.push(cases.len().to_string());
            cells.push(display_size(cases.iter().fold(0, |sum, case| sum.saturating_add(case.bytes))));
            cells.push(display_size(room));
            cells.push(seconds.map_or("?".into(), about));
            table.row(cells);
        }
        let mut words = format!("{}\n", table.render());
        if self.points.len() > MOST_ROWS {
            words.push_str(&format!("and {} more points.\n", self.points.len() - MOST_ROWS));
        }
        let cases = self.order(plan).len();
        let time = match unknown {
            0 => format!("about {}", about(known)),
            _ if known > 0.0 => format!("about {} and what is not known", about(known)),
            _ => "time not known: hyperslab train measures this machine, then it is".into(),
        };
        words.push_str(&format!(
            "{} points, {cases} cases; a file of at most {} at a time; {time}.",
            self.points.len(),
            display_size(disk)
        ));
        if let Some(budget) = self.budget {
            let left_out = plan.points() - self.points.len();
            words.push_str(&format!("\nThe budget of {} leaves {left_out} points out", about(budget.as_secs_f64())));
            words.push_str(if unknown > 0 { " so far; more may be, as times become known." } else { "." });
        }
        Ok(words)
    }

    /// Begins to count the time.
    pub fn start(self) -> BudgetClock {
        BudgetClock { begun: Instant::now(), schedule: self, refused: BTreeSet::new(), ran: BTreeSet::new() }
    }
}

/// The time of a run against its budget.
pub struct BudgetClock {
    begun: Instant,
    schedule: Schedule,
    refused: BTreeSet<usize>,
    ran: BTreeSet<usize>,
}

impl BudgetClock {
    /// Whether the point of this case may run: always if it has begun, or is the first, or there is no budget. What a point
    /// takes is judged by its estimate, or by what its bytes would have taken in the slowest case so far.
    pub fn has_time_for(&mut self, plan: &Plan, index: usize, results: &Results) -> bool {
        let point = plan.cases[index].point;
        let Some(budget) = self.schedule.budget.filter(|_| !self.ran.is_empty() && !self.ran.contains(&point)) else {
            self.ran.insert(point);
            return true;
        };
        let done = results.cases.iter().filter(|case| case.status == Status::Ok && case.bytes > 0);
        let slowest = done.map(|case| case.observed.median / case.bytes as f64).fold(0.0, f64::max);
        let seconds: f64 = cases_at(plan, point)
            .filter(|(_, case)| case.work.is_ok())
            .map(|(place, case)| self.schedule.seconds[place].unwrap_or(slowest * case.bytes as f64 * runs(case)))
            .sum();
        let fits = self.begun.elapsed().as_secs_f64() + seconds <= budget.as_secs_f64();
        if fits {
            self.ran.insert(point);
        } else {
            self.refused.insert(point);
        }
        fits
    }

    /// What did not run for lack of time, in words.
    pub fn left_out(&self, plan: &Plan) -> Option<String> {
        let budget = self.schedule.budget?;
        let left_out = plan.points() - self.ran.len();
        (left_out > 0).then(|| {
            format!(
                "{left_out} of {} points are left out: the budget of {} has no room for them",
                plan.points(),
                about(budget.as_secs_f64())
            )
        })
    }
}

/// A time in words, roughly.
fn about(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.0} ms", s * 1e3),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
