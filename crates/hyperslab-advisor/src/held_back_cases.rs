//! Workloads that nothing is fitted to: drawn by a generator with a fixed seed, without regard to what `train` measures.

use hyperslab_core::workload::{
    ArrayDeclaration, FileDeclaration, Header, Step, StepSource, Steps, WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{ArraySpec, Datatype, Dims, Fill, Filter, OpenMode, Result, Selection, TransferMode, dims};
use std::sync::Arc;

/// How many there are.
pub const CASES: usize = 60;
/// What they are drawn from.
const SEED: u64 = 0x1D0C_5EED;
/// Elements of an array, as powers of two.
const ELEMENTS: std::ops::RangeInclusive<u64> = 12..=21;

/// One drawn workload: arrays, and what is done to them on every stack.
#[derive(Debug, Clone)]
pub struct HeldBackCase {
    /// What it is, in words.
    pub about: String,
    /// The chunk of its arrays.
    pub chunk: Dims,
    /// The shard that holds such chunks.
    pub shard: Dims,
    /// Makes the file, if what is measured is reading it.
    pub made_by: Option<Workload>,
    /// What is measured.
    pub measured: Workload,
}

/// Numbers that look random and are always the same: splitmix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From `low` to `high`, both among them.
    fn from(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.next() as usize % of.len()].clone()
    }
}

/// All of them, always the same.
pub fn cases(file: &str) -> Result<Vec<HeldBackCase>> {
    let mut draws = Draws(SEED);
    (0..CASES).map(|number| drawn(&mut draws, number, file)).collect()
}

fn drawn(draws: &mut Draws, number: usize, file: &str) -> Result<HeldBackCase> {
    let dtype = draws.one_of(&[Datatype::F32, Datatype::F64, Datatype::I32, Datatype::U8]);
    let rank = draws.from(1, 4) as usize;
    let mut left = draws.from(*ELEMENTS.start(), *ELEMENTS.end());
    let shape: Dims = (0..rank)
        .map(|d| {
            let bits = if d + 1 == rank { left } else { draws.from(0, 2 * left / (rank - d) as u64).min(left) };
            left -= bits;
            // No powers of two: edges of chunks are met.
            (1u64 << bits) + draws.from(0, (1u64 << bits) / 3)
        })
        .collect();
    let mut chunk: Dims = shape.iter().map(|extent| extent.div_ceil(draws.from(1, 9)).max(1)).collect();
    // Not more than a few thousand chunks, and none of a few bytes.
    while dims::byte_count(&chunk, dtype.size())? < 1 << 10 && chunk != shape {
        chunk.iter_mut().zip(&shape).for_each(|(chunk, extent)| *chunk = (*chunk * 2).min(*extent));
    }
    let shard: Dims = chunk.iter().map(|chunk| chunk * draws.from(1, 3)).collect();
    let filters = draws.one_of(&[Vec::new(), Vec::new(), Vec::new(), vec![Filter::Deflate(1)]]);
    let fill = if filters.is_empty() { Fill::Random } else { Fill::Ramp };
    let arrays = draws.one_of(&[1, 1, 1, 2, 5, 12]);
    let grows = draws.from(0, 5) == 0;
    let reads = draws.from(0, 2) > 0;
    let whole = vec![Selection::all(&shape)?];
    let (access, selections) = if reads { reading(draws, &shape)? } else { writing(draws, &shape)? };
    let spec = ArraySpec {
        filters: filters.clone(),
        max_shape: grows
            .then(|| shape.iter().enumerate().map(|(d, extent)| if d == 0 { None } else { Some(*extent) }).collect()),
        ..ArraySpec::new(dtype.clone(), &shape)
    };
    let workload = |writes: bool, selections: Vec<Selection>| {
        let declared = if writes { FileDeclaration::created(file) } else { FileDeclaration::read(file) };
        let header = Header {
            version: WORKLOAD_VERSION,
            name: "held back".into(),
            about: String::new(),
            ranks: 1,
            seed: 1,
            recorded: None,
            files: vec![declared],
            arrays: vec![ArrayDeclaration { spec: spec.clone(), fill: fill.clone() }],
        };
        Workload::new(header, Arc::new(Drawn { writes, arrays, selections }))
    };
    let about = format!(
        "{number}: {} of {dtype} x {arrays}, chunks {}{}{}, {} {access}",
        dims::display(&shape),
        dims::display(&chunk),
        if filters.is_empty() { "" } else { ", zlib" },
        if grows { ", may grow" } else { "" },
        if reads { "read" } else { "write" },
    );
    let made_by = reads.then(|| workload(true, whole)).transpose()?;
    Ok(HeldBackCase { about, chunk, shard, made_by, measured: workload(!reads, selections)? })
}

