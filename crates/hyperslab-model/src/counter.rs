//! A walk over the steps of a workload that counts what a stack would do.

mod costs;
mod merged_requests;
mod open_arrays;
mod read_cache;
mod transfer;

pub use costs::{Costs, Overlap, Work};

use crate::configuration::Configuration;
use crate::counts::Count;
use crate::layers::{LayerCost, LayerUse, LayerWork};
use hyperslab_core::LayerEffect;
use hyperslab_core::workload::{ArrayDeclaration, Step, Steps, Workload};
use hyperslab_core::{Durability, Error, OpenMode, Result};
use merged_requests::MergedRequests;
use open_arrays::OpenArrays;
use read_cache::ReadCache;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// The most ranks that are walked; the others are taken to be like them.
const RANKS_WALKED: usize = 64;

/// Counts what running the workload would make the stack do. Touches no storage. The work is in proportion to the steps
/// and to the chunks that they touch; memory to the chunks that caches would hold, and a bit for each chunk written.
pub fn count(workload: &Workload, configuration: &Configuration) -> Result<Costs> {
    let ranks = workload.header.ranks;
    let walked: Vec<usize> = match ranks {
        0..=RANKS_WALKED => (0..ranks).collect(),
        _ => (0..RANKS_WALKED).map(|i| i * ranks / RANKS_WALKED).collect(),
    };
    let mut walk = Counter {
        workload,
        configuration,
        arrays: OpenArrays::default(),
        ranks: walked
            .iter()
            .map(|_| Rank { layers: vec![LayerUse::default(); configuration.layers.len()], ..Rank::default() })
            .collect(),
        together: HashMap::new(),
        logged: HashMap::new(),
        kept: ReadCache::default(),
        visits: 0,
    };
    let mut streams: Vec<Option<Steps<'_>>> =
        walked.iter().map(|&rank| workload.steps(rank).map(Some)).collect::<Result<_>>()?;
    // In turns, so that ranks which share an array share its caches as they would.
    while streams.iter().any(Option::is_some) {
        for (place, stream) in streams.iter_mut().enumerate() {
            let Some(steps) = stream else { continue };
            match steps.next() {
                Some(step) => walk.step(place, walked[place], step?)?,
                None => *stream = None,
            }
        }
    }
    walk.store_logged(None)?;
    Ok(walk.finish(ranks))
}

/// What is kept of a rank on the way.
#[derive(Debug, Default)]
struct Rank {
    work: Work,
    written: u64,
    read: u64,
    compute: u64,
    epochs: u64,
    pauses: u64,
    /// Something was transferred since it computed.
    busy: bool,
    layers: Vec<LayerUse>,
    /// Arrays of which it has read something, and bytes that it read of such.
    has_read: HashSet<usize>,
    foreseen: u64,
    /// Collective transfers of each array.
    turns: HashMap<usize, u64>,
}

struct Counter<'a> {
    workload: &'a Workload,
    configuration: &'a Configuration,
    arrays: OpenArrays,
    ranks: Vec<Rank>,
    /// Collective transfers that wait for ranks, by array and number.
    together: HashMap<(usize, u64), MergedRequests>,
    /// Writes in a log, by array.
    logged: HashMap<usize, MergedRequests>,
    kept: ReadCache,
    /// Chunks that transfers visited.
    visits: u64,
}

