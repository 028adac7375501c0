//! `advise --system`: which settings would be fastest on a system that is described, and what each of them buys.

mod choices;
mod facts;
mod paste;

use super::inputs::SimulatedCase;
use super::outcome::{between, seconds};
use super::{SimulateOptions, TimedCase, chosen_system, inputs, placement, timed};
use crate::advisor::AdviseOptions;
use crate::cli::{Arguments, Command};
use crate::table::{Align, Table, wrapped};
use anyhow::{Context, Result, bail};
use choices::{Choice, Setting};
use clap::Parser;
use facts::WorkFacts;
use hyperslab_core::{TransferMode, parse_stacks};
use hyperslab_sim::{RunPlacement, System, intervals};
use serde_json::json;
use std::ffi::OsString;
use std::process::ExitCode;

/// A setting that gains less than this part of the time is not worth it.
const WORTH: f64 = 0.02;
/// How often all settings are gone through.
const TURNS: usize = 4;
/// Ranks that are looked at.
const LOOKED_AT: usize = 128;

/// Searches, and says what it found.
pub fn run(options: &AdviseOptions) -> Result<ExitCode> {
    let simulated = as_simulation(options)?;
    let search = Search::new(&simulated, &options.stack)?;
    let now = search.present.clone();
    let before = search.seconds(&now)?;
    let (best, compared) = search.best(&now, before)?;
    let found = Advice::of(&search, &now, &best, before, compared)?;
    match options.json {
        true => println!("{}", serde_json::to_string_pretty(&found.value(&search)).context("print the advice")?),
        false => print!("{}", found.words(&search)),
    }
    Ok(ExitCode::SUCCESS)
}

/// The same input as `simulate` takes it.
fn as_simulation(options: &AdviseOptions) -> Result<SimulateOptions> {
    let mut words: Vec<OsString> = ["hyperslab", "simulate"].map(OsString::from).into();
    words.extend(["--system".into(), OsString::from(options.system.clone().unwrap_or_default())]);
    if let Some(ranks) = options.input.ranks {
        words.extend(["--ranks".into(), ranks.to_string().into()]);
    }
    words.push(options.input.input.clone().into());
    words.push("--".into());
    words.extend(options.input.keys.iter().map(OsString::from));
    let Command::Simulate(mut found) = Arguments::try_parse_from(words)?.command else {
        bail!("the input could not be read")
    };
    found.transfers = options.input.transfers;
    Ok(*found)
}

struct Search {
    cases: Vec<SimulatedCase>,
    facts: WorkFacts,
    system: System,
    run: RunPlacement,
    present: Choice,
}

impl Search {
    fn new(options: &SimulateOptions, stack: &str) -> Result<Self> {
        let system = chosen_system::of(options)?;
        let mut run = placement(options, &system)?;
        run.most_ranks = LOOKED_AT;
        let stacks = parse_stacks(stack)?;
        let [stack] = stacks.as_slice() else { bail!("--stack {stack}: one stack is what is used now") };
        let input = options.input.as_ref().context("nothing is to be simulated")?;
        let cases = inputs::cases(options, input, stack)?;
        let Some(first) = cases.first() else { bail!("there is nothing to simulate") };
        let facts = WorkFacts::of(cases.iter().map(|case| &case.workload))?;
        let present = Choice {
            stack: stack.clone(),
            stripe_count: run.stripe_count,
            stripe_size: run.stripe_size,
            collective: facts::collective(&first.workload)?,
        };
        Ok(Self { cases, facts, system, run, present })
    }

    fn timed(&self, choice: &Choice) -> Result<Vec<TimedCase>> {
        let mode = if choice.collective { TransferMode::Collective } else { TransferMode::Independent };
        let run =
            RunPlacement { stripe_count: choice.stripe_count, stripe_size: choice.stripe_size, ..self.run.clone() };
        let one = |case: &SimulatedCase| {
            // As they are, unless that is another choice.
            let as_now = choice.collective == self.present.collective;
            let workload = if as_now { case.workload.clone() } else { case.workload.with_transfers(mode) };
            let case = SimulatedCase { label: case.label.clone(), workload, stack: choice.stack.clone() };
            timed(&case, &self.system, &run)
        };
        self.cases.iter().map(one).collect()
    }

    fn seconds(&self, choice: &Choice) -> Result<f64> {
        Ok(self.timed(choice)?.iter().map(|case| case.simulated.seconds).sum())
    }

    /// Half and nine of ten runs of all cases together.
    fn between(&self, choice: &Choice) -> Result<[f64; 2]> {
        let mut sum = [0.0; 2];
        for case in self.timed(choice)? {
            let found = intervals(&case.walked, &self.system, &case.layers).ninety;
            sum = [sum[0] + found[0], sum[1] + found[1]];
        }
        Ok(sum)
    }

