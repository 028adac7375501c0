//! Measuring everything that a profile needs, in rounds, as long as there is time.

use super::measured::{Bench, TIMINGS_OF_A_TRIAL};
use super::measurement::Measurement;
use super::timings::Timings;
use super::{metadata_ops, sharing};
use anyhow::Result;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Measures what is not measured yet, as long as there is time: everything once, then everything again, so that what
/// disturbs for a while disturbs few repetitions of each. Returns what is missing, in words.
pub fn measure_all(
    (trials, rounds): (&[Measurement], usize),
    bench: &Bench<'_>,
    limit: Duration,
    timings: &mut Timings,
) -> Result<Vec<String>> {
    let progress = bench.progress;
    let done: Vec<usize> = trials.iter().map(|trial| timings.rounds(&trial.name(), TIMINGS_OF_A_TRIAL)).collect();
    let missing_in = |round: usize| trials.iter().zip(&done).filter(move |(_, done)| **done <= round);
    let todo: Vec<(usize, &Measurement)> =
        (0..rounds).flat_map(|round| missing_in(round).map(move |(trial, _)| (round, trial))).collect();
    let begin = Instant::now();
    let mut missing = BTreeSet::new();
    for (number, (round, trial)) in todo.iter().enumerate() {
        if progress.stop_requested() {
            return Ok(Vec::new());
        }
        if begin.elapsed() > limit {
            let arrays = todo[number..].iter().filter(|(round, _)| *round == 0).count();
            missing.insert(match arrays {
                0 => format!("repetitions: {round} of {rounds} rounds were done, then there was no more time"),
                _ => format!("{arrays} of {} arrays: there was no more time", trials.len()),
            });
            break;
        }
        let left = begin.elapsed().mul_f64((todo.len() - number) as f64 / number.max(1) as f64);
        let left = if number > 2 { format!(", about {} s left", left.as_secs() + 1) } else { String::new() };
        eprintln!("[{}/{}] round {} of {rounds}: {}{left}", number + 1, todo.len(), round + 1, trial.name());
        match bench.measure(trial) {
            Ok((found, warnings)) => {
                timings.add(found)?;
                if !warnings.is_empty() {
                    missing.insert("cold reads: files stayed in memory".to_owned());
                }
            }
            Err(_) if progress.stop_requested() => return Ok(Vec::new()),
            Err(error) => {
                missing.insert(format!("{}: {error:#}", trial.stack));
            }
        }
    }
    metadata_ops::measure(bench, timings, &mut missing)?;
    sharing::measure(bench, timings, &mut missing)?;
    Ok(missing.into_iter().collect())
}
