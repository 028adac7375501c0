//! What a number stands for: an array, how it is opened, and what happens to it.

use crate::common::Noise;
use hyperslab_core::{ArraySpec, Datatype, Dims, Filter, MemoryLayout, Result, Selection, Slab};
use hyperslab_testkit::{cases, element};

/// What is done in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Write,
    Read,
    Resize,
    Flush,
    Reopen,
}

/// One step, by the plane or by libhdf5; the rest follows from the number, given the array.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub kind: Kind,
    pub on: bool,
    pub choice: u64,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub seed: u64,
    pub number: u64,
    pub spec: ArraySpec,
    /// The stacks with `plane=on` and without.
    pub on: String,
    pub off: String,
    /// Both handles are open at once, that of the plane first or last; else one at a time.
    pub at_once: Option<bool>,
    pub steps: Vec<Step>,
}

/// The most that an extent may be in arrays of so many dimensions.
const EXTENTS: [u64; 7] = [1, 150, 24, 9, 6, 4, 3];

impl Case {
    pub fn new(seed: u64, number: u64) -> Result<Self> {
        let noise = &mut Noise::new(seed.wrapping_mul(1 << 20).wrapping_add(number));
        let mut types = cases::datatypes()?;
        let dtype = types.swap_remove(noise.below(types.len() as u64) as usize).1;
        let rank = noise.below(7) as usize;
        // Large enough for several threads now and then.
        let large = rank == 2 && noise.once_in(3);
        let most = if large { 110 } else { EXTENTS[rank] };
        let empty = noise.once_in(12);
        let shape: Dims = (0..rank).map(|_| if empty { noise.below(most) } else { 1 + noise.below(most) }).collect();
        let mut spec = ArraySpec::new(dtype, &shape);
        let mut options = vec![format!("libver={}", noise.pick(&["v18", "latest", "v110", "earliest"]))];
        let times: &[&str] = match noise.below(if rank == 0 { 3 } else { 9 }) {
            0 if spec.shape.iter().product::<u64>() * spec.dtype.size() < 60_000 => {
                options.push("layout=compact".into());
                &["default", "early"]
            }
            0..3 => {
                options.push("layout=contiguous".into());
                &["default", "early", "late"]
            }
            _ => {
                chunks(&mut spec, noise, most, large);
                &["default", "early", "late", "incremental"]
            }
        };
        let time = *noise.pick(times);
        options.push(format!("alloc_time={time}"));
        // When the first write covers an array that libhdf5 (2.2) allocates late, it does not fill what chunks at the edge
        // have beyond; that shows when the array grows.
        let edges_lack_fill = time == "late" && spec.max_shape.is_some();
        if noise.once_in(3) && !edges_lack_fill {
            let value = element(&spec.dtype, noise.next()).into_iter().zip(meaningful(&spec.dtype));
            spec.fill_value = Some(value.map(|(byte, counts)| byte * u8::from(counts)).collect());
        }
        if noise.once_in(4) {
            options.push(format!("fill_time={}", noise.pick(&["alloc", "ifset"])));
        }
        if noise.once_in(4) {
            options.push(format!("align={},align_threshold=1", noise.pick(&[3, 512, 4096, 10_000])));
        }
        let options = options.join(",");
        let cache = *noise.pick(&["", "", ",cache=0", ",cache=500", ",cache=20KiB"]);
        let threads = *noise.pick(&["", "", ",threads=1", ",threads=3"]);
        let other = *noise.pick(&["", "", ",cache=0", ",cache=0,sieve=0", ",cache=1KiB", ",sieve=0"]);
        Ok(Self {
            seed,
            number,
            spec,
            on: format!("hdf5(plane=on,{options}{cache}{threads})"),
            off: format!("hdf5({options}{other})"),
            at_once: noise.once_in(3).then(|| noise.once_in(2)),
            steps: (0..3 + noise.below(14)).map(|_| Step::new(noise)).collect(),
        })
    }
}

