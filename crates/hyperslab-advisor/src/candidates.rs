//! Which formats and shapes of chunks are worth comparing for a workload.

use hyperslab_core::default_chunk::{near_cube, whole_rows};
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{ArraySpec, Dims, StackElement, dims};
use hyperslab_formats::{FormatEntry, FormatOption};
use std::collections::BTreeMap;

/// Steps that are looked at to learn what is asked for.
const STEPS_LOOKED_AT: usize = 4096;
/// Bytes that chunks aim at.
const SIZES: [u64; 3] = [64 << 10, 1 << 20, 4 << 20];
/// Bytes that shards aim at.
const SHARD: u64 = 16 << 20;
/// The largest chunk that is tried.
const MOST_CHUNK: u64 = 256 << 20;

/// Stacks as text, those of the formats' own choice first.
pub fn stacks(workloads: &[&Workload], formats: &[String]) -> Vec<String> {
    let chosen = || formats.iter().filter_map(|name| hyperslab_formats::format(name).ok());
    let mut stacks: Vec<String> = Vec::new();
    for entry in chosen() {
        stacks.extend(entry.advice.forms.iter().map(|form| written(entry, &[], form)));
    }
    let mains = main_arrays(workloads);
    for chunks in shapes(workloads, &mains) {
        let chunk = ("chunk", joined(&chunks));
        for entry in chosen().filter(|entry| entry.has_option("chunk")) {
            stacks.extend(entry.advice.forms.iter().map(|form| written(entry, std::slice::from_ref(&chunk), form)));
            let shards: Vec<Dims> = chunks.iter().zip(&mains).map(|(chunk, array)| shard(chunk, array)).collect();
            if entry.has_option("shard") && shards != chunks {
                stacks.push(written(entry, &[chunk.clone(), ("shard", joined(&shards))], &[]));
            }
        }
    }
    stacks
}

/// Shapes of chunks that are worth trying for one array.
pub fn chunk_shapes(workloads: &[&Workload], array: &ArraySpec) -> Vec<Dims> {
    let kinds = shapes(workloads, std::slice::from_ref(array));
    kinds.into_iter().filter_map(|kind| kind.into_iter().next()).collect()
}

/// A format with options, as text.
fn written(entry: &FormatEntry, shapes: &[(&str, String)], form: &[FormatOption]) -> String {
    let shapes = shapes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let form = form.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    StackElement { name: entry.name.to_owned(), options: shapes.chain(form).collect() }.to_string()
}

/// The largest array of each number of dimensions: a stack has one shape of chunks for all of them.
fn main_arrays(workloads: &[&Workload]) -> Vec<ArraySpec> {
    let mut largest: BTreeMap<usize, &ArraySpec> = BTreeMap::new();
    let size = |spec: &ArraySpec| dims::element_count(&spec.shape).unwrap_or(u64::MAX);
    for spec in workloads.iter().flat_map(|workload| workload.header.arrays.iter().map(|array| &array.spec)) {
        if spec.shape.is_empty() || (spec.shape.contains(&0) && spec.max_shape.is_none()) {
            continue;
        }
        let known = largest.entry(spec.shape.len()).or_insert(spec);
        if size(spec) > size(known) {
            *known = spec;
        }
    }
    largest.into_values().cloned().collect()
}

/// Several shapes are written one after the other.
fn joined(shapes: &[Dims]) -> String {
    shapes.iter().map(|shape| dims::display(shape)).collect::<Vec<_>>().join(";")
}

fn byte_size(chunk: &[u64], array: &ArraySpec) -> u64 {
    dims::byte_count(chunk, array.dtype.size()).unwrap_or(u64::MAX)
}