    /// The fastest choice, and how many were compared. One setting after the other is tried until none gains, then two
    /// that only help together, and in the end what gains next to nothing is put back.
    fn best(&self, now: &Choice, before: f64) -> Result<(Choice, usize)> {
        let (mut best, mut fastest, mut compared) = (now.clone(), before, 1);
        for _ in 0..TURNS {
            let begin = fastest;
            for setting in Setting::ALL {
                let mut tried = setting.alternatives(&best, &self.facts, &self.system);
                // Alignment and sizes of stripes mean little without each other.
                if setting == Setting::StripeSize {
                    let both = |one: &Choice| Setting::Alignment.alternatives(one, &self.facts, &self.system);
                    tried.extend(tried.iter().flat_map(both).collect::<Vec<_>>());
                }
                for other in tried {
                    // What a format or layer refuses is no choice.
                    let Ok(seconds) = self.seconds(&other) else { continue };
                    compared += 1;
                    if seconds < fastest * (1.0 - 1e-3) {
                        (best, fastest) = (other, seconds);
                    }
                }
            }
            if fastest > begin * (1.0 - WORTH) {
                break;
            }
        }
        for setting in Setting::ALL {
            let simpler = setting.taken_from(&best, now);
            if simpler == best {
                continue;
            }
            let Ok(seconds) = self.seconds(&simpler) else { continue };
            compared += 1;
            if seconds <= fastest * (1.0 + WORTH) {
                (best, fastest) = (simpler, seconds);
            }
        }
        Ok((best, compared))
    }
}

/// A setting that is changed, and what the run takes without that.
struct Change {
    setting: Setting,
    from: String,
    to: String,
    without: Option<f64>,
}

struct Advice {
    now: Choice,
    best: Choice,
    before: f64,
    after: f64,
    intervals: [[f64; 2]; 2],
    changes: Vec<Change>,
    compared: usize,
}

impl Advice {
    fn of(search: &Search, now: &Choice, best: &Choice, before: f64, compared: usize) -> Result<Self> {
        let mut changes = Vec::new();
        for setting in Setting::ALL {
            let (from, to) = (setting.value(now), setting.value(best));
            if from != to {
                let without = search.seconds(&setting.taken_from(best, now)).ok();
                changes.push(Change { setting, from, to, without });
            }
        }
        let after = search.seconds(best)?;
        let intervals = [search.between(now)?, search.between(best)?];
        Ok(Self { now: now.clone(), best: best.clone(), before, after, intervals, changes, compared })
    }

    fn words(&self, search: &Search) -> String {
        let system = &search.system;
        let mut text = wrapped(&format!("Simulated on {}: {}", system.name, system.about), 80, 2);
        text += &wrapped(
            &format!(
                "{} choices were compared. Now: {} (90 % within {}). Best: {} (90 % within {}), {:.2} times as fast.",
                self.compared,
                seconds(self.before),
                between(self.intervals[0]),
                seconds(self.after),
                between(self.intervals[1]),
                self.before / self.after
            ),
            80,
            0,
        );
        if self.changes.is_empty() {
            return text + "\nNothing is worth a change.\n";
        }
        let mut table = Table::new(&[
            ("setting", Align::Left),
            ("now", Align::Left),
            ("better", Align::Left),
            ("without it", Align::Right),
        ]);
        for change in &self.changes {
            let without = change.without.map_or_else(|| "-".into(), seconds);
            table.row(vec![change.setting.words().into(), change.from.clone(), change.to.clone(), without]);
        }
        text += &format!("\n{}", table.render());
        text += &wrapped("without it: all others changed, this one as now.", 80, 0);
        for (program, lines) in paste::lines(&self.best, "FILE") {
            text += &format!("\n{program}\n");
            for line in lines {
                text += &format!("  {line}\n");
            }
        }
        if search.system.calibration.runs == 0 {
            let words = format!(
                "note: nobody has calibrated {}; trust the order more than the times (simulate --calibrate)",
                system.name
            );
            text += &format!("\n{}", wrapped(&words, 80, 6));
        }
        text
    }

    fn value(&self, search: &Search) -> serde_json::Value {
        let choice = |one: &Choice| {
            json!({
                "stack": one.stack.to_string(),
                "stripe_count": one.stripe_count,
                "stripe_size": one.stripe_size,
                "transfers": if one.collective { "collective" } else { "independent" },
            })
        };
        let change = |one: &Change| json!({"setting": one.setting.words(), "now": one.from, "better": one.to, "seconds_without": one.without});
        let paste: serde_json::Map<String, serde_json::Value> = paste::lines(&self.best, "FILE")
            .into_iter()
            .map(|(program, lines)| (program.to_owned(), json!(lines)))
            .collect();
        json!({
            "hyperslab_system_advice": 1,
            "system": search.system.name,
            "calibrated_on_runs": search.system.calibration.runs,
            "compared": self.compared,
            "now": choice(&self.now),
            "seconds_now": self.before,
            "ninety_now": self.intervals[0],
            "best": choice(&self.best),
            "seconds": self.after,
            "ninety": self.intervals[1],
            "changes": self.changes.iter().map(change).collect::<Vec<_>>(),
            "settings": paste,
        })
    }
}
