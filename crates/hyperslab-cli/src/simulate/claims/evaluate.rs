//! Simulates the scenario of a claim, and finds the figure that the claim is about.

use super::scenario::{Quantity, Scenario};
use super::undisturbed;
use crate::cli::{Arguments, Command};
use crate::simulate::{SimulateOptions, chosen_system, inputs, placement, timed};
use anyhow::{Context, Result, bail};
use clap::Parser;
use hyperslab_core::parse_stacks;
use hyperslab_sim::{System, builtin};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// Seconds and bytes of simulations that several claims share.
#[derive(Debug, Default)]
pub struct ScenarioRuns {
    known: HashMap<(String, Option<String>), (f64, f64)>,
    files: Vec<PathBuf>,
}

impl ScenarioRuns {
    /// The figure, in the claim's unit.
    pub fn figure(&mut self, scenario: &Scenario, unit: f64) -> Result<f64> {
        let run = || scenario.run.as_deref().context("a scenario says nothing to run");
        let mut seconds = |words: Option<&str>| -> Result<f64> {
            let words = words.context("a scenario has nothing to compare with")?;
            Ok(self.run(words, scenario)?.0)
        };
        Ok(match scenario.quantity {
            Quantity::None => bail!("nothing is simulated for claim {}", scenario.claim),
            Quantity::Input => input(scenario)? / unit,
            Quantity::Order => seconds(Some(run()?))?,
            Quantity::Times => seconds(scenario.over.as_deref())? / seconds(Some(run()?))?,
            Quantity::Gain => seconds(scenario.over.as_deref())? / seconds(Some(run()?))? - 1.0,
            Quantity::Ratio => seconds(Some(run()?))? / seconds(scenario.over.as_deref())?,
            Quantity::Rate => {
                let (seconds, bytes) = self.run(run()?, scenario)?;
                bytes / seconds / unit
            }
            Quantity::Saturation => self.saturation(run()?, scenario)?,
            Quantity::Undisturbed => {
                let options = options(run()?)?;
                undisturbed::share(&options)?
            }
        })
    }

    /// The ranks at which the rate would be the highest one, if it grew as it begins.
    fn saturation(&mut self, words: &str, scenario: &Scenario) -> Result<f64> {
        let mut rates = Vec::new();
        for ranks in &scenario.ranks {
            let (seconds, bytes) = self.run(&format!("{words} --ranks {ranks}"), scenario)?;
            rates.push((f64::from(*ranks), bytes / seconds));
        }
        let most = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let (ranks, rate) = *rates.first().context("no ranks are tried")?;
        Ok(most / (rate / ranks) / scenario.ranks_per_unit.unwrap_or(1.0))
    }

    fn run(&mut self, words: &str, scenario: &Scenario) -> Result<(f64, f64)> {
        let key = (words.to_owned(), scenario.case.clone());
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let options = match &scenario.config {
            Some(config) if words.contains("CONFIG") => {
                let path = std::env::temp_dir().join(format!(
                    "hyperslab-claim-{}-{}.json",
                    scenario.claim,
                    std::process::id()
                ));
                fs::write(&path, config.to_string()).with_context(|| format!("write {}", path.display()))?;
                self.files.push(path.clone());
                options(&words.replace("CONFIG", &path.display().to_string()))?
            }
            _ => options(words)?,
        };
        let found = both(&options, scenario.case.as_deref()).with_context(|| format!("simulate {words}"))?;
        self.known.insert(key, found);
        Ok(found)
    }
}

impl Drop for ScenarioRuns {
    fn drop(&mut self) {
        for path in &self.files {
            let _ = fs::remove_file(path);
        }
    }
}

/// The options of a `simulate` with these words.
fn options(words: &str) -> Result<SimulateOptions> {
    let all = ["hyperslab", "simulate"].into_iter().chain(words.split_whitespace());
    let Command::Simulate(options) = Arguments::try_parse_from(all)?.command else { bail!("no simulation: {words}") };
    Ok(*options)
}

/// Seconds and bytes of all cases, or of one.
fn both(options: &SimulateOptions, wanted: Option<&str>) -> Result<(f64, f64)> {
    let input = options.input.as_ref().context("nothing is to be simulated")?;
    let system = chosen_system::of(options)?;
    let run = placement(options, &system)?;
    let (mut seconds, mut bytes) = (0.0, 0.0);
    for stack in parse_stacks(options.stack.as_deref().unwrap_or("hdf5"))? {
        for case in inputs::cases(options, input, &stack)? {
            if wanted.is_none_or(|wanted| case.label == wanted) {
                let timed = timed(&case, &system, &run)?;
                seconds += timed.simulated.seconds;
                bytes += timed.simulated.written + timed.simulated.read;
            }
        }
    }
    if seconds <= 0.0 {
        bail!("nothing was simulated");
    }
    Ok((seconds, bytes))
}

/// The product of figures of a description.
fn input(scenario: &Scenario) -> Result<f64> {
    let system: System = builtin(scenario.system.as_deref().context("an input has no system")?)?;
    let names = scenario.field.as_deref().context("an input has no field")?;
    let figures = system.figures();
    let mut product = 1.0;
    for name in names.split('*') {
        let figure = figures.iter().find(|(known, ..)| *known == name);
        product *= figure.with_context(|| format!("{} has no {name}", system.name))?.1.value;
    }
    Ok(product)
}
