//! What may happen to a container, and how a number becomes a selection, a layout or a specification.

use crate::test_data::{Noise, element};
use crate::{Memory, cases};
use hyperslab_core::{
    ArraySpec, Attribute, Caps, DataModel, Datatype, Filter, Format, MemoryLayout, Result, Selection, Slab, dims::Dims,
};
use proptest::prelude::*;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Create,
    CreateGroup,
    Write,
    Read,
    Resize,
    SetAttribute,
    ReadAttribute,
    Flush,
    Reopen,
    Remove,
}

/// A kind of operation, and a number from which its arguments follow, given the state of the container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    pub(super) choice: u64,
}

/// Sequences that begin with an array and mostly move data.
pub(super) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let kind = prop_oneof![
        3 => Just(Kind::Create),
        1 => Just(Kind::CreateGroup),
        12 => Just(Kind::Write),
        8 => Just(Kind::Read),
        8 => Just(Kind::Resize),
        2 => Just(Kind::SetAttribute),
        1 => Just(Kind::ReadAttribute),
        1 => Just(Kind::Flush),
        2 => Just(Kind::Reopen),
        1 => Just(Kind::Remove),
    ];
    let operation = (kind, any::<u64>()).prop_map(|(kind, choice)| Operation { kind, choice });
    (any::<u64>(), proptest::collection::vec(operation, 1..30)).prop_map(|(choice, mut rest)| {
        rest.insert(0, Operation { kind: Kind::Create, choice });
        rest
    })
}

/// Numbers below `limit`.
pub(super) fn below(noise: &mut Noise, limit: u64) -> u64 {
    noise.next() % limit.max(1)
}

/// One of few names, so that they meet again.
pub(super) fn name(noise: &mut Noise) -> &'static str {
    ["a", "b", "g/c", "g/h/d", "g", "été x"][below(noise, 6) as usize]
}

/// A specification within what the format declares.
pub(super) fn spec(noise: &mut Noise, caps: &Caps) -> Result<ArraySpec> {
    let mut types = cases::datatypes()?;
    types.retain(|(_, dtype)| caps.data.compound || dtype.fields().is_empty());
    let dtype = types.swap_remove(below(noise, types.len() as u64) as usize).1;
    let rank = below(noise, 4).min(caps.data.max_rank as u64) as usize;
    let extents = |noise: &mut Noise, least: u64, most: u64| -> Dims {
        (0..rank).map(|_| least + below(noise, most - least + 1)).collect()
    };
    let least = u64::from(below(noise, 8) > 0);
    let shape = extents(noise, least, 9);
    let mut spec = ArraySpec::new(dtype, &shape);
    if rank > 0 && caps.data.chunks && below(noise, 2) == 0 {
        let chunk: Dims = extents(noise, 1, 5);
        // A chunk larger than a fixed array is nonsense to some formats.
        spec.chunk = Some(chunk.iter().zip(&shape).map(|(chunk, extent)| (*chunk).min((*extent).max(1))).collect());
    }
    if rank > 0 && caps.data.resize && below(noise, 3) > 0 {
        let max = shape.iter().map(|extent| (below(noise, 3) > 0).then(|| extent + below(noise, 6)));
        spec.max_shape = Some(max.collect());
    }
    if caps.data.fill_value && below(noise, 3) == 0 {
        let value = element(&spec.dtype, noise.next()).into_iter().zip(crate::test_data::meaningful(&spec.dtype));
        spec.fill_value = Some(value.map(|(byte, counts)| byte * u8::from(counts)).collect());
    }
    if spec.chunk.is_some() && !shape.contains(&0) {
        let has = |filter: Filter| caps.has(&filter);
        spec.filters = match below(noise, 10) {
            0 if has(Filter::Deflate(1)) => vec![Filter::Deflate(1)],
            1 if has(Filter::Shuffle) && has(Filter::Deflate(4)) => vec![Filter::Shuffle, Filter::Deflate(4)],
            2 if has(Filter::Zstd(1)) => vec![Filter::Zstd(1)],
            3 if has(Filter::Blosc(3)) => vec![Filter::Blosc(3)],
            4 if has(Filter::Shuffle) && has(Filter::Lzf) => vec![Filter::Shuffle, Filter::Lzf],
            5 if has(Filter::Bitshuffle) => vec![Filter::Bitshuffle],
            6 if has(Filter::Lz4) => vec![Filter::Lz4],
            7 if has(Filter::Blosc2(1)) => vec![Filter::Blosc2(1)],
            _ => Vec::new(),
        };
    }
    Ok(spec)
}

