//! What a workload leaves on storage, and what a stack holds in memory meanwhile.

use crate::configuration::{Configuration, Mechanism};
use crate::counter::Costs;
use hyperslab_core::LayerEffect;
use hyperslab_core::storage::StoredLayout;
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{ArraySpec, Dims, Error, Result, dims};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Blocks that file systems give files.
const BLOCK: u64 = 4096;
/// What the description of an array or group takes, roughly.
const DESCRIPTION: u64 = 1024;
/// A record of a write in the list of a log.
const LOG_RECORD: u64 = 200;

/// What a container takes on storage if all elements of its arrays are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of elements, as coded, whole chunks counted.
    pub elements: u64,
    /// Bytes of chunk indexes, descriptions, and the unused ends of blocks, roughly.
    pub rest: u64,
    /// Files.
    pub files: u64,
}

/// What a workload and a stack take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// By name of the container.
    pub stored: BTreeMap<String, Stored>,
    /// Bytes of caches, staged writes and buffers, all ranks together, at most.
    pub memory: u64,
}

/// Looks at the arrays that a workload makes or opens. `costs` are those of the same workload on the same stack.
pub fn footprint(workload: &Workload, configuration: &Configuration, costs: &Costs) -> Result<Footprint> {
    let mut arrays: BTreeMap<(u32, Arc<str>), (u32, Dims)> = BTreeMap::new();
    let mut slots: BTreeMap<u32, (u32, Arc<str>)> = BTreeMap::new();
    let mut most_open = 0;
    for step in workload.steps(0)? {
        match step? {
            Step::Create { slot, file, array, name } | Step::Open { slot, file, array, name } => {
                let declared = workload.header.arrays.get(array as usize);
                let declared = declared.ok_or_else(|| Error::invalid("count workload", "an array is not declared"))?;
                arrays.entry((file, name.clone())).or_insert((array, declared.spec.shape.clone()));
                slots.insert(slot, (file, name));
                most_open = most_open.max(slots.len() as u64);
            }
            Step::Resize { slot, shape } => {
                if let Some((_, now)) = slots.get(&slot).and_then(|key| arrays.get_mut(key)) {
                    *now = shape;
                }
            }
            Step::CloseArray { slot } => {
                slots.remove(&slot);
            }
            _ => {}
        }
    }
    let mut found = Footprint::default();
    let mut cached = 0u64;
    for ((file, _), (array, shape)) in &arrays {
        let Some(declared) = workload.header.files.get(*file as usize) else { continue };
        let spec = ArraySpec { shape: shape.clone(), ..workload.header.arrays[*array as usize].spec.clone() };
        let (stored, held) = array_footprint(*array, &spec, configuration)?;
        let times = if declared.per_rank { workload.header.ranks as u64 } else { 1 };
        let total = found.stored.entry(declared.name.clone()).or_insert(Stored {
            elements: 0,
            rest: DESCRIPTION * times,
            files: times,
        });
        total.elements = total.elements.saturating_add(stored.elements.saturating_mul(times));
        total.rest = total.rest.saturating_add(stored.rest.saturating_mul(times));
        total.files = total.files.saturating_add(stored.files.saturating_mul(times));
        cached = cached.max(held.saturating_mul(times));
    }
    let users = match configuration.mechanism {
        // A file at a time, in calls of each rank; the others keep chunks of every array that is open.
        Mechanism::ChunkFiles { .. } => workload.header.ranks as u64,
        _ => most_open,
    };
    found.memory = cached.saturating_mul(users).saturating_add(held_by_layers(configuration, costs));
    Ok(found)
}

