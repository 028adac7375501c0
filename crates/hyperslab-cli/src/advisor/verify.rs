//! `advise --verify`: runs what was advised and what is used now, in turns and in fresh folders, until it can be told which
//! is faster.

use crate::cli::{EXIT_FAILED, EXIT_INTERRUPTED};
use crate::table::{Align, Table};
use anyhow::Result;
use hyperslab_advisor::{Input, ScoredStack, SearchSpace, seconds};
use hyperslab_bench::{measure, stop_on_ctrl_c};
use hyperslab_core::Stack;
use hyperslab_report::ratio::{self, Ratio};
use hyperslab_run::{CaseResult, Progress, Status};
use std::process::ExitCode;
use std::sync::Arc;

/// Rounds that count, after one that does not: at least so many, and at most, while nothing can be told.
const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 7;

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
    let computing: f64 = chosen.iter().flat_map(|one| &one.works).map(|work| work.costs.compute.as_secs_f64()).sum();
    let all = (ROUNDS + 1) as f64 * (computing + chosen.iter().map(|one| one.seconds).sum::<f64>());
    eprintln!("running {} stacks {} times each or more; that may take {}", chosen.len(), ROUNDS + 1, seconds(all));
    let progress = Arc::new(Progress::default());
    stop_on_ctrl_c(&progress)?;
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); chosen.len()];
    for round in 0..=MOST_ROUNDS {
        let found = self::round(input, &chosen, round, freedom, &progress)?;
        if progress.stop_requested() {
            return Ok(ExitCode::from(EXIT_INTERRUPTED));
        }
        // The first round finds code and folders cold.
        if round > 0 {
            times.iter_mut().zip(found).for_each(|(times, seconds)| times.push(seconds));
        }
        let apart =
            (1..chosen.len()).all(|other| judged(&times[0], &times[other]).is_none_or(|ratio| is_apart(&ratio)));
        if round >= ROUNDS && apart {
            break;
        }
    }
    Ok(report(&chosen, &times, now))
}

/// Seconds of every stack once, each with all cases, in another order every time.
fn round(
    input: &Input,
    chosen: &[&ScoredStack],
    round: usize,
    freedom: SearchSpace,
    progress: &Arc<Progress>,
) -> Result<Vec<f64>> {
    let order: Vec<usize> = (0..chosen.len()).map(|place| (place + round) % chosen.len()).collect();
    let list: Vec<String> = order.iter().map(|&place| chosen[place].stack.to_string()).collect();
    let files = input.fresh_folder()?;
    let mut options = input.free_options(&list, freedom);
    (options.directory, options.repeat) = (Some(files.path().into()), Some(1));
    let results = measure(&options, progress)?;
    // Stacks come one after the other, each with all cases.
    let of_each = (results.cases.len() / chosen.len().max(1)).max(1);
    let mut found = vec![f64::INFINITY; chosen.len()];
    for (&place, cases) in order.iter().zip(results.cases.chunks(of_each)) {
        found[place] = total(cases);
    }
    Ok(found)
}

/// The other's time as a multiple of the first's.
fn judged(first: &[f64], other: &[f64]) -> Option<Ratio> {
    ratio::of_medians(first, other).map(|(_, ratio)| ratio)
}

/// Whether chance does not explain the difference.
fn is_apart(ratio: &Ratio) -> bool {
    ratio.interval.is_some_and(|[low, high]| low > 1.0 || high < 1.0)
}

fn report(chosen: &[&ScoredStack], times: &[Vec<f64>], now: &Stack) -> ExitCode {
    let median = |times: &[f64]| hyperslab_run::Spread::of(times.iter().copied()).median;
    let measured: Vec<f64> = times.iter().map(|times| median(times)).collect();
    let mut table = Table::new(&[
        ("stack", Align::Left),
        ("predicted", Align::Right),
        ("measured", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
        ("inside the interval", Align::Left),
    ]);
    for ((one, times), measured) in chosen.iter().zip(times).zip(&measured) {
        let inside = (one.low..=one.high).contains(measured);
        let ends = [times.iter().copied().fold(f64::INFINITY, f64::min), times.iter().copied().fold(0.0, f64::max)];
        table.row(vec![
            one.stack.to_string(),
            seconds(one.seconds),
            seconds(*measured),
            seconds(ends[0]),
            seconds(ends[1]),
            if inside { "yes" } else { "no" }.into(),
        ]);
    }
    println!("{}", table.render());
    let rounds = times.first().map_or(0, Vec::len);
    println!("Medians of {rounds} runs each, in turns, in fresh folders.");
    let fastest = (0..chosen.len()).min_by(|a, b| measured[*a].total_cmp(&measured[*b]));
    let present = chosen.iter().position(|one| one.stack == *now);
    let (Some(fastest), Some(present)) = (fastest.filter(|_| measured[0].is_finite()), present) else {
        println!("What was advised could not be run, so there is nothing to compare.");
        return ExitCode::from(EXIT_FAILED);
    };
    println!("{}", beside_fastest(chosen, times, &measured, fastest));
    if present != 0 {
        let words = match judged(&times[present], &times[0]) {
            Some(ratio) if is_apart(&ratio) => {
                format!("It takes {:.2} times as long as what is used now.", ratio.value)
            }
            _ => "Whether it takes as long as what is used now is too close to call: leave it as it is.".into(),
        };
        println!("{words}");
    }
    ExitCode::SUCCESS
}

/// What following the advice costs, where it can be told.
fn beside_fastest(chosen: &[&ScoredStack], times: &[Vec<f64>], measured: &[f64], fastest: usize) -> String {
    if fastest == 0 || measured[fastest] <= 0.0 {
        return "What was advised is the fastest of these (its regret is 0 %).".into();
    }
    match judged(&times[fastest], &times[0]) {
        Some(ratio) if is_apart(&ratio) => format!(
            "Following the advice takes {:.1} % longer than {} (its regret).",
            100.0 * (ratio.value - 1.0),
            chosen[fastest].stack
        ),
        _ => format!(
            "Whether {} is faster is too close to call, so that nothing is known of a regret.",
            chosen[fastest].stack
        ),
    }
}

/// Seconds of all cases; infinite if one did not run.
fn total(cases: &[CaseResult]) -> f64 {
    cases.iter().map(|case| if case.status == Status::Ok { case.observed.median } else { f64::INFINITY }).sum()
}
