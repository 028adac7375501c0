//! In which order the elements of an array are copied when chunks of input and output differ.
//!
//! Blocks of whole chunks of the output are read and written at a time. If that would read chunks of the input more than
//! [`MOST_READS`] times, elements go through a scratch array: the input is read once by blocks of its own chunks, and the
//! scratch array keeps each block of the output together.

use hyperslab_core::{ArraySpec, Dims, Result, dims};
use hyperslab_layers::ChunkBlocks;

/// Buffers of the size of a piece that a rank may need: its own, and what the layer below puts together.
const BUFFERS: u64 = 3;
/// How often a chunk of the input may be read, on average, before a scratch array is cheaper: decoding costs a fraction of
/// encoding, and a scratch array is written and read once each.
const MOST_READS: f64 = 2.0;

/// The order for one array.
#[derive(Debug)]
pub struct RechunkPlan {
    /// Ranks that work on it; fewer if chunks are so large that the memory is not enough for all.
    pub ranks: usize,
    /// Bytes of elements that a rank holds at a time.
    pub piece: u64,
    /// Whether whole chunks fit in a piece.
    pub fits: bool,
    /// Blocks of chunks of the output.
    pub writes: ChunkBlocks,
    /// Blocks of chunks of the input, if a scratch array is needed.
    pub reads: Option<ChunkBlocks>,
}

impl RechunkPlan {
    /// Plans for `ranks` ranks that together hold `memory` bytes.
    pub fn new(source: &ArraySpec, target: &ArraySpec, memory: u64, ranks: usize) -> Result<Self> {
        let size = target.dtype.size();
        let bytes = |spec: &ArraySpec| match &spec.chunk {
            Some(chunk) => dims::byte_count(&within(chunk, &spec.shape), size),
            None => Ok(size),
        };
        let chunk = bytes(target)?.max(bytes(source)?).max(1);
        let room = memory / BUFFERS;
        let ranks = usize::try_from(room / chunk).unwrap_or(usize::MAX).clamp(1, ranks);
        let piece = room / ranks as u64;
        let fits = piece >= chunk;
        let both = ArraySpec { chunk: Some(joined(source, target, piece)), ..target.clone() };
        let writes = ChunkBlocks::new(&both, piece)?;
        let staged = fits && reads_of_each_chunk(source, writes.extents()) > MOST_READS;
        let reads = if staged { Some(ChunkBlocks::new(source, piece)?) } else { None };
        Ok(Self { ranks, piece, fits, writes, reads })
    }
}

/// Chunk extents that do not go beyond the array.
fn within(chunk: &[u64], shape: &[u64]) -> Dims {
    chunk.iter().zip(shape).map(|(chunk, extent)| (*chunk).min(*extent).max(1)).collect()
}

fn chunk_of(spec: &ArraySpec) -> Dims {
    let chunk = spec.chunk.clone().unwrap_or_else(|| Dims::from_elem(1, spec.shape.len()));
    chunk.iter().map(|extent| (*extent).max(1)).collect()
}

/// Whole chunks of the output, and along as many dimensions as fit in a piece also of the input.
fn joined(source: &ArraySpec, target: &ArraySpec, piece: u64) -> Dims {
    let (from, mut block) = (chunk_of(source), chunk_of(target));
    for dim in (0..block.len()).rev() {
        let mut longer = block.clone();
        longer[dim] = common_multiple(block[dim], from[dim]);
        let bytes = dims::byte_count(&within(&longer, &target.shape), target.dtype.size());
        if bytes.is_ok_and(|bytes| bytes <= piece) {
            block = longer;
        }
    }
    block
}

fn common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor.max(1)).saturating_mul(b)
}

/// How often a chunk of `spec` is read, on average, when blocks of these extents are read one by one.
fn reads_of_each_chunk(spec: &ArraySpec, block: &[u64]) -> f64 {
    let along = |((extent, chunk), block): ((&u64, &u64), &u64)| {
        let (blocks, chunks) = (extent.div_ceil(*block), extent.div_ceil(*chunk));
        // Every inner border of a block or of a chunk begins another part of a chunk.
        let shared = extent.saturating_sub(1) / common_multiple(*block, *chunk).max(1);
        (blocks.saturating_add(chunks).saturating_sub(1).saturating_sub(shared)) as f64 / chunks.max(1) as f64
    };
    spec.shape.iter().zip(&chunk_of(spec)).zip(block).map(along).product()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Datatype;

    fn chunked(shape: &[u64], chunk: Option<&[u64]>) -> ArraySpec {
        ArraySpec { chunk: chunk.map(Into::into), ..ArraySpec::new(Datatype::F32, shape) }
    }

    #[test]
    fn reads_are_counted_as_they_happen() {
        for (extent, chunk, block) in [(10u64, 3, 4u64), (12, 3, 4), (12, 4, 4), (7, 10, 2), (100, 1, 9), (9, 2, 100)] {
            let touched = |begin: u64| ((begin + block).min(extent) - 1) / chunk - begin / chunk + 1;
            let counted: u64 = (0..extent).step_by(block as usize).map(touched).sum();
            let expected = counted as f64 / extent.div_ceil(chunk) as f64;
            assert_eq!(reads_of_each_chunk(&chunked(&[extent], Some(&[chunk])), &[block]), expected);
        }
        assert_eq!(reads_of_each_chunk(&chunked(&[5, 0], None), &[1, 1]), 0.0);
        assert_eq!(reads_of_each_chunk(&chunked(&[], None), &[]), 1.0);
    }

    #[test]
    fn slices_become_series_through_a_scratch_array_only_where_memory_is_short() {
        let shape = [2000, 720, 1440];
        let (slices, series) = (chunked(&shape, Some(&[1, 720, 1440])), chunked(&shape, Some(&[2000, 8, 8])));
        for (source, target) in [(&slices, &series), (&series, &slices)] {
            let short = RechunkPlan::new(source, target, 512 << 20, 2).unwrap();
            assert!(short.reads.is_some() && short.fits && short.ranks == 2);
            for blocks in [short.reads.as_ref().unwrap(), &short.writes] {
                assert!(dims::byte_count(blocks.extents(), 4).unwrap() <= short.piece, "{blocks:?}");
            }
            assert!(RechunkPlan::new(source, target, 64 << 30, 2).unwrap().reads.is_none());
        }
        let same = RechunkPlan::new(&slices, &slices, 64 << 20, 2).unwrap();
        assert!(same.reads.is_none() && same.fits && same.ranks == 2);
        // Memory for one chunk alone, and for none.
        assert_eq!(RechunkPlan::new(&slices, &slices, 14 << 20, 8).unwrap().ranks, 1);
        assert!(!RechunkPlan::new(&slices, &slices, 1 << 20, 8).unwrap().fits);
        // Blocks hold whole chunks of both where that is cheap.
        let plan =
            RechunkPlan::new(&chunked(&[100, 100], Some(&[6, 6])), &chunked(&[100, 100], Some(&[4, 4])), 9000, 1);
        assert!(plan.unwrap().reads.is_none());
    }
}
