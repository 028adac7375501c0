//! How ranks share the machine: measured by having several of them write and read one array.

use super::measured::{Bench, shares};
use super::timings::{Timing, Timings};
use super::trial::Trial;
use crate::mpi_job;
use anyhow::Result;
use hyperslab_core::dims;
use hyperslab_model::{Class, Configuration, Fit, RankKind, Sharing, Warmth, count};
use std::collections::{BTreeMap, BTreeSet};

/// More ranks than this would have less than a chunk each of what they share.
const MOST_RANKS: usize = 16;

/// Measures what is not measured yet.
pub fn measure(
    trials: &[Trial],
    bench: &Bench<'_>,
    timings: &mut Timings,
    missing: &mut BTreeSet<String>,
) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks: BTreeSet<usize> = [1, 2, processors, 2 * processors].into_iter().map(|n| n.min(MOST_RANKS)).collect();
    for kind in RankKind::ALL {
        if kind == RankKind::Processes && !mpi_job::COMPILED_IN {
            missing.insert(format!("ranks that are processes: this build has no MPI; {}", mpi_job::HOW_TO_BUILD));
            continue;
        }
        for class in Class::ALL {
            if kind == RankKind::Threads && class.serialises_ranks() {
                continue;
            }
            let Some(trial) = subject(trials, class) else { continue };
            for &n in &ranks {
                if of(timings, trial, kind, "read").any(|known| known.ranks == n) {
                    continue;
                }
                if bench.progress.stop_requested() {
                    return Ok(());
                }
                eprintln!("{n} {} on {}", kind.name(), class.name());
                match bench.shared(trial, kind, n) {
                    Ok(found) => timings.add(found)?,
                    Err(error) => {
                        missing.insert(format!("{n} {} on {}: {error:#}", kind.name(), class.name()));
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}

/// What was found, for each way of storing that ranks of a kind were measured on.
pub fn found(
    trials: &[Trial],
    timings: &Timings,
    fits: &BTreeMap<(Class, Warmth), Fit>,
) -> Result<BTreeMap<(Class, RankKind), Sharing>> {
    let mut sharing = BTreeMap::new();
    for kind in RankKind::ALL {
        for class in Class::ALL {
            let (Some(trial), Some(fit)) = (subject(trials, class), fits.get(&(class, Warmth::Warm))) else { continue };
            let (mut servers, mut alone) = (BTreeMap::new(), Vec::new());
            for direction in ["read", "write"] {
                let Some(one) = of(timings, trial, kind, direction).find(|timing| timing.ranks == 1) else { continue };
                // The ranks share one array: what is done faster is done by several at a time.
                let faster = of(timings, trial, kind, direction).map(|timing| one.median() / timing.median());
                servers.insert(direction, faster.fold(1.0, f64::max).min(1024.0));
                alone.push(one.median() / expected(trial, fit, direction == "write")?);
            }
            let (Some(&read), Some(&write)) = (servers.get("read"), servers.get("write")) else { continue };
            // Threads are what everything else was measured with.
            let alone = match kind {
                RankKind::Threads => 1.0,
                RankKind::Processes => alone.iter().product::<f64>().powf(1.0 / alone.len() as f64).clamp(0.1, 10.0),
            };
            sharing.insert((class, kind), Sharing { alone, read, write });
        }
    }
    Ok(sharing)
}

/// What ranks share: the largest array that is stored in equal pieces of some size, as it is, in a row.
fn subject(trials: &[Trial], class: Class) -> Option<&Trial> {
    let in_a_row = |trial: &&Trial| trial.class == class && trial.subject.shape.len() == 1;
    let size = |trial: &&Trial| dims::element_count(&trial.subject.shape).unwrap_or(0);
    let chunked = |trial: &&Trial| class == Class::Posix || trial.stack.format.get("chunk").is_some();
    // The first of the largest.
    trials.iter().rev().filter(in_a_row).filter(chunked).max_by_key(size)
}

fn of<'a>(
    timings: &'a Timings,
    trial: &Trial,
    kind: RankKind,
    direction: &'a str,
) -> impl Iterator<Item = &'a Timing> + use<'a> {
    let name = trial.name();
    timings
        .all
        .iter()
        .filter(move |timing| timing.access == shares(kind) && timing.trial == name && timing.direction == direction)
}

/// Seconds that one rank should take.
fn expected(trial: &Trial, fit: &Fit, writes: bool) -> Result<f64> {
    let workload = trial.shared("train", 1, writes)?;
    let costs = count(&workload, &Configuration::of(&trial.stack)?)?;
    let row = costs.by_rank.first().map(|work| work.row(Warmth::Warm)).unwrap_or_default();
    Ok(fit.seconds(&row).max(1e-9))
}
