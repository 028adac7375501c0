//! How ranks share the machine: measured by having several of them write and read one array.

use super::measured::{Bench, openings, shares};
use super::measurement::{MeasuredArray, Measurement, OPENED};
use super::metadata_ops;
use super::timings::Timings;
use anyhow::Result;
use hyperslab_bench::mpi_job;
use hyperslab_core::CacheState;
use hyperslab_core::Dims;
use hyperslab_model::{Class, Contention, ContentionCurve, Fit, RankKind, count};
use std::collections::{BTreeMap, BTreeSet};

/// The array: 64 MiB, so that transfers can be told from what comes before and after them.
const ELEMENTS: u64 = 1 << 23;
/// How it is stored, one for each class. More than 16 ranks would have less than a chunk each.
const STACKS: [&str; 5] = [
    "posix",
    "hdf5(chunk=524288)",
    "hdf5(chunk=524288,plane=on)",
    "zarr(chunk=524288)",
    "zarr(chunk=524288,shard=2097152)",
];
const MOST_RANKS: usize = 16;

/// Measures what is not measured yet.
pub fn measure(bench: &Bench<'_>, timings: &mut Timings, missing: &mut BTreeSet<String>) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let crowds: BTreeSet<usize> = [1, processors, 2 * processors].into_iter().map(|n| n.min(MOST_RANKS)).collect();
    for kind in RankKind::ALL {
        if kind == RankKind::Processes && !mpi_job::COMPILED_IN {
            missing.insert(format!("ranks that are processes: this build has no MPI; {}", mpi_job::HOW_TO_BUILD));
            continue;
        }
        for Pair { shared, opened } in pairs()? {
            let class = shared.class;
            // A single thread is what all others are compared with.
            let turns = kind == RankKind::Threads && class.serialises_ranks();
            for &ranks in crowds.iter().filter(|&&ranks| ranks == 1 || !turns) {
                if Shared::of(timings, (&shared, &opened), kind, ranks).is_some() {
                    continue;
                }
                if bench.progress.stop_requested() {
                    return Ok(());
                }
                eprintln!("several ranks: {}, {} of {ranks}", class.name(), kind.name());
                let both = bench.opened(&opened, kind, ranks).and_then(|mut timings| {
                    timings.extend(bench.shared(&shared, kind, ranks)?);
                    Ok(timings)
                });
                match both {
                    Ok(found) => timings.add(found)?,
                    Err(_) if kind == RankKind::Processes && ranks == 1 => {
                        let words =
                            "ranks that are processes: not even one could be started; hyperslab doctor says why";
                        missing.insert(words.into());
                        return Ok(());
                    }
                    Err(error) => {
                        missing.insert(format!("{}, {} of {ranks}: {error:#}", class.name(), kind.name()));
                        break;
                    }
                }
            }
        }
    }
    Ok(())
}

/// What was found, for each way of storing that ranks of a kind were measured on.
pub fn found(timings: &Timings, fits: &Fits) -> Result<BTreeMap<(Class, RankKind), ContentionCurve>> {
    let mut sharing = BTreeMap::new();
    for Pair { shared: trial, opened } in pairs()? {
        let Some(fit) = fits.get(&(trial.class, CacheState::Warm)) else { continue };
        let trials = (&trial, &opened);
        let Some(alone) = Shared::of(timings, trials, RankKind::Threads, 1) else { continue };
        for kind in RankKind::ALL {
            let mut crowds = Vec::new();
            for ranks in 1..=MOST_RANKS {
                let Some(shared) = Shared::of(timings, trials, kind, ranks) else { continue };
                // Parts of an array may be less work than the whole of it at once.
                let rate = |alone: f64, together: f64, writes: bool| -> Result<f64> {
                    let work = expected(&trial, fit, ranks, writes)? / expected(&trial, fit, 1, writes)?;
                    // More than as many as there are could only be because one alone was disturbed.
                    Ok((work * alone / together).clamp(0.01, ranks as f64))
                };
                let (read, write) = (rate(alone.read, shared.read, false)?, rate(alone.write, shared.write, true)?);
                let longer = |alone: f64, together: f64| (together - alone).max(0.0);
                let (create, open) = (longer(alone.create, shared.create), longer(alone.open, shared.open));
                crowds.push(Contention { ranks, create, open, read, write });
            }
            if !crowds.is_empty() {
                sharing.insert((trial.class, kind), ContentionCurve::new(crowds)?);
            }
        }
    }
    Ok(sharing)
}

/// What was fitted.
type Fits = BTreeMap<(Class, CacheState), Fit>;

/// Seconds that ranks should take one after the other.
fn expected(trial: &Measurement, fit: &Fit, ranks: usize, writes: bool) -> Result<f64> {
    let costs = count(&trial.shared("train", ranks, writes)?, &hyperslab::configuration(&trial.stack)?)?;
    Ok(costs.by_rank.iter().map(|work| fit.seconds(&work.row(CacheState::Warm))).sum::<f64>().max(1e-9))
}

/// The shortest times of ranks that share an array. What disturbs makes a few runs much longer and none shorter.
struct Shared {
    /// Reading elements.
    read: f64,
    /// Writing them.
    write: f64,
    /// Making a container or an array, each.
    create: f64,
    /// Opening one.
    open: f64,
}

impl Shared {
    /// Of an array that is shared, and of small ones that are opened.
    fn of(timings: &Timings, trials: (&Measurement, &Measurement), kind: RankKind, ranks: usize) -> Option<Self> {
        let names = (trials.0.name(), trials.1.name());
        let of = |name: &str, access: &str, direction: &str| {
            let mut found = timings.of(name, access);
            let found = found.find(|timing| timing.direction == direction && timing.ranks == ranks);
            found.map(|timing| timing.seconds.iter().copied().fold(f64::INFINITY, f64::min))
        };
        let (whole, opening) = (shares(kind), openings(kind));
        // The container is one more.
        let each = |all: f64| all / f64::from(OPENED + 1);
        let (create, open) = (each(of(&names.1, &opening, "write")?), each(of(&names.1, &opening, "read")?));
        // One container and one array are around the transfers.
        let rest = |whole: f64, each: f64| (whole - 2.0 * each).max(0.1 * whole);
        let (read, write) = (rest(of(&names.0, &whole, "read")?, open), rest(of(&names.0, &whole, "write")?, create));
        Some(Self { read, write, create, open })
    }
}

/// What ranks share, and what they make and open.
struct Pair {
    shared: Measurement,
    opened: Measurement,
}

fn pairs() -> Result<Vec<Pair>> {
    let pair = |(text, opened): (&&str, Measurement)| {
        let subject = MeasuredArray { shape: Dims::from_elem(ELEMENTS, 1), ..opened.subject.clone() };
        let shared = Measurement { subject, layout: "shared".into(), stack: text.parse()?, class: opened.class };
        Ok(Pair { shared, opened })
    };
    STACKS.iter().zip(metadata_ops::trials()?).map(pair).collect()
}
