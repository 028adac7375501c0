//! What the model thinks worth trying: chunks of each group of datasets, chunk caches, alignment. What it finds is only
//! tried; whether it is any good is measured.

use super::proposal::{Proposal, StorageChange};
use super::recorded_program::{ArrayGroup, RecordedProgram, Took};
use anyhow::Result;
use hyperslab_advisor::chunk_shapes;
use hyperslab_core::default_chunk::{cut_to_fixed_extents, grows};
use hyperslab_core::units::exact_size;
use hyperslab_core::workload::Workload;
use hyperslab_core::{ArraySpec, CacheState, Dims, LayoutOverride, Stack, StackElement, dims};
use hyperslab_model::{Class, Conditions, Configuration, Profile, RankKind, count, predict, seconds_of_transfers};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Groups whose chunks are varied, those that most bytes are moved of.
const MOST_GROUPS: usize = 8;
/// A group of less than this part of all bytes is left as it is.
const LEAST_PART: f64 = 0.01;
/// What is not predicted to be faster by this part is not tried.
const WORTH: f64 = 0.03;
/// Sizes of chunk caches that are tried.
const CACHES: [u64; 2] = [64 << 20, 256 << 20];
/// The model has so long.
const LONGEST: Duration = Duration::from_secs(20);
/// Chunks larger than this are not proposed, nor more chunks of an array than this.
const MOST_CHUNK: u64 = 64 << 20;
const MOST_CHUNKS: u64 = 1 << 20;
/// So far the profile is corrected by what was recorded.
const CORRECTED: f64 = 20.0;

/// A search for what might be faster.
pub struct ModelSearch<'a> {
    recorded: &'a RecordedProgram,
    profile: Profile,
    conditions: Conditions,
    /// Whether the program's libhdf5 is one of the first series.
    first_series: bool,
    /// What filters leave of the data.
    share: f64,
    end: Instant,
    known: HashMap<(usize, String), Option<f64>>,
    /// Proposals that were predicted.
    pub compared: usize,
    /// Whether there was no time for all.
    pub partial: bool,
}

/// Seconds of transfers, as recorded and as the profile says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calibration {
    /// What was recorded.
    pub recorded: Took,
    /// What was predicted before.
    pub predicted: Took,
}

impl<'a> ModelSearch<'a> {
    /// Begins by comparing the profile with what was recorded, and correcting it.
    pub fn new(
        recorded: &'a RecordedProgram,
        profile: Profile,
        first_series: bool,
        share: f64,
    ) -> Result<(Self, Calibration)> {
        let conditions = Conditions { warmth: CacheState::Warm, ranks: RankKind::Threads };
        let end = Instant::now() + LONGEST;
        let known = HashMap::new();
        let mut search =
            Self { recorded, profile, conditions, first_series, share, end, known, compared: 0, partial: false };
        let mut predicted = Took::default();
        for workload in &recorded.workloads {
            let configuration = search.configuration(&Proposal::default())?.stored(search.shares(workload));
            let costs = count(workload, &configuration)?;
            let [reading, writing] = seconds_of_transfers(&costs, Class::Hdf5, &search.profile, conditions.warmth)?;
            predicted.reading += reading;
            predicted.writing += writing;
        }
        let calibration = Calibration { recorded: recorded.took, predicted };
        let factor = |recorded: f64, predicted: f64| match recorded > 0.0 && predicted > 0.0 {
            true => (recorded / predicted).clamp(1.0 / CORRECTED, CORRECTED),
            false => 1.0,
        };
        let factors =
            [factor(recorded.took.reading, predicted.reading), factor(recorded.took.writing, predicted.writing)];
        search.profile = search.profile.calibrated(Class::Hdf5, conditions.warmth, factors);
        Ok((search, calibration))
    }

    /// Predicted seconds of I/O as the program is.
    pub fn present(&mut self) -> Option<f64> {
        self.seconds(&Proposal::default())
    }

    /// What is worth trying, the most promising first.
    pub fn proposals(&mut self, most: usize, memory: u64) -> Vec<Proposal> {
        let Some(present) = self.present() else { return Vec::new() };
        let shapes = self.shapes();
        let mut found: Vec<Proposal> = Vec::new();
        // The best shape of each group, and of the largest the best others.
        let (mut best, mut others) = (Proposal::default(), Vec::new());
        for (number, layouts) in shapes {
            let mut ranked: Vec<(f64, Proposal)> = Vec::new();
            for layout in layouts {
                let mut one = best.clone();
                one.changes.push((number, StorageChange { layout: Some(layout), filters: None }));
                ranked.extend(self.seconds(&one).map(|seconds| (seconds, one)));
            }
            ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
            let before = self.seconds(&best).unwrap_or(present);
            let mut ranked =
                ranked.into_iter().filter(|(seconds, _)| *seconds < (1.0 - WORTH) * before).map(|(_, one)| one);
            if let Some(first) = ranked.next() {
                others.extend(ranked.take(2));
                best = first;
            }
        }
        found.extend((!best.changes.is_empty()).then(|| best.clone()));
        found.extend(others);
        let caches: Vec<Proposal> = [Proposal::default(), best]
            .iter()
            .flat_map(|base| {
                CACHES
                    .iter()
                    .filter(|size| **size <= memory / 8)
                    .map(|size| Proposal { cache: Some(*size), ..base.clone() })
            })
            .filter(|one| self.recorded.groups.iter().enumerate().any(|(number, group)| one.is_chunked(number, group)))
            .collect();
        found.extend(caches);
        let aligned: Vec<u64> = self
            .profile
            .alignment
            .iter()
            .filter(|known| known.read.min(known.write) < 1.0 - WORTH)
            .map(|known| known.bytes)
            .collect();
        let creates = !self.recorded.created.is_empty();
        found.extend(
            aligned.into_iter().filter(|_| creates).map(|bytes| Proposal { align: Some(bytes), ..Proposal::default() }),
        );
        let mut scored: Vec<Proposal> = Vec::new();
        for mut one in found {
            one.predicted = self.seconds(&one);
            let worth = one.predicted.is_some_and(|seconds| seconds < (1.0 - WORTH) * present);
            // Of two that are predicted to take the same, the one that changes less stays.
            let twin = scored.iter().any(|known| {
                known.predicted.zip(one.predicted).is_some_and(|(a, b)| (a - b).abs() <= 1e-3 * a)
                    && known.changes == one.changes
            });
            if worth && !twin {
                scored.push(one);
            }
        }
        scored.sort_by(|a, b| a.predicted.unwrap_or(f64::MAX).total_cmp(&b.predicted.unwrap_or(f64::MAX)));
        scored.truncate(most);
        scored
    }

