//! B2ND: Blosc2 chunks of N-dimensional blocks; blocks at the edges are padded.

use super::decode::Chunk;
use super::frame::number;
use crate::codec_contexts::CodecContexts;
use crate::errors::corrupt;
use hyperslab_core::Result;

const NAME: &str = "blosc2";
const MOST_DIMENSIONS: usize = 16;

/// The shapes of a chunk and of its blocks.
pub(super) struct B2nd {
    element: usize,
    shape: Vec<usize>,
    block: Vec<usize>,
    plain: usize,
}

impl B2nd {
    /// Parses the metalayer: version, number of dimensions, and the shapes of array, chunks and blocks. `None` if it is invalid or
    /// the array has more than one chunk.
    pub(super) fn parse(bytes: &[u8], element: usize) -> Option<Self> {
        let dimensions = usize::from(*bytes.get(2)?);
        if dimensions == 0 || dimensions > MOST_DIMENSIONS || element == 0 {
            return None;
        }
        let mut place = 3;
        let mut list = |width: usize| {
            place += 1; // the tag of a list
            let mut shape = Vec::with_capacity(dimensions);
            for _ in 0..dimensions {
                shape.push(number(bytes, place + 1, width)?);
                place += 1 + width;
            }
            Some(shape)
        };
        let (shape, chunk, block) = (list(8)?, list(4)?, list(4)?);
        let sound = shape.iter().zip(&block).all(|(size, block)| (1..=*size).contains(block));
        if shape != chunk || !sound {
            return None;
        }
        let plain = shape.iter().try_fold(element, |bytes, size| bytes.checked_mul(*size))?;
        Some(Self { element, shape, block, plain })
    }

    /// Size of the array in bytes.
    pub(super) fn plain_size(&self) -> usize {
        self.plain
    }

    /// Decodes the array into `plain`, which has exactly its size.
    pub(super) fn decode(&self, chunk: &Chunk, plain: &mut [u8], contexts: &mut CodecContexts) -> Result<()> {
        let wrong = || corrupt(NAME, "the chunk does not have the shape that its frame states");
        if self.block == self.shape {
            return if chunk.plain_size() == plain.len() { chunk.decode(plain, contexts) } else { Err(wrong()) };
        }
        let counts: Vec<usize> =
            self.shape.iter().zip(&self.block).map(|(size, block)| size.div_ceil(*block)).collect();
        let block_bytes = self.block.iter().product::<usize>() * self.element; // no larger than the array
        let padded = counts.iter().try_fold(block_bytes, |bytes, count| bytes.checked_mul(*count));
        if padded != Some(chunk.plain_size()) || chunk.block_size() != block_bytes {
            return Err(wrong());
        }
        let mut reference = std::mem::take(&mut contexts.reference);
        // First half: the reference block. Second half: the current block.
        let (first, block) = reference.room(2 * block_bytes).split_at_mut(block_bytes);
        let mut result = Ok(());
        let mut at = vec![0; counts.len()];
        for index in 0..counts.iter().product() {
            let known = (index > 0).then_some(&*first);
            result = chunk.decode_block(index, block, known, contexts);
            if result.is_err() {
                break;
            }
            if index == 0 && chunk.needs_reference() {
                first.copy_from_slice(block);
            }
            self.place(block, &at, plain);
            advance(&mut at, &counts);
        }
        contexts.reference = reference;
        result
    }

    /// Copies the part of the block at block coordinates `at` that lies within the array.
    fn place(&self, block: &[u8], at: &[usize], plain: &mut [u8]) {
        let last = self.shape.len() - 1;
        let inside: Vec<usize> =
            (0..=last).map(|axis| self.block[axis].min(self.shape[axis] - at[axis] * self.block[axis])).collect();
        let rows: usize = inside[..last].iter().product();
        let row_bytes = inside[last] * self.element;
        let mut row = vec![0; last];
        for _ in 0..rows {
            let (mut from, mut to) = (0, 0);
            for axis in 0..last {
                from = from * self.block[axis] + row[axis];
                to = to * self.shape[axis] + at[axis] * self.block[axis] + row[axis];
            }
            let from = from * self.block[last] * self.element;
            let to = (to * self.shape[last] + at[last] * self.block[last]) * self.element;
            plain[to..to + row_bytes].copy_from_slice(&block[from..from + row_bytes]);
            advance(&mut row, &inside[..last]);
        }
    }
}

/// Increments coordinates in row-major order.
fn advance(at: &mut [usize], counts: &[usize]) {
    for (place, count) in at.iter_mut().zip(counts).rev() {
        *place += 1;
        if *place < *count {
            return;
        }
        *place = 0;
    }
}
