//! From counts and a profile to seconds.

use crate::configuration::Class;
use crate::contention::{Conditions, Contention, ContentionCurve, RankKind};
use crate::counter::{Costs, Overlap, Work};
use crate::counts::{Count, Part};
use crate::epochs::{Epoch, Staging, saturating};
use crate::fit::Fit;
use crate::profile::{Profile, part, reads, variable};
use hyperslab_core::{CacheState, Result};
use std::collections::BTreeMap;

/// What a workload would take on a stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Seconds of I/O that the slowest rank would see, computing left out.
    pub seconds: f64,
    /// Nine of ten runs take at least so many.
    pub low: f64,
    /// Nine of ten runs take at most so many; infinite if that is not known.
    pub high: f64,
    /// What the seconds are made of; they add up to the seconds, unless transfers go on behind the program's back.
    pub parts: BTreeMap<Part, f64>,
    /// Seconds of I/O that go on while the program computes.
    pub hidden: f64,
    /// Layers whose costs the profile does not know; they are taken to cost nothing.
    pub unknown: Vec<String>,
    /// Seconds of what the profile does not know, and that are those of ordinary machines.
    pub guessed: BTreeMap<Count, f64>,
    /// Whether ranks are processes, of which the profile knows nothing; they are taken to share as threads do.
    pub unknown_ranks: bool,
}

/// Intervals of several ranks are wider by these factors.
const THREADS_UNSURE: f64 = 1.5;
const PROCESSES_UNSURE: f64 = 2.0;

/// So far ordinary seconds may be off, either way.
const ORDINARY_UNSURE: f64 = 4.0;

/// Layers that hand calls on and cost next to nothing.
const FREE: [&str; 2] = ["auto", "slow"];

/// Predicts the time of counted work.
pub fn predict(costs: &Costs, class: Class, profile: &Profile, conditions: Conditions) -> Result<Prediction> {
    let Conditions { warmth, ranks } = conditions;
    let fit = profile.fit(class, warmth)?;
    let corrected_row = |work: &Work| {
        let row = work.row(warmth);
        let corrected = corrected(fit, &row);
        (row, corrected)
    };
    let rows: Vec<(Vec<f64>, f64)> = costs.by_rank.iter().map(corrected_row).collect();
    let known = profile.sharing(class, ranks);
    let unknown_ranks = known.is_none();
    let sharing = known.or_else(|| profile.sharing(class, RankKind::Threads));
    let crowd = sharing.unwrap_or_else(ContentionCurve::turns).of(costs.ranks);
    let shared = Shared::new(fit, &rows, crowd);
    let align = profile.aligned(costs.align);
    let (mut time, mut guessed) = (Times::default(), BTreeMap::new());
    // Of what the correction adds or takes, every part has its share.
    for (row, corrected) in &rows {
        for (place, (value, each)) in row.iter().zip(&fit.coefficients).enumerate() {
            let (part, reading) = (part(place), reads(place));
            let factor = match (part, align) {
                (Part::StorageRead, Some(align)) => align.read,
                (Part::StorageWrite, Some(align)) => align.write,
                _ => 1.0,
            };
            let seconds = value * each * corrected * shared.scale(reading) * factor;
            time.add(part, reading, seconds);
            if seconds > 0.0
                && fit.guessed.contains(&place)
                && let Some((_, count)) = variable(place)
            {
                *guessed.entry(count).or_default() += seconds;
            }
        }
    }
    time.add(Part::Metadata, false, around(costs, &crowd));
    let mut unknown = Vec::new();
    let overhead = overhead(costs, profile, &mut unknown) + time.parts.get(&Part::Layer).copied().unwrap_or(0.0);
    time.parts.insert(Part::Layer, overhead);
    time.wait_for_device(costs);
    time.parts.retain(|_, part| *part > 0.0);
    let (seen, hidden) = time.seen(costs, overhead);
    let interval = fit.interval.wider(unsure(ranks, costs.ranks));
    let guesses = guessed.values().sum::<f64>().min(seen);
    let (sure, unsure) = (interval.around(seen - guesses), interval.wider(ORDINARY_UNSURE).around(guesses));
    let (low, high) = (sure.0 + unsure.0, sure.1 + unsure.1);
    Ok(Prediction { seconds: seen, low, high, parts: time.parts, hidden, unknown, guessed, unknown_ranks })
}

/// Seconds of reads and of writes, one rank after the other, without making and opening, without layers: to be set beside
/// what the calls of a program took.
pub fn seconds_of_transfers(costs: &Costs, class: Class, profile: &Profile, warmth: CacheState) -> Result<[f64; 2]> {
    let fit = profile.fit(class, warmth)?;
    let of = |row: &[f64], reading: bool| {
        counted(fit, row, |place| reads(place) == reading && part(place) != Part::Metadata) * corrected(fit, row)
    };
    let rows: Vec<Vec<f64>> = costs.by_rank.iter().map(|work| work.row(warmth)).collect();
    Ok([true, false].map(|reading| rows.iter().map(|row| of(row, reading)).sum()))
}

/// How ranks that work at a time change the seconds that they would take one after the other.
struct Shared {
    reading: f64,
    writing: f64,
}

impl Shared {
    /// `rows`, each with what the correction changes its sum by, may be of some of the ranks, who stand for all.
    fn new(fit: &Fit, rows: &[(Vec<f64>, f64)], crowd: Contention) -> Self {
        let direction = |reading: bool| {
            let of =
                |(row, corrected): &(Vec<f64>, f64)| corrected * counted(fit, row, |place| reads(place) == reading);
            let alone = rows.iter().map(of).fold(0.0, f64::max);
            let walked: f64 = rows.iter().map(of).sum();
            // What the first rank does for all is done once, however many the others are.
            let first = rows.first().map_or(0.0, of);
            let others = (crowd.ranks.max(1) - 1) as f64 / (rows.len().max(2) - 1) as f64;
            let all = first + (walked - first) * others;
            if walked > 0.0 { crowd.seconds(reading, alone, all) / walked } else { 0.0 }
        };
        Self { reading: direction(true), writing: direction(false) }
    }

