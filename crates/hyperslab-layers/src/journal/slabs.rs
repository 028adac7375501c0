//! Selections as numbers: for every slab and dimension start, stride, count and block.

use super::bytes::{Decoder, Encoder};
use super::corrupt;
use hyperslab_core::{Dims, MAX_RANK, Result, Selection, Slab};

/// Bytes of one dimension of one slab.
const SPAN: usize = 32;

/// Bytes that [`encode`] adds.
pub(crate) fn encoded_len(selection: &Selection) -> u64 {
    8 + selection.slabs().len() as u64 * selection.rank() as u64 * SPAN as u64
}

pub(crate) fn encode(selection: &Selection, out: &mut Encoder) {
    out.u32(selection.rank() as u32);
    out.u32(selection.slabs().len() as u32);
    for span in selection.slabs().iter().flat_map(Slab::ranges) {
        for value in [span.start(), span.stride(), span.count(), span.block()] {
            out.u64(value);
        }
    }
}

/// What [`encode`] wrote. Allocates no more than a small multiple of the bytes there.
pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<Selection> {
    let (rank, slabs) = (from.u32()? as usize, from.u32()? as usize);
    if rank > MAX_RANK {
        return Err(corrupt(format!("a selection of {rank} dimensions")));
    }
    if rank == 0 && slabs > 1 {
        return Err(corrupt("a scalar selected twice"));
    }
    let mut body = Decoder(from.raw(slabs.checked_mul(rank * SPAN).ok_or_else(|| corrupt("too many slabs"))?)?);
    let mut out = Vec::with_capacity(slabs);
    let mut elements = 0u64;
    for _ in 0..slabs {
        let mut parts: [Dims; 4] = Default::default();
        for _ in 0..rank {
            for part in &mut parts {
                part.push(body.u64()?);
            }
        }
        let [start, stride, count, block] = &parts;
        let slab = Slab::strided(start, stride, count, block).map_err(|error| corrupt(error.to_string()))?;
        let slab = slab.ok_or_else(|| corrupt("an empty slab"))?;
        elements = elements.checked_add(slab.len()).ok_or_else(|| corrupt("too many elements"))?;
        out.push(slab);
    }
    let selection = Selection::union(rank, out).map_err(|error| corrupt(error.to_string()))?;
    match selection.len() == elements {
        true => Ok(selection),
        false => Err(corrupt("slabs that overlap")),
    }
}
