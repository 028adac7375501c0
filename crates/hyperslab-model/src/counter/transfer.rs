//! Transfers on their way through layers to the format.

use super::Counter;
use super::merged_requests::{Doers, MergedRequests};
use crate::chunk_pieces::memory_run;
use crate::configuration::Layer;
use crate::cost_models::{Request, beyond_caches};
use crate::counts::Count;
use crate::layers;
use hyperslab_core::LayerEffect;
use hyperslab_core::{Datatype, Error, MemoryLayout, Result, Selection, TransferMode};

/// The most writes of an array that are taken to be in a log at a time.
const MOST_LOGGED: usize = 1 << 14;

impl Counter<'_> {
    /// Counts a transfer; returns its bytes.
    pub(super) fn transfer(
        &mut self,
        place: usize,
        slot: u32,
        (selection, memory, transfer): (&Selection, &MemoryLayout, TransferMode),
        writes: bool,
    ) -> Result<u64> {
        let number = self.arrays.number(place, slot)?;
        let open = self.arrays.by_number(number);
        if open.dtype == Datatype::VariableString {
            let message = "what strings of variable length cost is not known";
            return Err(Error::unsupported("predict", message).hint("measure them with hyperslab bench"));
        }
        let plan = memory.plan(&open.dtype)?;
        let whole = plan.covers_element();
        let request = Request { selection, writes, whole, memory_run: memory_run(memory, &open.dtype)? };
        let each: u64 = plan.pieces.iter().map(|piece| piece.len).sum();
        let bytes = selection.len().saturating_mul(each);
        let several = self.workload.header.ranks > 1;
        let mine = &mut self.ranks[place];
        let work = &mut mine.work;
        let counts = if writes { &mut work.writing } else { &mut work.reading };
        counts.add(Count::Requests, 1);
        counts.add(Count::LargeBytes, beyond_caches(bytes));
        if !selection.is_empty() {
            layers::count(&self.configuration.layers, &mut mine.layers, bytes, writes, counts);
            mine.busy = true;
            if !writes && !mine.has_read.insert(number) {
                mine.foreseen = mine.foreseen.saturating_add(bytes);
            }
        }
        let way = way(&self.configuration.layers, several && transfer == TransferMode::Collective, writes, whole);
        match way {
            Some(LayerEffect::Together { aggregators, buffer }) => {
                let turn = mine.turns.entry(number).or_default();
                let key = (number, *turn);
                *turn += 1;
                let joint = self.together.entry(key).or_default();
                joint.add(place, selection);
                if joint.came == self.ranks.len() {
                    let joint = self.together.remove(&key).unwrap_or_default();
                    self.put_together(number, joint, aggregators.unwrap_or(2) as usize, buffer, writes)?;
                }
            }
            Some(LayerEffect::Logged { .. }) => {
                let joint = self.logged.entry(number).or_default();
                joint.add(place, selection);
                if joint.len() >= MOST_LOGGED {
                    self.store_logged(Some(vec![number]))?;
                }
            }
            Some(LayerEffect::ReadCache { memory }) if !writes && self.kept.has(number, selection, bytes, memory) => {}
            _ if selection.is_empty() => {}
            _ => {
                if writes {
                    self.kept.forget(number);
                }
                let work = &mut self.ranks[place].work;
                let counts = if writes { &mut work.writing } else { &mut work.reading };
                let before = counts[Count::ChunkVisits];
                self.arrays.by_number(number).transfer(request, counts)?;
                self.visits = self.visits.saturating_add(counts[Count::ChunkVisits].saturating_sub(before));
                if self.visits > self.configuration.most_visits {
                    let message = format!("more than {} chunks are visited", self.configuration.most_visits);
                    return Err(Error::unsupported("count workload", message));
                }
            }
        }
        Ok(bytes)
    }

    /// Counts what few ranks do for all.
    fn put_together(
        &mut self,
        number: usize,
        joint: MergedRequests,
        doers: usize,
        buffer: u64,
        writes: bool,
    ) -> Result<()> {
        let element = self.arrays.by_number(number).dtype.size();
        let (walked, ranks) = (self.ranks.len(), self.workload.header.ranks);
        for (place, selection) in joint.requests(&Doers { number: doers, walked, ranks, element, buffer })? {
            let request = Request { selection: &selection, writes, whole: true, memory_run: None };
            let work = &mut self.ranks[place].work;
            let counts = if writes { &mut work.writing } else { &mut work.reading };
            self.arrays.by_number(number).transfer(request, counts)?;
        }
        Ok(())
    }

    /// Counts what brings the log's writes of these arrays, or of all, to the format.
    pub(super) fn store_logged(&mut self, numbers: Option<Vec<usize>>) -> Result<()> {
        let numbers = numbers.unwrap_or_else(|| {
            let mut all: Vec<usize> = self.logged.keys().copied().collect();
            all.sort_unstable();
            all
        });
        let log = self.configuration.layers.iter().find_map(|layer| match layer.way {
            LayerEffect::Logged { buffer, .. } => Some(buffer),
            _ => None,
        });
        let Some(buffer) = log else { return Ok(()) };
        for number in numbers {
            if let Some(joint) = self.logged.remove(&number) {
                self.put_together(number, joint, self.ranks.len(), buffer, true)?;
            }
        }
        Ok(())
    }
}

/// The layer that keeps a transfer from reaching the format as it is.
fn way(layers: &[Layer], collective: bool, writes: bool, whole: bool) -> Option<LayerEffect> {
    layers.iter().map(|layer| layer.way).find(|way| match way {
        LayerEffect::Together { .. } => collective && whole,
        LayerEffect::Logged { .. } => writes && whole,
        LayerEffect::ReadCache { .. } => !writes,
        _ => false,
    })
}
