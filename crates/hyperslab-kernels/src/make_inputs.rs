//! Makes what another workload expects to find: containers with whole arrays.

use hyperslab_core::workload::{
    FileDeclaration, Header, InputArray, MIXED_SEEDS, SEED_ATTRIBUTE, Step, StepSource, Steps, Update,
    WORKLOAD_VERSION, Workload,
};
use hyperslab_core::{Attribute, Dims, Error, OpenMode, Result, Selection, TransferMode};
use std::sync::Arc;

/// The most bytes that are written by one step.
const PIECE: u64 = 16 << 20;

/// A workload that creates the files of `header` whose numbers are in `files`, with every array of `inputs` in them written by
/// all ranks together. Data have the seed of `header`, or another if it overwrites any of them, so that a lost write shows; the
/// containers say which.
pub fn inputs(header: &Header, inputs: &[InputArray], files: &[u32]) -> Result<Workload> {
    let mut made = Vec::with_capacity(files.len());
    let mut plans: Vec<Vec<InputArray>> = Vec::with_capacity(files.len());
    let mut overwritten = false;
    for number in files {
        let file = header.files.get(*number as usize);
        let file = file.ok_or_else(|| Error::invalid("make input", format!("file {number} is not declared")))?;
        made.push(FileDeclaration::created(&file.name).per_rank(file.per_rank));
        overwritten |= file.update == Some(Update::Overwrite);
        plans.push(inputs.iter().filter(|input| input.file == *number).cloned().collect());
    }
    // Seeds are kept as signed integers.
    let seed = if overwritten { (header.seed ^ 1) & i64::MAX as u64 } else { header.seed };
    let arrays = header.arrays.clone();
    let source = Arc::new(Whole { ranks: header.ranks, seed, header: header.clone(), plans });
    let header = Header {
        version: WORKLOAD_VERSION,
        name: "input".into(),
        about: "arrays that another workload reads".into(),
        ranks: header.ranks,
        seed,
        recorded: None,
        files: made,
        arrays,
    };
    Workload::new(header, source)
}

#[derive(Debug)]
struct Whole {
    ranks: usize,
    seed: u64,
    header: Header,
    /// The arrays of each file.
    plans: Vec<Vec<InputArray>>,
}

impl StepSource for Whole {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        let seed = i64::try_from(self.seed).unwrap_or(MIXED_SEEDS);
        Ok(Box::new(self.plans.iter().enumerate().flat_map(move |(number, arrays)| {
            let file = number as u32;
            let value = Attribute::integer(seed);
            let begin = [
                Step::OpenFile { file, how: OpenMode::Create },
                Step::Attribute { file, object: "".into(), name: SEED_ATTRIBUTE.into(), value },
            ];
            let middle = arrays.iter().flat_map(move |input| self.array(file, input, rank));
            begin.into_iter().map(Ok).chain(middle).chain([Ok(Step::CloseFile { file })])
        })))
    }
}

impl Whole {
    /// One array: created, written in pieces that the ranks take in turn, closed.
    fn array(&self, file: u32, input: &InputArray, rank: usize) -> impl Iterator<Item = Result<Step>> + use<> {
        let spec = &self.header.arrays[input.array as usize].spec;
        let (slot, array, name) = (0, input.array, input.name.clone());
        let pieces = Pieces::of(&spec.shape, spec.dtype.size());
        let ranks = self.ranks as u64;
        let rounds = pieces.count.div_ceil(ranks);
        let writes = (0..rounds).map(move |round| {
            let selection = pieces.selection(round * ranks + rank as u64)?;
            Ok(Step::Write { slot, selection, memory: Arc::default(), transfer: TransferMode::Collective })
        });
        let create = Step::Create { slot, file, array, name };
        [Ok(create)].into_iter().chain(writes).chain([Ok(Step::CloseArray { slot })])
    }
}

/// An array cut into boxes of bounded size.
#[derive(Debug)]
struct Pieces {
    shape: Dims,
    /// The dimension that is cut; those before it are taken one by one, those after it whole.
    axis: usize,
    /// Extent of a piece along it.
    block: u64,
    count: u64,
}

impl Pieces {
    fn of(shape: &[u64], element: u64) -> Self {
        let (mut axis, mut inner) = (shape.len(), element.max(1));
        while axis > 0 && inner.saturating_mul(shape[axis - 1]) <= PIECE {
            axis -= 1;
            inner = inner.saturating_mul(shape[axis].max(1));
        }
        let empty = shape.contains(&0);
        if axis == 0 {
            return Self {
                shape: shape.into(),
                axis: 0,
                block: shape.first().copied().unwrap_or(1),
                count: u64::from(!empty),
            };
        }
        let axis = axis - 1;
        let block = (PIECE / inner).clamp(1, shape[axis]);
        let outer: u64 = shape[..axis].iter().fold(1, |product, extent| product.saturating_mul(*extent));
        let count = if empty { 0 } else { outer.saturating_mul(shape[axis].div_ceil(block)) };
        Self { shape: shape.into(), axis, block, count }
    }

    /// Piece number `number`; nothing beyond the last.
    fn selection(&self, number: u64) -> Result<Selection> {
        if number >= self.count {
            return Ok(Selection::empty(self.shape.len()));
        }
        let (mut start, mut count) = (Dims::from_elem(0, self.shape.len()), self.shape.clone());
        if !self.shape.is_empty() {
            let along = self.shape[self.axis].div_ceil(self.block);
            let mut rest = number / along;
            start[self.axis] = number % along * self.block;
            count[self.axis] = self.block.min(self.shape[self.axis] - start[self.axis]);
            for axis in (0..self.axis).rev() {
                (start[axis], count[axis]) = (rest % self.shape[axis], 1);
                rest /= self.shape[axis];
            }
        }
        Selection::dense(&start, &count)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pieces_tile_the_array_and_are_small() {
        for (shape, element) in [
            (&[][..], 8),
            (&[0, 4], 8),
            (&[7], 8),
            (&[5_000_000], 8),
            (&[3, 5_000_000], 4),
            (&[2, 3, 9_000_000], 4),
            (&[4, 100_000, 100], 2),
        ] {
            let pieces = Pieces::of(shape, element);
            let mut all = Selection::empty(shape.len());
            for number in 0..pieces.count {
                let piece = pieces.selection(number).unwrap();
                assert!(piece.len() * element <= PIECE && !piece.is_empty() && !all.overlaps(&piece), "{shape:?}");
                all = all.union_with(&piece).unwrap();
            }
            assert_eq!(all.len(), shape.iter().product::<u64>(), "{shape:?}");
            assert!(pieces.selection(pieces.count).unwrap().is_empty());
        }
    }
}
