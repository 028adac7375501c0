//! Elements on their way between chunks that have little in common, in a scratch array beside the output.
//!
//! It holds blocks of the output one below the other, so that each is read at once; those at the array's edge leave room.

use hyperslab_core::{
    Array, ArraySpec, Communicator, Container, Dims, Error, Format, MemoryLayout, MemoryView, MemoryViewMut, OpenMode,
    Result, Selection, StackElement, TransferMode, agree,
};
use hyperslab_layers::ChunkBlocks;
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "elements";

/// A scratch array, shared by ranks.
pub struct Scratch<'a> {
    blocks: &'a ChunkBlocks,
    container: Arc<dyn Container>,
    array: Arc<dyn Array>,
}

/// Calls `work` with a scratch array at `path`, and removes it whatever happens. Collective.
pub fn with_scratch(
    comm: &Arc<dyn Communicator>,
    path: &Path,
    spec: &ArraySpec,
    blocks: &ChunkBlocks,
    work: impl FnOnce(&Scratch<'_>) -> Result<()>,
) -> Result<()> {
    let format = hyperslab_formats::build(&StackElement::plain("posix"))?;
    let worked = Scratch::create(&*format, comm, path, spec, blocks).and_then(|scratch| {
        let worked = agree(&**comm, work(&scratch));
        let closed = scratch.array.close().and_then(|()| scratch.container.close());
        worked.and(closed)
    });
    let worked = agree(&**comm, worked);
    let left = comm.rank() == 0 && path.symlink_metadata().is_ok();
    let removed = if left { format.remove(path) } else { Ok(()) };
    worked.and(agree(&**comm, removed))
}

impl<'a> Scratch<'a> {
    fn create(
        format: &dyn Format,
        comm: &Arc<dyn Communicator>,
        path: &Path,
        spec: &ArraySpec,
        blocks: &'a ChunkBlocks,
    ) -> Result<Self> {
        let mut shape = Dims::from_slice(blocks.extents());
        if let Some(rows) = shape.first_mut() {
            *rows =
                rows.checked_mul(blocks.len()).ok_or_else(|| Error::invalid("convert", "the array is too large"))?;
        }
        let container = format.open(path, OpenMode::Create, comm)?;
        let array = container.create(NAME, &ArraySpec::new(spec.dtype.clone(), &shape))?;
        Ok(Self { blocks, container, array })
    }

    /// Where the elements from `low` to `high`, all of block `number`, are.
    fn place(&self, number: u64, low: &[u64], high: &[u64]) -> Result<Selection> {
        let block = self.blocks.block(number)?;
        let Some((origin, _)) = block.bounds() else { return Ok(Selection::empty(low.len())) };
        let mut start: Dims = low.iter().zip(&origin).map(|(low, origin)| low - origin).collect();
        if let (Some(row), Some(rows)) = (start.first_mut(), self.blocks.extents().first()) {
            *row += number * rows;
        }
        let count: Dims = high.iter().zip(low).map(|(high, low)| high - low).collect();
        Selection::dense(&start, &count)
    }

    /// Keeps the packed elements of a box.
    pub fn put(&self, part: &Selection, data: &[u8]) -> Result<()> {
        let Some((low, high)) = part.bounds() else { return Ok(()) };
        let extents: Dims = high.iter().zip(&low).map(|(high, low)| high - low).collect();
        self.blocks.each_touching(&low, &high, |number| {
            let common = part.intersect(&self.blocks.block(number)?)?;
            let Some((from, to)) = common.bounds() else { return Ok(()) };
            let back: Vec<i64> = low.iter().map(|low| -(*low as i64)).collect();
            let layout = MemoryLayout::strided(&extents, common.shifted(&back)?);
            let view = MemoryView { data, layout: &layout };
            self.array.write(&self.place(number, &from, &to)?, view, TransferMode::Independent)
        })
    }

    /// Gets the packed elements of a block.
    pub fn get(&self, number: u64, data: &mut [u8]) -> Result<()> {
        let Some((low, high)) = self.blocks.block(number)?.bounds() else { return Ok(()) };
        let place = self.place(number, &low, &high)?;
        self.array.read(&place, MemoryViewMut::packed(data), TransferMode::Independent)
    }
}
