//! Which stacks are worth comparing for a workload.

use hyperslab_core::default_chunk::{near_cube, whole_rows};
use hyperslab_core::workload::{Step, Workload};
use hyperslab_core::{ArraySpec, Dims, dims};
use std::collections::BTreeMap;

/// Steps that are looked at to learn what is asked for.
const STEPS_LOOKED_AT: usize = 4096;
/// Bytes that chunks aim at.
const SIZES: [u64; 3] = [64 << 10, 1 << 20, 4 << 20];
/// Bytes that shards aim at.
const SHARD: u64 = 16 << 20;

/// Stacks as text, without duplicates.
pub fn stacks(workloads: &[&Workload]) -> Vec<String> {
    let mut stacks: Vec<String> = ["hdf5", "hdf5(plane=on)", "zarr"].map(str::to_owned).into();
    let Some(array) = main_array(workloads) else { return stacks };
    for chunk in chunks(workloads, &array) {
        let text = dims::display(&chunk);
        stacks.push(format!("hdf5(chunk={text})"));
        stacks.push(format!("hdf5(chunk={text},plane=on)"));
        if byte_size(&chunk, &array) > 8 << 20 {
            stacks.push(format!("hdf5(chunk={text},cache={}MiB)", (2 * byte_size(&chunk, &array)).div_ceil(1 << 20)));
        }
        stacks.push(format!("zarr(chunk={text})"));
        if let Some(shard) = shard(&chunk, &array) {
            stacks.push(format!("zarr(chunk={text},shard={})", dims::display(&shard)));
        }
    }
    if workloads.iter().any(|workload| computes(workload)) {
        let behind: Vec<String> = stacks.iter().map(|stack| format!("async/{stack}")).collect();
        stacks.extend(behind);
    }
    stacks
}

/// The largest array, if all that are used have as many dimensions: one chunk shape must do for all.
fn main_array(workloads: &[&Workload]) -> Option<ArraySpec> {
    let specs = || workloads.iter().flat_map(|workload| workload.header.arrays.iter().map(|array| &array.spec));
    let largest = specs().max_by_key(|spec| dims::element_count(&spec.shape).unwrap_or(u64::MAX))?;
    let alike = specs().all(|spec| spec.shape.len() == largest.shape.len());
    (alike && !largest.shape.is_empty() && !largest.shape.contains(&0)).then(|| largest.clone())
}

fn byte_size(chunk: &[u64], array: &ArraySpec) -> u64 {
    dims::byte_count(chunk, array.dtype.size()).unwrap_or(u64::MAX)
}

/// Chunk shapes: as formats choose them, along the rows, along the columns, and as the workload asks.
fn chunks(workloads: &[&Workload], array: &ArraySpec) -> Vec<Dims> {
    let mut found = vec![near_cube(array), whole_rows(array)];
    let fixed = ArraySpec { max_shape: None, ..array.clone() };
    for size in SIZES {
        let room = (size / array.dtype.size()).max(1);
        found.push(filled(&fixed, room, (0..array.shape.len()).rev()));
        found.push(filled(&fixed, room, 0..array.shape.len()));
    }
    found.extend(asked(workloads, array));
    let mut unique: Vec<Dims> = Vec::new();
    for chunk in found {
        let chunk: Dims = chunk.iter().zip(&array.shape).map(|(c, s)| (*c).clamp(1, (*s).max(1))).collect();
        if !unique.contains(&chunk) && byte_size(&chunk, array) <= 256 << 20 {
            unique.push(chunk);
        }
    }
    unique
}

/// Extents filled up in the order of `dimensions`.
fn filled(array: &ArraySpec, room: u64, dimensions: impl Iterator<Item = usize>) -> Dims {
    let (mut chunk, mut room) = (Dims::from_elem(1, array.shape.len()), room);
    for d in dimensions {
        chunk[d] = array.shape[d].min(room).max(1);
        room = (room / chunk[d]).max(1);
    }
    chunk
}

/// The box that most requests ask for, if it is of a sensible size.
fn asked(workloads: &[&Workload], array: &ArraySpec) -> Option<Dims> {
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
    let (extents, _) = boxes.into_iter().max_by_key(|(_, times)| *times)?;
    let fits = extents.len() == array.shape.len() && ((4 << 10)..=(16 << 20)).contains(&byte_size(&extents, array));
    fits.then_some(extents)
}

/// Several chunks in a file.
fn shard(chunk: &[u64], array: &ArraySpec) -> Option<Dims> {
    let mut shard: Dims = chunk.into();
    for d in (0..chunk.len()).rev() {
        while byte_size(&shard, array) * 2 <= SHARD && shard[d] * 2 <= array.shape[d] {
            shard[d] *= 2;
        }
    }
    (shard.as_slice() != chunk).then_some(shard)
}

fn computes(workload: &Workload) -> bool {
    let Ok(steps) = workload.steps(0) else { return false };
    steps.take(STEPS_LOOKED_AT).any(|step| matches!(step, Ok(Step::Compute { nanoseconds }) if nanoseconds > 0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Datatype;

    #[test]
    fn shards_hold_whole_chunks_and_no_more_than_the_array() {
        let array = ArraySpec::new(Datatype::F32, &[1000, 1000]);
        let shard = shard(&[100, 100], &array).unwrap();
        assert!(shard.iter().all(|extent| extent % 100 == 0 && *extent <= 1000), "{shard:?}");
        assert!(byte_size(&shard, &array) <= SHARD && super::shard(&[1000, 1000], &array).is_none());
    }

    #[test]
    fn rows_and_columns_are_filled_in_order() {
        let array = ArraySpec::new(Datatype::F32, &[1000, 200]);
        assert_eq!(filled(&array, 1000, (0..2).rev()).as_slice(), [5, 200]);
        assert_eq!(filled(&array, 1000, 0..2).as_slice(), [1000, 1]);
    }
}