    fn scale(&self, reading: bool) -> f64 {
        if reading { self.reading } else { self.writing }
    }
}

/// What making and opening takes longer for the rank that does most of it.
fn around(costs: &Costs, crowd: &Contention) -> f64 {
    let of = |work: &Work, counts: [Count; 2]| {
        let all = counts.map(|count| work.reading[count].saturating_add(work.writing[count]));
        all[0].saturating_add(all[1])
    };
    let seconds = |work: &Work| {
        let made = of(work, [Count::ContainersCreated, Count::ArraysCreated]);
        crowd.around(made, of(work, [Count::ContainersOpened, Count::ArraysOpened]))
    };
    costs.by_rank.iter().map(seconds).fold(0.0, f64::max)
}

/// The seconds that the counts of some places add up to.
fn counted(fit: &Fit, row: &[f64], wanted: impl Fn(usize) -> bool) -> f64 {
    let places = row.iter().zip(&fit.coefficients).enumerate().filter(|(place, _)| wanted(*place));
    places.map(|(_, (value, each))| value * each).sum()
}

/// By what the correction changes the sum of a row.
fn corrected(fit: &Fit, row: &[f64]) -> f64 {
    let sum = counted(fit, row, |_| true);
    if sum > 0.0 { fit.seconds(row) / sum } else { 0.0 }
}

/// How much less is known of several ranks than of one. Of 40 runs of h5bench's patterns, with two and four ranks of each kind,
/// predicted from a quick profile, 35 lay within intervals that are so much wider (docs/machine-profile.md).
fn unsure(kind: RankKind, ranks: usize) -> f64 {
    match (kind, ranks) {
        (_, 0 | 1) => 1.0,
        (RankKind::Threads, _) => THREADS_UNSURE,
        (RankKind::Processes, _) => PROCESSES_UNSURE,
    }
}

/// What layers add on the way of every call. Copies and exchanges are done by processors.
fn overhead(costs: &Costs, profile: &Profile, unknown: &mut Vec<String>) -> f64 {
    let mut seconds = 0.0;
    for layer in &costs.layers {
        let Some(cost) = profile.layers.get(&layer.name) else {
            if !FREE.contains(&layer.name.as_str()) && layer.device.is_none() {
                unknown.push(layer.name.clone());
            }
            continue;
        };
        let by_rank: Vec<f64> = layer.by_rank.iter().map(|passed| cost.seconds(passed)).collect();
        let all = by_rank.iter().sum::<f64>() * costs.ranks as f64 / by_rank.len().max(1) as f64;
        let most = by_rank.iter().copied().fold(0.0, f64::max);
        seconds += saturating(most, all, profile.machine.processors as f64);
    }
    seconds
}

/// Seconds by what they are spent on.
#[derive(Debug, Default)]
struct Times {
    parts: BTreeMap<Part, f64>,
    /// Of transfers, what layers add left out.
    reading: f64,
    writing: f64,
    /// Of making, opening and closing, which is never put off.
    waiting: f64,
}

impl Times {
    fn add(&mut self, part: Part, reading: bool, seconds: f64) {
        *self.parts.entry(part).or_default() += seconds;
        match part {
            Part::Layer => {}
            Part::Metadata => self.waiting += seconds,
            _ if reading => self.reading += seconds,
            _ => self.writing += seconds,
        }
    }

    /// A device that is emulated answers when it would have been done, and takes one byte after the other.
    fn wait_for_device(&mut self, costs: &Costs) {
        for layer in &costs.layers {
            let Some(device) = layer.device else { continue };
            let most = |of: &dyn Fn(usize) -> f64| (0..layer.by_rank.len()).map(of).fold(0.0, f64::max);
            let reading = most(&|rank| layer.by_rank[rank].reads as f64 * device.read_call)
                + costs.bytes_read as f64 * device.read_byte;
            let writing = most(&|rank| layer.by_rank[rank].writes as f64 * device.write_call)
                + costs.bytes_written as f64 * device.write_byte;
            for (mine, its) in [(&mut self.reading, reading), (&mut self.writing, writing)] {
                let longer = (its - *mine).max(0.0);
                *mine += longer;
                *self.parts.entry(Part::Layer).or_default() += longer;
            }
        }
    }

    /// What the program sees, and what goes on behind its back.
    fn seen(&self, costs: &Costs, overhead: f64) -> (f64, f64) {
        let all = self.reading + self.writing;
        let direct = self.waiting + all + overhead;
        let put_off = match costs.behind {
            Overlap::Nothing => return (direct, 0.0),
            Overlap::Writes => self.writing,
            Overlap::All | Overlap::Chosen => self.writing + self.reading * costs.read_ahead,
        };
        let steps = if costs.epochs > 0 { costs.epochs } else { costs.pauses }.max(1);
        let each = |total: f64| total / steps as f64;
        let compute = costs.compute.as_secs_f64();
        let epoch = Epoch { compute: each(compute), transfer: each(put_off), overhead: each(overhead) };
        let transfers = (epoch.run_behind(steps, Staging::TwoBuffers) - compute).max(overhead);
        let seen = (self.waiting + (all - put_off) + transfers).min(direct);
        match costs.behind {
            // The choice is to leave the layer's work out.
            Overlap::Chosen if self.waiting + all <= seen => (self.waiting + all, 0.0),
            _ => (seen, (direct - seen).max(0.0)),
        }
    }
}
