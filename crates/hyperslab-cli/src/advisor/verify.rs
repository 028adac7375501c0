//! `advise --verify`: runs what was advised and what is used now.

use super::inputs::{Input, SearchSpace, results_file};
use super::predict::seconds;
use super::scored_stack::ScoredStack;
use crate::bench;
use crate::table::{Align, Table};
use anyhow::Result;
use hyperslab_core::Stack;
use hyperslab_run::{CaseResult, Results, Spread, Status};
use std::process::ExitCode;

/// Runs of each case, and one before.
const RUNS: u32 = 3 + 1;

/// Runs the best ones and the present one, and says what following the advice gains or costs.
pub fn verify(
    input: &Input,
    ranked: &[ScoredStack],
    now: &Stack,
    best: usize,
    freedom: SearchSpace,
) -> Result<ExitCode> {
    let mut chosen: Vec<&ScoredStack> = ranked.iter().take(best.max(1)).collect();
    if !chosen.iter().any(|one| one.stack == *now) {
        chosen.extend(ranked.iter().find(|one| one.stack == *now));
    }
    let list: Vec<String> = chosen.iter().map(|one| one.stack.to_string()).collect();
    let computing: f64 = chosen.iter().flat_map(|one| &one.works).map(|work| work.costs.compute.as_secs_f64()).sum();
    let all = f64::from(RUNS) * (computing + chosen.iter().map(|one| one.seconds).sum::<f64>());
    eprintln!("running {} stacks {RUNS} times each; that may take {}", list.len(), seconds(all));
    let code = bench::run(&*input.free_options(&list, freedom)?)?;
    let results = Results::load(&results_file(&input.dir))?;
    // Stacks come one after the other, each with all cases.
    let of_each = (results.cases.len() / chosen.len().max(1)).max(1);
    let stacks = || results.cases.chunks(of_each);
    let measured: Vec<f64> = stacks().map(|cases| total(cases, |times| times.median)).collect();
    let ends: [fn(&Spread) -> f64; 2] = [|times| times.reach()[0], |times| times.reach()[1]];
    let reached: Vec<[f64; 2]> = stacks().map(|cases| ends.map(|end| total(cases, end))).collect();
    let mut table = Table::new(&[
        ("stack", Align::Left),
        ("predicted", Align::Right),
        ("measured", Align::Right),
        ("inside the interval", Align::Left),
    ]);
    for (one, measured) in chosen.iter().zip(&measured) {
        let inside = (one.low..=one.high).contains(measured);
        let row =
            [one.stack.to_string(), seconds(one.seconds), seconds(*measured), if inside { "yes" } else { "no" }.into()];
        table.row(row.into());
    }
    println!("{}", table.render());
    let fastest = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let present = chosen.iter().position(|one| one.stack == *now).and_then(|place| measured.get(place));
    match (measured.first(), present) {
        (Some(first), Some(present)) if first.is_finite() && fastest > 0.0 => {
            println!(
                "Following the advice takes {:.1} % longer than the fastest of these (its regret).",
                100.0 * (first / fastest - 1.0)
            );
            println!("It takes {:.2} times as long as what is used now.", first / present);
            let overlap = |[low, high]: &[f64; 2], other: &[f64; 2]| *low <= other[1] && other[0] <= *high;
            if reached.split_first().is_some_and(|(own, others)| others.iter().any(|other| overlap(own, other))) {
                println!("Some of these runs overlap: too close to call, or the machine was busy with something else.");
            }
        }
        _ => println!("What was advised could not be run, so there is nothing to compare."),
    }
    Ok(code)
}

/// One figure of each case's times, added up; infinite if one did not run.
fn total(cases: &[CaseResult], which: fn(&Spread) -> f64) -> f64 {
    cases.iter().map(|case| if case.status == Status::Ok { which(&case.observed) } else { f64::INFINITY }).sum()
}
