//! The same simulation for several values of one thing.

use super::{SimulateOptions, all, outcome};
use crate::table::{Align, Table};
use anyhow::{Context, Result, bail};
use hyperslab_core::units::parse_size;
use hyperslab_sim::System;
use std::process::ExitCode;

/// Values of a sweep at most.
const MOST: usize = 64;

/// Simulates for each value and prints a row for each.
pub fn run(options: &SimulateOptions, system: &System, sweep: &str) -> Result<ExitCode> {
    let Some(input) = &options.input else { bail!("--sweep needs something to simulate") };
    let Some((what, values)) = sweep.split_once('=') else { bail!("--sweep {sweep}: write it as ranks=64,256,1024") };
    let values: Vec<&str> = values.split(',').filter(|value| !value.is_empty()).collect();
    if values.is_empty() || values.len() > MOST {
        bail!("--sweep {sweep}: 1 to {MOST} values are possible");
    }
    let mut table = Table::new(&[
        (what, Align::Right),
        ("case", Align::Left),
        ("stack", Align::Left),
        ("time", Align::Right),
        ("90 % within", Align::Right),
        ("rate", Align::Right),
        ("bottleneck", Align::Left),
    ]);
    let mut found = Vec::new();
    for value in values {
        let mut changed = SweepValue {
            ranks: options.ranks,
            per_node: options.ranks_per_node,
            count: options.stripe_count,
            size: options.stripe_size.clone(),
        };
        changed.set(what, value)?;
        let outcomes = changed.with(options, |options| all(options, input, system))?;
        for one in &outcomes {
            let bottleneck = one.limits.resources.first().map_or("-", |first| first.name);
            table.row(vec![
                value.into(),
                one.label.clone(),
                one.stack.to_string(),
                outcome::seconds(one.simulated.seconds),
                outcome::between(one.intervals.ninety),
                outcome::rate(one.simulated.rate()),
                bottleneck.into(),
            ]);
        }
        if options.json {
            found.push(serde_json::from_str::<serde_json::Value>(&outcome::json(&outcomes, system)?).context("join")?);
        }
    }
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&found).context("print the sweep")?),
        false => print!("{}", table.dropping(&["bottleneck", "stack"]).render()),
    }
    Ok(ExitCode::SUCCESS)
}

struct SweepValue {
    ranks: Option<u32>,
    per_node: Option<u32>,
    count: Option<u32>,
    size: Option<String>,
}

impl SweepValue {
    fn set(&mut self, what: &str, value: &str) -> Result<()> {
        let number = || match value.parse::<u32>() {
            Ok(number) if (1..=1 << 20).contains(&number) => Ok(number),
            _ => bail!("--sweep {what}: {value} is no number from 1 to {}", 1 << 20),
        };
        match what {
            "ranks" => self.ranks = Some(number()?),
            "ranks-per-node" => self.per_node = Some(number()?),
            "stripe-count" => self.count = Some(number()?),
            "stripe-size" => {
                parse_size(value).with_context(|| format!("--sweep {what}"))?;
                self.size = Some(value.into());
            }
            _ => bail!("--sweep {what}: ranks, ranks-per-node, stripe-count and stripe-size can be swept"),
        }
        Ok(())
    }

    fn with<T>(self, options: &SimulateOptions, then: impl FnOnce(&SimulateOptions) -> Result<T>) -> Result<T> {
        let changed = SimulateOptions {
            input: options.input.clone(),
            keys: options.keys.clone(),
            system: options.system.clone(),
            ranks: self.ranks,
            ranks_per_node: self.per_node,
            stack: options.stack.clone(),
            compare: options.compare.clone(),
            stripe_count: self.count,
            stripe_size: self.size,
            transfers: options.transfers,
            sweep: None,
            timeline: None,
            json: options.json,
            list: false,
            template: false,
            reproduce: None,
        };
        then(&changed)
    }
}