/// A shape that `spec` may be resized to, or just not. Half the time only the slowest dimension changes, which every
/// format with resize can do.
pub(super) fn new_shape(noise: &mut Noise, spec: &ArraySpec) -> Dims {
    let changing = if below(noise, 2) == 0 { 1 } else { spec.shape.len() };
    let change = |(d, extent): (usize, &u64)| if d < changing { below(noise, 12) } else { *extent };
    spec.shape.iter().enumerate().map(change).collect()
}

/// Mostly a selection inside `shape`.
pub(super) fn selection(noise: &mut Noise, shape: &[u64]) -> Result<Selection> {
    let rank = shape.len();
    match below(noise, 10) {
        0 => Selection::all(shape),
        1 => Ok(Selection::empty(rank)),
        2 => {
            // One too many somewhere.
            let outside = Dims::from_iter(shape.iter().map(|extent| extent + 1));
            Selection::all(&outside)
        }
        3..6 => Selection::union(rank, slab(noise, shape, false)?),
        6..8 => Selection::union(rank, slab(noise, shape, true)?),
        _ => {
            let mut slabs = Vec::new();
            for _ in 0..1 + below(noise, 4) {
                let strided = below(noise, 2) == 0;
                slabs.extend(slab(noise, shape, strided)?);
            }
            Selection::union(rank, slabs)
        }
    }
}

fn slab(noise: &mut Noise, shape: &[u64], strided: bool) -> Result<Option<Slab>> {
    let (mut start, mut stride, mut count, mut block) = (Dims::new(), Dims::new(), Dims::new(), Dims::new());
    for &extent in shape {
        if extent == 0 {
            return Ok(None);
        }
        let first = below(noise, extent);
        let width = if strided { 1 + below(noise, (extent - first).min(3)) } else { 1 + below(noise, extent - first) };
        let step = width + if strided { below(noise, 3) } else { 0 };
        let most = 1 + (extent - first - width) / step;
        start.push(first);
        block.push(width);
        stride.push(step);
        count.push(if strided { 1 + below(noise, most) } else { 1 });
    }
    Slab::strided(&start, &stride, &count, &block)
}

/// A layout for `selection`. Partial fields only if `partial`.
pub(super) fn layout(
    noise: &mut Noise,
    dtype: &Datatype,
    selection: &Selection,
    partial: bool,
) -> Result<MemoryLayout> {
    let mut all: Vec<MemoryLayout> = cases::layouts(dtype, selection)?.into_iter().map(|(_, layout)| layout).collect();
    if !dtype.fields().is_empty() {
        let fields = cases::field_layouts(dtype, selection)?;
        all.extend(fields.into_iter().filter(|(_, _, whole)| *whole || partial).map(|(_, layout, _)| layout));
    }
    let chosen = below(noise, all.len() as u64) as usize;
    Ok(all.swap_remove(chosen))
}

/// An attribute of a kind that every format keeps.
pub(super) fn attribute(noise: &mut Noise) -> Attribute {
    match below(noise, 3) {
        0 => Attribute::integer(noise.next() as i64),
        1 => Attribute::float(noise.next() as f64 / 7.0),
        _ => Attribute::text(&"text é ".repeat(below(noise, 4) as usize)),
    }
}

/// Where both sides say the same about what they can do.
pub(super) fn common(caps: &Caps) -> Caps {
    let oracle = Memory.caps();
    Caps {
        data: DataModel {
            resize: caps.data.resize && oracle.data.resize,
            chunks: caps.data.chunks && oracle.data.chunks,
            compound: caps.data.compound && oracle.data.compound,
            partial_fields: caps.data.partial_fields && oracle.data.partial_fields,
            fill_value: caps.data.fill_value && oracle.data.fill_value,
            attributes: caps.data.attributes && oracle.data.attributes,
            groups: caps.data.groups && oracle.data.groups,
            max_rank: caps.data.max_rank.min(oracle.data.max_rank),
            ..caps.data
        },
        ..*caps
    }
}