/// A box of drawn extents somewhere.
fn piece(draws: &mut Draws, shape: &[u64], most: u64) -> Result<Selection> {
    let count: Dims = shape.iter().map(|extent| draws.from(1, (extent / most).max(1))).collect();
    let start: Dims = shape.iter().zip(&count).map(|(extent, count)| draws.from(0, extent - count)).collect();
    Selection::dense(&start, &count)
}

/// Bands along a dimension, of drawn height.
fn bands(draws: &mut Draws, shape: &[u64], dimension: usize, most: u64) -> Result<Vec<Selection>> {
    let extent = shape[dimension];
    let height = extent.div_ceil(draws.from(2, most.max(2))).max(1);
    let band = |first: u64| {
        let (mut start, mut count) = (Dims::from_elem(0, shape.len()), Dims::from_slice(shape));
        (start[dimension], count[dimension]) = (first, height.min(extent - first));
        Selection::dense(&start, &count)
    };
    (0..extent.div_ceil(height)).map(|i| band(i * height)).collect()
}

fn writing(draws: &mut Draws, shape: &[u64]) -> Result<(&'static str, Vec<Selection>)> {
    Ok(match draws.from(0, 3) {
        0 => ("whole", vec![Selection::all(shape)?]),
        1 => ("bands", bands(draws, shape, 0, 200)?),
        2 => ("bands of the last dimension", bands(draws, shape, shape.len() - 1, 30)?),
        _ => ("boxes here and there", (0..40).map(|_| piece(draws, shape, 4)).collect::<Result<_>>()?),
    })
}

fn reading(draws: &mut Draws, shape: &[u64]) -> Result<(&'static str, Vec<Selection>)> {
    Ok(match draws.from(0, 6) {
        0 => ("whole", vec![Selection::all(shape)?]),
        1 => ("bands", bands(draws, shape, 0, 100)?),
        2 => ("bands of the last dimension", bands(draws, shape, shape.len() - 1, 40)?),
        3 => ("boxes here and there", (0..60).map(|_| piece(draws, shape, 3)).collect::<Result<_>>()?),
        4 => {
            let step: Dims = shape.iter().map(|extent| draws.from(1, 5).min(*extent)).collect();
            let count: Dims = shape.iter().zip(&step).map(|(extent, step)| (extent - 1) / step + 1).collect();
            let one =
                Selection::strided(&Dims::from_elem(0, shape.len()), &step, &count, &Dims::from_elem(1, shape.len()))?;
            ("every few elements", vec![one])
        }
        5 => ("single elements", (0..150).map(|_| piece(draws, shape, u64::MAX)).collect::<Result<_>>()?),
        _ => {
            let mut all = Selection::empty(shape.len());
            for _ in 0..draws.from(20, 300) {
                all = all.union_with(&piece(draws, shape, 50)?)?;
            }
            ("a union of boxes", vec![all])
        }
    })
}

/// The steps: arrays, each made or opened, transferred, closed.
#[derive(Debug)]
struct Drawn {
    writes: bool,
    arrays: u32,
    selections: Vec<Selection>,
}

impl StepSource for Drawn {
    fn steps(&self, _: usize) -> Result<Steps<'_>> {
        let how = if self.writes { OpenMode::Create } else { OpenMode::Read };
        let arrays = (0..self.arrays).flat_map(move |number| {
            let name: Arc<str> = format!("array{number}").into();
            let open = match self.writes {
                true => Step::Create { slot: 0, file: 0, array: 0, name },
                false => Step::Open { slot: 0, file: 0, array: 0, name },
            };
            let transfers = self.selections.iter().map(move |selection| {
                let (selection, memory, transfer) = (selection.clone(), Arc::default(), TransferMode::Independent);
                match self.writes {
                    true => Step::Write { slot: 0, selection, memory, transfer },
                    false => Step::Read { slot: 0, selection, memory, transfer },
                }
            });
            std::iter::once(open).chain(transfers).chain([Step::CloseArray { slot: 0 }])
        });
        let all = std::iter::once(Step::OpenFile { file: 0, how }).chain(arrays).chain([Step::CloseFile { file: 0 }]);
        Ok(Box::new(all.map(Ok)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn they_are_always_the_same_and_valid() {
        let (one, other) = (cases("f").unwrap(), cases("f").unwrap());
        assert_eq!(one.len(), CASES);
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one.about, other.about);
            one.measured.validate().unwrap();
            one.made_by.iter().for_each(|made| drop(made.validate().unwrap()));
            assert!(one.shard.iter().zip(&one.chunk).all(|(shard, chunk)| shard % chunk == 0));
        }
        assert!(one.iter().filter(|case| case.made_by.is_some()).count() > 20);
    }
}