impl Counter<'_> {
    fn step(&mut self, place: usize, rank: usize, step: Step) -> Result<()> {
        let workload = self.workload;
        if let Step::Write { slot, selection, memory, transfer } = &step {
            let bytes = self.transfer(place, *slot, (selection, memory, *transfer), true)?;
            self.ranks[place].written = self.ranks[place].written.saturating_add(bytes);
            return Ok(());
        }
        if let Step::Read { slot, selection, memory, transfer } = &step {
            let bytes = self.transfer(place, *slot, (selection, memory, *transfer), false)?;
            self.ranks[place].read = self.ranks[place].read.saturating_add(bytes);
            return Ok(());
        }
        match &step {
            Step::Flush { file, .. } => {
                let per_rank = workload.header.files.get(*file as usize).is_some_and(|file| file.per_rank);
                self.store_logged(Some(self.arrays.of_file(*file, per_rank.then_some(rank))))?;
            }
            Step::CloseArray { slot } => {
                let number = self.arrays.number(place, *slot)?;
                if self.arrays.is_last(number) {
                    self.store_logged(Some(vec![number]))?;
                }
            }
            _ => {}
        }
        let Self { configuration, arrays, ranks, .. } = self;
        let mine = &mut ranks[place];
        // What all ranks do together is done by the first, unless every rank has a file of its own.
        let alone = |file: u32| workload.header.files.get(file as usize).is_some_and(|file| file.per_rank);
        let does = |file: u32| place == 0 || alone(file);
        let Work { reading, writing: counts } = &mut mine.work;
        match step {
            Step::OpenFile { file, how } => {
                let makes = matches!(how, OpenMode::Create | OpenMode::Truncate);
                if makes && does(file) {
                    arrays.forget(file, rank, alone(file));
                }
                match makes {
                    true => counts.add(Count::ContainersCreated, u64::from(does(file))),
                    false => reading.add(Count::ContainersOpened, u64::from(does(file))),
                }
            }
            Step::Group { file, .. } | Step::Attribute { file, .. } => {
                counts.add(Count::Attributes, u64::from(does(file)));
            }
            Step::Create { slot, file, array, name } => {
                counts.add(Count::ArraysCreated, u64::from(does(file)));
                let spec = &declared(workload, array)?.spec;
                arrays.open(
                    (place, slot),
                    (file, alone(file).then_some(rank), name),
                    (array, spec),
                    configuration,
                    true,
                )?;
            }
            Step::Open { slot, file, array, name } => {
                reading.add(Count::ArraysOpened, u64::from(does(file)));
                let spec = &declared(workload, array)?.spec;
                arrays.open(
                    (place, slot),
                    (file, alone(file).then_some(rank), name),
                    (array, spec),
                    configuration,
                    false,
                )?;
            }
            Step::Resize { slot, shape } => {
                counts.add(Count::Resizes, u64::from(place == 0));
                arrays.get(place, slot)?.resize(&shape, counts)?;
            }
            Step::Flush { file, how } => {
                if does(file) {
                    counts.add(Count::Flushes, 1);
                    counts.add(Count::Syncs, u64::from(how == Durability::Durable));
                    arrays.flush(file, alone(file).then_some(rank), counts);
                }
            }
            Step::CloseArray { slot } => arrays.close(place, slot, counts)?,
            Step::Write { .. } | Step::Read { .. } | Step::CloseFile { .. } | Step::Barrier => {}
            Step::Compute { nanoseconds } => {
                mine.compute = mine.compute.saturating_add(nanoseconds);
                mine.pauses += u64::from(std::mem::take(&mut mine.busy));
            }
            Step::Epoch { .. } => mine.epochs += 1,
        }
        Ok(())
    }

    fn finish(self, ranks: usize) -> Costs {
        let walked = self.ranks.len().max(1) as u128;
        let scale = |sum: u128| u64::try_from(sum * ranks as u128 / walked).unwrap_or(u64::MAX);
        let sum = |of: &dyn Fn(&Rank) -> u64| self.ranks.iter().map(|rank| u128::from(of(rank))).sum::<u128>();
        let read = sum(&|rank| rank.read);
        let layers = self.configuration.layers.iter().enumerate().map(|(number, layer)| LayerWork {
            name: layer.name.clone(),
            by_rank: self.ranks.iter().map(|rank| rank.layers[number]).collect(),
            device: match layer.way {
                LayerEffect::Emulated { rate, latency } => Some(LayerCost {
                    write_call: latency,
                    write_byte: 1.0 / rate,
                    read_call: latency,
                    read_byte: 1.0 / rate,
                }),
                _ => None,
            },
        });
        Costs {
            pauses: self.ranks.iter().map(|rank| rank.pauses).max().unwrap_or(0),
            layers: layers.collect(),
            behind: self.behind(),
            read_ahead: sum(&|rank| rank.foreseen) as f64 / (read as f64).max(1.0),
            align: self.configuration.align(),
            ranks,
            bytes_written: scale(sum(&|rank| rank.written)),
            bytes_read: scale(read),
            compute: Duration::from_nanos(self.ranks.iter().map(|rank| rank.compute).max().unwrap_or(0)),
            epochs: self.ranks.iter().map(|rank| rank.epochs).max().unwrap_or(0),
            by_rank: self.ranks.into_iter().map(|rank| rank.work).collect(),
        }
    }

    /// What goes on while ranks compute. A log begins by itself only when there is much in it, or when time has passed.
    fn behind(&self) -> Overlap {
        let most = |of: &dyn Fn(&Rank) -> u64| self.ranks.iter().map(of).max().unwrap_or(0);
        let compute = Duration::from_nanos(most(&|rank| rank.compute));
        let ways = self.configuration.layers.iter().map(|layer| layer.way);
        let found = ways.into_iter().map(|way| match way {
            LayerEffect::Overlap | LayerEffect::ReadCache { .. } => Overlap::All,
            LayerEffect::Chosen => Overlap::Chosen,
            LayerEffect::Logged { drain, age, .. } if most(&|rank| rank.written) >= drain || compute >= age => {
                Overlap::Writes
            }
            _ => Overlap::Nothing,
        });
        found.into_iter().find(|behind| *behind != Overlap::Nothing).unwrap_or_default()
    }
}

fn declared(workload: &Workload, array: u32) -> Result<&ArrayDeclaration> {
    let found = workload.header.arrays.get(array as usize);
    found.ok_or_else(|| Error::invalid("count workload", format!("array {array} is not declared")))
}