/// What an array takes on storage, and what is kept of it in memory while it is open.
fn array_footprint(number: u32, spec: &ArraySpec, configuration: &Configuration) -> Result<(Stored, u64)> {
    let storage = configuration.storage(spec)?;
    let share = configuration.share(number, &storage).unwrap_or(1.0);
    let element = spec.dtype.size();
    let rank = spec.shape.len() as u64;
    let logical = dims::byte_count(&spec.shape, element)?;
    let size = |extents: &[u64]| dims::byte_count(extents, element).unwrap_or(u64::MAX);
    let number_of = |extents: &[u64]| {
        spec.shape.iter().zip(extents).fold(1u64, |n, (shape, extent)| n.saturating_mul(shape.div_ceil(*extent)))
    };
    let coded = |bytes: u64| (bytes as f64 * share) as u64;
    let found = match (&configuration.mechanism, &storage.layout) {
        (Mechanism::RawFile { .. }, _) => (Stored { elements: logical, rest: DESCRIPTION, files: 1 }, 0),
        (_, StoredLayout::Contiguous | StoredLayout::Compact) => {
            (Stored { elements: logical, rest: DESCRIPTION + aligned(configuration, 1), files: 0 }, 0)
        }
        (Mechanism::ChunkedFile(library), StoredLayout::Chunks(chunk) | StoredLayout::Shards { chunk, .. }) => {
            let (chunks, each) = (number_of(chunk), size(chunk));
            let elements = coded(chunks.saturating_mul(each));
            // Nodes of the tree of chunks are on average three quarters full.
            let index = chunks.saturating_mul((24 + 8 * rank) * 4 / 3).saturating_add(aligned(configuration, chunks));
            let kept = library.cache_bytes().min(chunks.saturating_mul(each));
            (Stored { elements, rest: DESCRIPTION.saturating_add(index), files: 0 }, kept)
        }
        (Mechanism::ChunkFiles { .. }, StoredLayout::Chunks(chunk)) => {
            let (files, each) = (number_of(chunk), coded(size(chunk)));
            let unused = files.saturating_mul(each.next_multiple_of(BLOCK) - each);
            let elements = files.saturating_mul(each);
            (Stored { elements, rest: DESCRIPTION.saturating_add(unused), files: files + 1 }, size(chunk))
        }
        (Mechanism::ChunkFiles { .. }, StoredLayout::Shards { file, chunk }) => {
            let (files, chunks) = (number_of(file), size(file) / size(chunk).max(1));
            let (elements, index) = (coded(size(file)), 16 * chunks + 4);
            let unused = (elements + index).next_multiple_of(BLOCK) - elements;
            let rest = DESCRIPTION.saturating_add(files.saturating_mul(unused));
            (Stored { elements: files.saturating_mul(elements), rest, files: files + 1 }, size(file))
        }
    };
    Ok(found)
}

/// What lies unused before objects that begin at multiples of a size.
fn aligned(configuration: &Configuration, objects: u64) -> u64 {
    objects.saturating_mul((configuration.align() - 1) / 2)
}

/// Staged writes and buffers, all ranks together.
fn held_by_layers(configuration: &Configuration, costs: &Costs) -> u64 {
    let steps = if costs.epochs > 0 { costs.epochs } else { costs.pauses }.max(1);
    let ranks = costs.ranks as u64;
    // While the writes of one step are stored, those of the next are staged.
    let staged = if steps > 1 { costs.bytes_written.div_ceil(steps).saturating_mul(2) } else { costs.bytes_written };
    let layers = configuration.layers.iter().zip(&costs.layers);
    layers.fold(0u64, |sum, (layer, work)| {
        let writes: u64 = work.by_rank.iter().map(|passed| passed.writes).sum();
        sum.saturating_add(match layer.way {
            LayerEffect::Overlap | LayerEffect::Chosen => staged,
            LayerEffect::ReadCache { memory } => staged.saturating_add(memory.min(costs.bytes_read)),
            LayerEffect::Logged { buffer, .. } => {
                writes.saturating_mul(LOG_RECORD).saturating_add(buffer.saturating_mul(3).saturating_mul(ranks))
            }
            LayerEffect::Together { aggregators, buffer } => {
                buffer.saturating_mul(2).saturating_mul(aggregators.unwrap_or(2).min(ranks))
            }
            LayerEffect::Through | LayerEffect::Emulated { .. } => 0,
        })
    })
}