/// Shapes of chunks, one for each main array: as formats choose them, along the rows, along the columns, and as the
/// workload asks.
fn shapes(workloads: &[&Workload], mains: &[ArraySpec]) -> Vec<Vec<Dims>> {
    let asked = asked(workloads);
    let mut kinds: Vec<Vec<Dims>> = Vec::new();
    kinds.push(mains.iter().map(near_cube).collect());
    kinds.push(mains.iter().map(whole_rows).collect());
    for size in SIZES {
        let room = |array: &ArraySpec| (size / array.dtype.size()).max(1);
        kinds.push(mains.iter().map(|a| filled(&a.shape, room(a), (0..a.shape.len()).rev())).collect());
        kinds.push(mains.iter().map(|a| filled(&a.shape, room(a), 0..a.shape.len())).collect());
    }
    let wanted = |array: &ArraySpec| {
        let found = asked.get(&array.shape.len())?;
        ((4 << 10)..=(16 << 20)).contains(&byte_size(found, array)).then(|| found.clone())
    };
    if mains.iter().any(|array| wanted(array).is_some()) {
        kinds.push(mains.iter().map(|array| wanted(array).unwrap_or_else(|| near_cube(array))).collect());
    }
    let mut unique: Vec<Vec<Dims>> = Vec::new();
    for kind in kinds.into_iter().filter(|_| !mains.is_empty()) {
        let cut = |(chunk, array): (&Dims, &ArraySpec)| -> Dims {
            chunk.iter().zip(&array.shape).map(|(c, s)| (*c).clamp(1, (*s).max(1))).collect()
        };
        let kind: Vec<Dims> = kind.iter().zip(mains).map(cut).collect();
        let small = kind.iter().zip(mains).all(|(chunk, array)| byte_size(chunk, array) <= MOST_CHUNK);
        if small && !unique.contains(&kind) {
            unique.push(kind);
        }
    }
    // Those that suit the requests come first, in case that there is no time for all.
    unique.sort_by_key(|kind| {
        kind.iter().map(|chunk| asked.get(&chunk.len()).map_or(1, |asked| touched(asked, chunk))).sum::<u64>()
    });
    unique
}

/// About how many chunks a request of some extents meets.
fn touched(asked: &[u64], chunk: &[u64]) -> u64 {
    asked.iter().zip(chunk).fold(1, |n: u64, (asked, chunk)| n.saturating_mul(asked.div_ceil(*chunk)))
}

/// Extents filled up in the order of `dimensions`, of no more than `room` elements.
pub fn filled(shape: &[u64], room: u64, dimensions: impl Iterator<Item = usize>) -> Dims {
    let (mut chunk, mut room) = (Dims::from_elem(1, shape.len()), room);
    for d in dimensions {
        chunk[d] = shape[d].min(room).max(1);
        room = (room / chunk[d]).max(1);
    }
    chunk
}

/// By number of dimensions: the box that most requests ask for.
fn asked(workloads: &[&Workload]) -> BTreeMap<usize, Dims> {
    let mut boxes: BTreeMap<Dims, usize> = BTreeMap::new();
    for workload in workloads {
        let Ok(steps) = workload.steps(0) else { continue };
        for step in steps.take(STEPS_LOOKED_AT).flatten() {
            if let Step::Write { selection, .. } | Step::Read { selection, .. } = step
                && let Some((low, high)) = selection.bounds()
            {
                *boxes.entry(low.iter().zip(&high).map(|(low, high)| high - low).collect()).or_default() += 1;
            }
        }
    }
    let mut most: BTreeMap<usize, (Dims, usize)> = BTreeMap::new();
    for (extents, times) in boxes {
        let known = most.entry(extents.len()).or_insert_with(|| (extents.clone(), times));
        if times > known.1 {
            *known = (extents, times);
        }
    }
    most.into_iter().map(|(rank, (extents, _))| (rank, extents)).collect()
}

/// Several chunks in a file; a chunk, if there is no more to put in.
fn shard(chunk: &[u64], array: &ArraySpec) -> Dims {
    let mut shard: Dims = chunk.into();
    for d in (0..chunk.len()).rev() {
        while byte_size(&shard, array) * 2 <= SHARD && shard[d] * 2 <= array.shape[d] {
            shard[d] *= 2;
        }
    }
    shard
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Datatype;

    #[test]
    fn shards_hold_whole_chunks_and_no_more_than_the_array() {
        let array = ArraySpec::new(Datatype::F32, &[1000, 1000]);
        let found = shard(&[100, 100], &array);
        assert!(found.iter().all(|extent| extent % 100 == 0 && *extent <= 1000), "{found:?}");
        assert!(byte_size(&found, &array) <= SHARD);
        assert_eq!(shard(&[1000, 1000], &array).as_slice(), [1000, 1000]);
    }

    #[test]
    fn rows_and_columns_are_filled_in_order() {
        assert_eq!(filled(&[1000, 200], 1000, (0..2).rev()).as_slice(), [5, 200]);
        assert_eq!(filled(&[1000, 200], 1000, 0..2).as_slice(), [1000, 1]);
        assert!(filled(&[], 10, 0..0).is_empty());
    }

    #[test]
    fn arrays_of_different_rank_get_a_shape_each() {
        let mains = [ArraySpec::new(Datatype::F32, &[5000]), ArraySpec::new(Datatype::F32, &[300, 400])];
        let found = shapes(&[], &mains);
        assert!(
            found.len() > 2 && found.iter().all(|kind| kind.len() == 2 && kind[0].len() == 1 && kind[1].len() == 2)
        );
        assert_eq!(joined(&found[0]), "5000;300x400");
    }
}