fn chunks(spec: &mut ArraySpec, noise: &mut Noise, most: u64, large: bool) {
    let chunk = |noise: &mut Noise, extent: u64| match (large, noise.below(5)) {
        (true, _) => 20 + noise.below(50),
        (_, 0) => extent.max(1), // one chunk along this dimension
        _ => 1 + noise.below(most.div_ceil(2)),
    };
    let grows = noise.below(3);
    let extents: Dims = spec.shape.iter().map(|&extent| chunk(noise, extent)).collect();
    if grows > 0 {
        let max = |extent: &u64| match (grows, noise.below(3)) {
            (2, 0 | 1) => None,
            (_, 0) => Some(*extent),
            _ => Some(extent + noise.below(6)),
        };
        spec.max_shape = Some(spec.shape.iter().map(max).collect());
        if grows == 1 && noise.once_in(2) {
            // One dimension without limit, which has an index of its own.
            let at = noise.below(spec.shape.len() as u64) as usize;
            spec.max_shape.iter_mut().for_each(|max| max[at] = None);
        }
    }
    let limit = |d: usize| spec.max_shape.as_ref().map_or(Some(spec.shape[d]), |max| max[d]);
    // Chunks are never larger than an extent that cannot grow.
    let cut = extents.iter().enumerate().map(|(d, &e)| limit(d).map_or(e, |limit| e.min(limit.max(1))));
    spec.chunk = Some(cut.collect());
    let level = 1 + noise.below(9) as u8;
    spec.filters = match noise.below(15) {
        0..3 => vec![],
        3 => vec![Filter::Deflate(level)],
        4 => vec![Filter::Shuffle, Filter::Deflate(level)],
        5 => vec![Filter::Fletcher32],
        6 => vec![Filter::Shuffle],
        7 => vec![Filter::Deflate(level), Filter::Fletcher32],
        8 => vec![Filter::Zstd(level)],
        9 => vec![Filter::Shuffle, Filter::Lz4],
        10 => vec![Filter::Lzf],
        11 => vec![Filter::Bitshuffle, Filter::Fletcher32],
        12 => vec![Filter::Blosc(level)],
        13 => vec![Filter::Blosc2(level)],
        _ => vec![Filter::Shuffle, Filter::Deflate(level), Filter::Fletcher32],
    };
}

impl Step {
    fn new(noise: &mut Noise) -> Self {
        let kind = match noise.below(20) {
            0..9 => Kind::Write,
            9..13 => Kind::Read,
            13..16 => Kind::Resize,
            16..18 => Kind::Flush,
            _ => Kind::Reopen,
        };
        // More often by the plane, so that it meets its own data too.
        Self { kind, on: !noise.once_in(3), choice: noise.next() }
    }
}

/// Bytes of an element that are no padding.
fn meaningful(dtype: &Datatype) -> Vec<bool> {
    let mut out = vec![dtype.fields().is_empty(); dtype.size() as usize];
    for field in dtype.fields() {
        out[field.offset as usize..][..field.dtype.size() as usize].copy_from_slice(&meaningful(&field.dtype));
    }
    out
}

/// A shape that the array may take.
pub fn new_shape(noise: &mut Noise, spec: &ArraySpec, max: &[Option<u64>]) -> Dims {
    let most = EXTENTS[spec.shape.len()] + 6;
    let change = |(now, max): (&u64, &Option<u64>)| {
        if noise.once_in(3) { *now } else { noise.below(most.max(*now) + 1).min(max.unwrap_or(u64::MAX)) }
    };
    spec.shape.iter().zip(max).map(change).collect()
}

/// A selection inside `shape`.
pub fn selection(noise: &mut Noise, shape: &[u64]) -> Result<Selection> {
    let (rank, kind) = (shape.len(), noise.below(8));
    let parts = if kind < 6 { 1 } else { 2 + noise.below(3) };
    match kind {
        0 => Selection::all(shape),
        _ => {
            let mut slabs = Vec::new();
            for _ in 0..parts {
                let strided = kind > 2 && noise.once_in(2);
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
        let first = noise.below(extent);
        let width = 1 + noise.below(if strided { (extent - first).min(3) } else { extent - first });
        let step = width + if strided { noise.below(3) } else { 0 };
        let most = 1 + (extent - first - width) / step;
        start.push(first);
        block.push(width);
        stride.push(step);
        count.push(if strided { 1 + noise.below(most) } else { 1 });
    }
    Slab::strided(&start, &stride, &count, &block)
}

/// A layout of memory for a selection: packed half the time, else anything, some fields included.
pub fn layout(noise: &mut Noise, dtype: &Datatype, selection: &Selection) -> Result<MemoryLayout> {
    if noise.once_in(2) {
        return Ok(MemoryLayout::packed());
    }
    let mut all: Vec<MemoryLayout> = cases::layouts(dtype, selection)?.into_iter().map(|(_, layout)| layout).collect();
    if !dtype.fields().is_empty() {
        all.extend(cases::field_layouts(dtype, selection)?.into_iter().map(|(_, layout, _)| layout));
    }
    let chosen = noise.below(all.len() as u64) as usize;
    Ok(all.swap_remove(chosen))
}
