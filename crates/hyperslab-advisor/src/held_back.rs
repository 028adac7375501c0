//! `hyperslab train --held-back`: how good predictions and choices are on workloads that nothing was fitted to.

use super::compressibility::Compressibility;
use super::evaluate::{judged_row, judged_table};
use super::held_back_cases::{HeldBackCase, cases};
use super::measured::spread;
use super::measurement::Measurement;
use super::samples::samples;
use super::timings::Timings;
use anyhow::{Context, Result};
use hyperslab_core::{CacheState, Stack, dims};
use hyperslab_model::{
    Choice, Class, Conditions, Counting, Fit, Method, Profile, RankKind, Sample, ScoredRun, count,
    default_coefficients, judge, predict,
};
use hyperslab_run::{Case, Progress, Spread, run_case};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Rounds that count; half of them are set beside the other half.
const ROUNDS: usize = 6;
const FILE: &str = "held";

/// One workload on one way of storing.
struct Timed {
    class: Class,
    stack: Stack,
    seconds: Vec<f64>,
}

/// Measures all of them, predicts them with a profile, and says how good that is. `trials` and `timings`: what the published
/// model is fitted to, as the profile was.
pub fn report(
    profile: &Profile,
    (trials, timings): (&[Measurement], &Timings),
    directory: &Path,
    progress: &Progress,
) -> Result<String> {
    let cases = cases(FILE)?;
    let files = TempDir::with_prefix_in("held-back-", directory).context("make a directory for files")?;
    spread(files.path());
    let published = published(trials, timings)?;
    let (mut ours, mut halves, mut theirs, mut lines) = (Vec::new(), Vec::new(), Vec::new(), String::new());
    for (number, case) in cases.iter().enumerate() {
        eprintln!("[{}/{}] {}", number + 1, cases.len(), case.about);
        let timed = measure(case, files.path(), progress)?;
        if progress.stop_requested() {
            break;
        }
        let (mut our, mut half, mut their) = (Choice::default(), Choice::default(), Choice::default());
        for one in &timed {
            let (run, published_seconds) = predicted(case, one, profile, &published)?;
            let _ = writeln!(
                lines,
                "{}",
                json!({"case": case.about, "stack": one.stack.to_string(), "seconds": one.seconds,
                       "predicted": run.predicted, "inside": run.inside})
            );
            let (first, second): (Vec<_>, Vec<_>) =
                one.seconds.iter().enumerate().partition(|(place, _)| place % 2 == 0);
            let median = |half: &[(usize, &f64)]| Spread::of(half.iter().map(|(_, seconds)| **seconds)).median;
            let twice = ScoredRun { measured: median(&second), predicted: median(&first), inside: true };
            our.options.insert(one.class, run);
            half.options.insert(one.class, twice);
            if let Some(predicted) = published_seconds {
                their.options.insert(one.class, ScoredRun { predicted, inside: false, ..run });
            }
        }
        ours.push(our);
        halves.push(half);
        theirs.push(their);
    }
    let path = directory.join("held-back.jsonl");
    fs::write(&path, lines).with_context(|| format!("write {}", path.display()))?;
    let mut table = judged_table();
    table.row(judged_row("this model", true, &judge(&ours)));
    table.row(judged_row("the other half of the timings", true, &judge(&halves)));
    table.row(judged_row("published variables, fitted alike", true, &judge(&theirs)));
    Ok(format!(
        "{} workloads that nothing was fitted to, warm, {ROUNDS} rounds\n\n{}\nThe other half of the same timings is what a perfect \
         model would reach.\nTimings: {}",
        ours.len(),
        table.render(),
        path.display()
    ))
}

/// The ways of storing that are chosen among.
fn stacks(case: &HeldBackCase) -> Result<Vec<Stack>> {
    let (chunk, shard) = (dims::display(&case.chunk), dims::display(&case.shard));
    let mut texts =
        vec![format!("hdf5(chunk={chunk})"), format!("hdf5(chunk={chunk},plane=on)"), format!("zarr(chunk={chunk})")];
    texts.extend((shard != chunk).then(|| format!("zarr(chunk={chunk},shard={shard})")));
    texts.iter().map(|text| Ok(text.parse::<Stack>()?)).collect()
}

/// Every way of storing in turns; one that cannot hold the arrays is left out.
fn measure(case: &HeldBackCase, files: &Path, progress: &Progress) -> Result<Vec<Timed>> {
    let mut all: Vec<Timed> = Vec::new();
    for stack in stacks(case)? {
        all.push(Timed { class: hyperslab::configuration(&stack)?.class(), stack, seconds: Vec::new() });
    }
    for round in 0..=ROUNDS {
        for one in &mut all {
            let format = hyperslab_run::open_stack(&one.stack)?;
            let folder = TempDir::with_prefix_in("case-", files).context("make a directory for a case")?;
            if let Some(made_by) = &case.made_by
                && let Some(error) = run_case(&Case::new(made_by, format.clone(), folder.path(), progress)).failure
            {
                eprintln!("note: {} is left out: {error}", one.stack);
                one.seconds = vec![f64::NAN];
                continue;
            }
            let usual = Case::new(&case.measured, format, folder.path(), progress);
            let outcome = run_case(&Case { warm_up: usize::from(case.made_by.is_some()), ..usual });
            if let Some(error) = outcome.failure {
                eprintln!("note: {} is left out: {error}", one.stack);
                one.seconds = vec![f64::NAN];
                continue;
            }
            if round > 0 {
                one.seconds.extend(outcome.repetitions.iter().map(|repetition| repetition.observed().max(1e-9)));
            }
        }
    }
    all.retain(|one| !one.seconds.is_empty() && one.seconds.iter().all(|seconds| seconds.is_finite()));
    Ok(all)
}

/// What the profile says of it, and the published model.
fn predicted(
    case: &HeldBackCase,
    one: &Timed,
    profile: &Profile,
    published: &BTreeMap<Class, Fit>,
) -> Result<(ScoredRun, Option<f64>)> {
    let conditions = Conditions { warmth: CacheState::Warm, ranks: RankKind::Threads };
    let shares = Compressibility::new(None).shares(&case.measured, &one.stack);
    let configuration = hyperslab::configuration(&one.stack)?.stored(shares);
    let found = predict(&count(&case.measured, &configuration)?, one.class, profile, conditions)?;
    let measured = Spread::of(one.seconds.iter().copied()).median;
    let inside = (found.low..=found.high).contains(&measured);
    let costs = count(&case.measured, &configuration.counting(Counting::Published))?;
    let row = costs.by_rank.first().map(|work| work.row(CacheState::Cold)).unwrap_or_default();
    let theirs = published.get(&one.class).map(|fit| fit.seconds(&row).max(1e-9));
    Ok((ScoredRun { measured, predicted: found.seconds, inside }, theirs))
}

/// The published variables, fitted to what `train` measured.
fn published(trials: &[Measurement], timings: &Timings) -> Result<BTreeMap<Class, Fit>> {
    let mut fits = BTreeMap::new();
    for class in Class::ALL {
        let known = samples(trials, timings, class, CacheState::Warm, Counting::Published)?;
        let known: Vec<Sample> = known.into_iter().map(|one| one.sample).collect();
        if !known.is_empty() {
            fits.insert(class, Fit::new(&known, Method::Robust, &default_coefficients())?);
        }
    }
    Ok(fits)
}