    /// Layouts to try of each group that the program creates and that matters.
    fn shapes(&self) -> Vec<(usize, Vec<LayoutOverride>)> {
        let all: u64 = self.recorded.groups.iter().map(|group| group.bytes).fold(0, u64::saturating_add);
        let groups = self.recorded.groups.iter().enumerate();
        let matters = |group: &ArrayGroup| group.created && group.bytes as f64 >= LEAST_PART * all as f64;
        groups
            .filter(|(_, group)| matters(group))
            .take(MOST_GROUPS)
            .map(|(number, group)| (number, self.layouts(group)))
            .collect()
    }

    fn layouts(&self, group: &ArrayGroup) -> Vec<LayoutOverride> {
        let spec = &group.spec;
        let workloads: Vec<Workload> =
            group.places.iter().filter_map(|(workload, _)| self.recorded.workloads.get(*workload).cloned()).collect();
        let workloads: Vec<&Workload> = workloads.iter().collect();
        let fits = |chunk: &Dims| {
            let bytes = dims::byte_count(chunk, spec.dtype.size()).unwrap_or(u64::MAX);
            let chunks = spec.shape.iter().zip(chunk).map(|(extent, c)| extent.div_ceil((*c).max(1))).product::<u64>();
            bytes <= MOST_CHUNK && chunks <= MOST_CHUNKS && !chunk.is_empty() && Some(chunk) != spec.chunk.as_ref()
        };
        let mut layouts: Vec<LayoutOverride> = Vec::new();
        for chunk in chunk_shapes(&workloads, spec) {
            let chunk = cut_to_fixed_extents(chunk, spec);
            let layout = LayoutOverride::Chunked(chunk.clone());
            if fits(&chunk) && !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        if spec.chunk.is_some() && spec.filters.is_empty() && !grows(spec) {
            layouts.push(LayoutOverride::Contiguous);
        }
        layouts
    }

    /// Predicted seconds of I/O; `None` if that cannot be said or there is no time for it.
    pub fn seconds(&mut self, proposal: &Proposal) -> Option<f64> {
        self.compared += 1;
        let mut sum = 0.0;
        for number in 0..self.recorded.workloads.len() {
            let changes: Vec<(usize, usize, &StorageChange)> = proposal
                .changes
                .iter()
                .flat_map(|(group, change)| {
                    let places =
                        self.recorded.groups.get(*group).map(|group| group.places.iter()).into_iter().flatten();
                    places.filter(|(workload, _)| *workload == number).map(move |(_, array)| (*group, *array, change))
                })
                .collect();
            let key = (number, format!("{changes:?} {:?} {:?}", proposal.cache, proposal.align));
            let seconds = match self.known.get(&key) {
                Some(known) => *known,
                None if Instant::now() > self.end => {
                    self.partial = true;
                    return None;
                }
                None => {
                    let seconds = self.predicted(number, &changes, proposal).ok();
                    self.known.insert(key, seconds);
                    seconds
                }
            };
            sum += seconds?;
        }
        Some(sum)
    }

    fn predicted(&self, number: usize, changes: &[(usize, usize, &StorageChange)], proposal: &Proposal) -> Result<f64> {
        let workload = &self.recorded.workloads[number];
        let mut header = workload.header.clone();
        for (_, array, change) in changes {
            let Some(declared) = header.arrays.get_mut(*array) else { continue };
            put(&mut declared.spec, change);
        }
        let workload = workload.with_header(header)?;
        let configuration = self.configuration(proposal)?.stored(self.shares(&workload));
        let costs = count(&workload, &configuration)?;
        Ok(predict(&costs, configuration.class(), &self.profile, self.conditions)?.seconds)
    }

    fn configuration(&self, proposal: &Proposal) -> Result<Configuration> {
        let mut options: Vec<(String, String)> = Vec::new();
        options.extend(proposal.cache.map(|bytes| ("cache".to_owned(), exact_size(bytes))));
        options.extend(proposal.align.map(|bytes| ("align".to_owned(), exact_size(bytes))));
        let stack = Stack { layers: Vec::new(), format: StackElement { name: "hdf5".into(), options } };
        let configuration = hyperslab::configuration(&stack)?;
        Ok(if self.first_series { configuration.with_hdf5_1() } else { configuration })
    }

    fn shares(&self, workload: &Workload) -> Vec<f64> {
        vec![self.share; workload.header.arrays.len()]
    }
}

fn put(spec: &mut ArraySpec, change: &StorageChange) {
    match &change.layout {
        Some(LayoutOverride::Chunked(chunk)) if chunk.len() == spec.shape.len() => spec.chunk = Some(chunk.clone()),
        Some(LayoutOverride::Contiguous) => spec.chunk = None,
        _ => {}
    }
    if let Some(filters) = &change.filters {
        spec.filters = filters.clone();
    }
}
