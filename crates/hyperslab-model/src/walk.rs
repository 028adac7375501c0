//! A walk over the steps of a workload that counts what a stack would do.

mod open_arrays;

use crate::configuration::Configuration;
use crate::counts::{Count, Counts};
use crate::layers;
use crate::paths::{Request, beyond_caches};
use crate::pieces::memory_run;
use crate::profile::Warmth;
use hyperslab_core::workload::{ArrayDeclaration, Step, Steps, Workload};
use hyperslab_core::{Durability, Error, MemoryLayout, Open, Result, Selection};
use open_arrays::OpenArrays;
use std::time::Duration;

/// The most ranks that are walked; the others are taken to be like them.
const RANKS_WALKED: usize = 64;

/// What a workload makes a stack do.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// By rank: what the format does in calls of that rank. Of many ranks only some, evenly chosen.
    pub by_rank: Vec<Work>,
    /// Number of ranks that the workload has.
    pub ranks: usize,
    /// Bytes that all ranks write.
    pub bytes_written: u64,
    /// Bytes that all ranks read.
    pub bytes_read: u64,
    /// The longest time that a rank computes.
    pub compute: Duration,
    /// Time steps.
    pub epochs: u64,
}

impl Costs {
    /// What all ranks do together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.by_rank.iter().for_each(|work| {
            total += &work.reading;
            total += &work.writing;
        });
        total.scaled(self.ranks as u64, self.by_rank.len() as u64)
    }
}

/// What a rank makes the format do, by direction: the same thing costs more one way than the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// In reads, and to open what is there.
    pub reading: Counts,
    /// In writes, to make, flush and close.
    pub writing: Counts,
}

impl Work {
    /// As a row of a table of variables: those of reading, then those of writing. If files are in memory, no device is
    /// asked.
    pub fn row(&self, warmth: Warmth) -> Vec<f64> {
        let in_memory = |mut counts: Counts| {
            if warmth == Warmth::Warm {
                (counts[Count::DeviceReads], counts[Count::DeviceBytes]) = (0, 0);
            }
            counts.row()
        };
        [in_memory(self.reading), in_memory(self.writing)].concat()
    }
}

/// Counts what running the workload would make the stack do. Touches no storage. The work is in proportion to the steps
/// and to the chunks that they touch; memory to the chunks that caches would hold, and a bit for each chunk written.
pub fn count(workload: &Workload, configuration: &Configuration) -> Result<Costs> {
    let ranks = workload.header.ranks;
    let walked: Vec<usize> = match ranks {
        0..=RANKS_WALKED => (0..ranks).collect(),
        _ => (0..RANKS_WALKED).map(|i| i * ranks / RANKS_WALKED).collect(),
    };
    let mut walk = Walk {
        workload,
        configuration,
        arrays: OpenArrays::default(),
        ranks: walked.iter().map(|_| Rank::default()).collect(),
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
}

struct Walk<'a> {
    workload: &'a Workload,
    configuration: &'a Configuration,
    arrays: OpenArrays,
    ranks: Vec<Rank>,
}

impl Walk<'_> {
    fn step(&mut self, place: usize, rank: usize, step: Step) -> Result<()> {
        let workload = self.workload;
        if let Step::Write { slot, selection, memory, .. } = &step {
            let bytes = self.transfer(place, *slot, selection, memory, true)?;
            self.ranks[place].written = self.ranks[place].written.saturating_add(bytes);
            return Ok(());
        }
        if let Step::Read { slot, selection, memory, .. } = &step {
            let bytes = self.transfer(place, *slot, selection, memory, false)?;
            self.ranks[place].read = self.ranks[place].read.saturating_add(bytes);
            return Ok(());
        }
        let Self { configuration, arrays, ranks, .. } = self;
        let mine = &mut ranks[place];
        // What all ranks do together is done by the first, unless every rank has a file of its own.
        let alone = |file: u32| workload.header.files.get(file as usize).is_some_and(|file| file.per_rank);
        let does = |file: u32| place == 0 || alone(file);
        let Work { reading, writing: counts } = &mut mine.work;
        match step {
            Step::OpenFile { file, how } => {
                let makes = matches!(how, Open::Create | Open::Truncate);
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
                arrays.open((place, slot), (file, alone(file).then_some(rank), name), spec, configuration, true)?;
            }
            Step::Open { slot, file, array, name } => {
                reading.add(Count::ArraysOpened, u64::from(does(file)));
                let spec = &declared(workload, array)?.spec;
                arrays.open((place, slot), (file, alone(file).then_some(rank), name), spec, configuration, false)?;
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
            Step::Compute { nanoseconds } => mine.compute = mine.compute.saturating_add(nanoseconds),
            Step::Epoch { .. } => mine.epochs += 1,
        }
        Ok(())
    }

    /// Counts a transfer; returns its bytes.
    fn transfer(
        &mut self,
        place: usize,
        slot: u32,
        selection: &Selection,
        memory: &MemoryLayout,
        writes: bool,
    ) -> Result<u64> {
        let open = self.arrays.get(place, slot)?;
        let plan = memory.plan(&open.dtype)?;
        let request =
            Request { selection, writes, whole: plan.covers_element(), memory_run: memory_run(memory, &open.dtype)? };
        let each: u64 = plan.pieces.iter().map(|piece| piece.len).sum();
        let bytes = selection.len().saturating_mul(each);
        let work = &mut self.ranks[place].work;
        let counts = if writes { &mut work.writing } else { &mut work.reading };
        counts.add(Count::Requests, 1);
        counts.add(Count::LargeBytes, beyond_caches(bytes));
        if selection.is_empty() {
            return Ok(0);
        }
        layers::count(&self.configuration.layers, bytes, writes, counts);
        open.transfer(request, counts)?;
        Ok(bytes)
    }

    fn finish(self, ranks: usize) -> Costs {
        let walked = self.ranks.len().max(1) as u128;
        let scale = |sum: u128| u64::try_from(sum * ranks as u128 / walked).unwrap_or(u64::MAX);
        Costs {
            ranks,
            bytes_written: scale(self.ranks.iter().map(|rank| u128::from(rank.written)).sum()),
            bytes_read: scale(self.ranks.iter().map(|rank| u128::from(rank.read)).sum()),
            compute: Duration::from_nanos(self.ranks.iter().map(|rank| rank.compute).max().unwrap_or(0)),
            epochs: self.ranks.iter().map(|rank| rank.epochs).max().unwrap_or(0),
            by_rank: self.ranks.into_iter().map(|rank| rank.work).collect(),
        }
    }
}

fn declared(workload: &Workload, array: u32) -> Result<&ArrayDeclaration> {
    let found = workload.header.arrays.get(array as usize);
    found.ok_or_else(|| Error::invalid("count workload", format!("array {array} is not declared")))
}
