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
        let mut changed = SimulateOptions { sweep: None, timeline: None, ..options.clone() };
        set(&mut changed, what, value)?;
        let outcomes = all(&changed, input, system)?;
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

fn set(options: &mut SimulateOptions, what: &str, value: &str) -> Result<()> {
    let number = || match value.parse::<u32>() {
        Ok(number) if (1..=1 << 20).contains(&number) => Ok(number),
        _ => bail!("--sweep {what}: {value} is no number from 1 to {}", 1 << 20),
    };
    match what {
        "ranks" => options.ranks = Some(number()?),
        "ranks-per-node" => options.ranks_per_node = Some(number()?),
        "stripe-count" => options.stripe_count = Some(number()?),
        "stripe-size" => {
            parse_size(value).with_context(|| format!("--sweep {what}"))?;
            options.stripe_size = Some(value.into());
        }
        _ => bail!("--sweep {what}: ranks, ranks-per-node, stripe-count and stripe-size can be swept"),
    }
    Ok(())
}
