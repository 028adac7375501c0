//! What a span selects of one chunk along its dimension.

use hyperslab_core::StridedRange;

/// Blocks of indices inside a chunk. A block that the chunk's edge cuts may be shorter than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Along {
    /// Indices selected.
    pub(crate) count: u64,
    /// Blocks that they lie in.
    pub(crate) blocks: u64,
    /// The longest block.
    pub(crate) block: u64,
    /// From the start of a block to the start of the next.
    pub(crate) stride: u64,
    /// First index, relative to the chunk.
    pub(crate) first: u64,
    /// One past the last index, relative to the chunk.
    pub(crate) end: u64,
}

impl Along {
    /// What `span` selects of chunk number `chunk` of `extent` indices, which it touches.
    pub(crate) fn in_chunk(span: &StridedRange, chunk: u64, extent: u64) -> Self {
        let low = chunk * extent;
        let high = low.saturating_add(extent).min(span.end());
        if span.is_dense() {
            let first = span.start().max(low);
            let count = high - first;
            return Self { count, blocks: 1, block: count, stride: count, first: first - low, end: high - low };
        }
        let (start, stride, block) = (span.start(), span.stride(), span.block());
        let first = first_from(span, low).unwrap_or(low);
        let (from, to) = ((first - start) / stride, (high - 1 - start) / stride);
        let count = below(span, high) - below(span, low);
        let begins = |k: u64| start + k * stride;
        let last = begins(to) + block.min(high - begins(to));
        let longest = if to > from + 1 {
            block
        } else {
            // Both may be cut.
            (block - (first - begins(from)).min(block)).min(high - first).max(if to > from {
                last - begins(to)
            } else {
                0
            })
        };
        Self { count, blocks: to - from + 1, block: longest, stride, first: first - low, end: last - low }
    }
}

/// The next chunk of `extent` indices after number `chunk` that the span touches.
pub(crate) fn chunk_after(span: &StridedRange, chunk: u64, extent: u64) -> Option<u64> {
    // No overflow: there is an index beyond this one only if the next chunk begins inside the array.
    let index = (chunk + 1).checked_mul(extent)?;
    first_from(span, index).map(|index| index / extent)
}

/// The first selected index from `index` on.
fn first_from(span: &StridedRange, index: u64) -> Option<u64> {
    if index <= span.start() {
        return Some(span.start());
    }
    if index >= span.end() {
        return None;
    }
    let (block, inside) = ((index - span.start()) / span.stride(), (index - span.start()) % span.stride());
    Some(if inside < span.block() { index } else { span.start() + (block + 1) * span.stride() })
}

/// How many selected indices are below `index`.
fn below(span: &StridedRange, index: u64) -> u64 {
    if index <= span.start() {
        return 0;
    }
    let (blocks, inside) = ((index - span.start()) / span.stride(), (index - span.start()) % span.stride());
    if blocks >= span.count() { span.len() } else { blocks * span.block() + inside.min(span.block()) }
}
