//! The published tables beside the simulated ones: a fit to all, and to all but one in turn.

use crate::calibrate::{Fitted, MeasuredRun, fit};
use crate::judgement::Accuracy;
use crate::published_tables::{RowGroup, TableRow, published_tables};
use crate::simulation::transfer_seconds;
use crate::system::System;
use crate::timing::{PARAMETERS, TimingParameters};
use hyperslab_core::Result;
use std::collections::BTreeSet;

/// A row beside what is simulated.
#[derive(Debug, Clone, PartialEq)]
pub struct ReproducedRow {
    /// The row.
    pub row: TableRow,
    /// MiB/s with the timing that is fitted to all tables.
    pub known: f64,
    /// MiB/s with one that did not know this table.
    pub unknown: f64,
    /// MiB/s of the nearest row of other tables.
    pub nearest: f64,
    /// Whether the same run stands in another table, so that leaving out this one does not hide it.
    pub elsewhere: bool,
}

/// All tables.
#[derive(Debug, Clone)]
pub struct TableReproduction {
    /// Row by row.
    pub rows: Vec<ReproducedRow>,
    /// The fit to all of them.
    pub fitted: Fitted,
    /// For each parameter, the different rows whose rate changes by more than 2 % if it is a fifth larger.
    pub rests_on: [usize; PARAMETERS],
}

const MIB: f64 = 1048576.0;

impl TableReproduction {
    /// Works it out, on the rates of `system`.
    pub fn of(system: &System) -> Result<Self> {
        let rows = published_tables()?;
        let mut runs = rows.iter().map(|row| row.measured(system)).collect::<Result<Vec<MeasuredRun>>>()?;
        for (run, row) in runs.iter_mut().zip(&rows) {
            // A run that stands in several tables counts once.
            run.weight = 1.0 / rows.iter().filter(|other| other.is_same_run(row)).count().max(1) as f64;
        }
        let start = TimingParameters::neutral();
        let fitted = fit(&runs, &start);
        let rate = |run: &MeasuredRun, timing: &TimingParameters| {
            (run.walked.written + run.walked.read) / MIB / transfer_seconds(&run.walked, &run.rates, timing)
        };
        let mut found: Vec<ReproducedRow> = Vec::with_capacity(rows.len());
        for (row, run) in rows.iter().zip(&runs) {
            let others = || rows.iter().filter(|other| other.table != row.table);
            found.push(ReproducedRow {
                row: row.clone(),
                known: rate(run, &fitted.timing),
                unknown: f64::NAN,
                nearest: nearest(row, others()),
                elsewhere: others().any(|other| other.is_same_run(row)),
            });
        }
        for table in rows.iter().map(|row| row.table.as_str()).collect::<BTreeSet<_>>() {
            let others = rows.iter().zip(&runs).filter(|(row, _)| row.table != table);
            let known: Vec<MeasuredRun> = others.map(|(_, run)| run.clone()).collect();
            let timing = fit(&known, &start).timing;
            for ((row, run), found) in rows.iter().zip(&runs).zip(&mut found) {
                if row.table == table {
                    found.unknown = rate(run, &timing);
                }
            }
        }
        let rests_on = std::array::from_fn(|at| {
            let mut values = fitted.timing.values();
            values[at] *= 1.2;
            let other = TimingParameters::of(values);
            let moves = |run: &MeasuredRun| (rate(run, &other) / rate(run, &fitted.timing)).ln().abs() > 0.02;
            let first = |at: usize| !rows[..at].iter().any(|earlier| earlier.is_same_run(&rows[at]));
            (0..rows.len()).filter(|at| first(*at) && moves(&runs[*at])).count()
        });
        Ok(Self { rows: found, fitted, rests_on })
    }

    /// How good a choice of predictions is on the rows of a group, or on all.
    pub fn accuracy(&self, group: Option<RowGroup>, of: impl Fn(&ReproducedRow) -> f64) -> Accuracy {
        let rows = self.rows.iter().filter(|row| group.is_none_or(|group| row.row.group() == group));
        Accuracy::of(&rows.map(|row| (of(row), row.row.rate[1])).collect::<Vec<_>>())
    }

    /// The absolute logarithms of errors of tables that a fit did not know, sorted.
    pub fn errors(&self) -> Vec<f64> {
        let mut errors: Vec<f64> = self.rows.iter().map(|row| (row.unknown / row.row.rate[1]).ln().abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// The system with this timing.
    pub fn calibrated(&self, system: &System) -> System {
        let mut system = system.clone();
        let round = |value: f64| format!("{value:.4e}").parse().unwrap_or(value);
        system.timing = TimingParameters::of(self.fitted.timing.values().map(round));
        let calibration = &mut system.calibration;
        calibration.source =
            "fitted to the handed-out tables of [hdf5-lustre]; errors are those of leaving out one table".into();
        calibration.runs = self.rows.len();
        calibration.errors = self.errors().into_iter().map(round).collect();
        let deviations = TimingParameters::NAMES.iter().zip(self.fitted.deviations);
        calibration.deviations = deviations.map(|(name, deviation)| ((*name).to_owned(), round(deviation))).collect();
        system
    }
}

/// What looking up would answer: the rate of the row that differs least.
fn nearest<'a>(row: &TableRow, others: impl Iterator<Item = &'a TableRow>) -> f64 {
    let far = |other: &TableRow| {
        let unlike = |same: bool, cost: f64| if same { 0.0 } else { cost };
        let size = |a: u64, b: u64| (a as f64 / b as f64).log2().abs();
        let chunk = match (row.chunk, other.chunk) {
            (Some(a), Some(b)) => size(a, b) * 0.5,
            (None, None) => 0.0,
            _ => 8.0,
        };
        unlike(row.writes == other.writes, 10.0)
            + unlike(row.pattern == other.pattern, 6.0)
            + unlike(row.collective == other.collective, 5.0)
            + unlike(row.aligned == other.aligned, 4.0)
            + unlike(row.api == other.api, 1.0)
            + size(row.transfer, other.transfer) * 0.5
            + chunk
    };
    let best = others.min_by(|a, b| far(a).total_cmp(&far(b)));
    best.map_or(f64::NAN, |row| row.rate[1])
}
