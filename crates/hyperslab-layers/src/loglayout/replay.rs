//! Copying logged elements into the array, by all ranks.

use super::array::LogLayoutArray;
use super::read::Reading;
use crate::chunk_blocks::ChunkBlocks;
use hyperslab_core::{MemoryView, Result, TransferMode, agree};

/// Size of the buffer.
const STAGE: u64 = 16 << 20;

/// Copies logged elements into the array; every rank handles blocks of its own. Collective; the index must be published.
pub(super) fn replay(array: &LogLayoutArray) -> Result<()> {
    agree(&*array.shared.comm, my_blocks(array)).map_err(|error| error.target(&array.named.name))
}

fn my_blocks(array: &LogLayoutArray) -> Result<()> {
    let (reading, spec) = (Reading::new(array)?, array.inner.spec()?);
    let size = spec.dtype.size();
    let blocks = ChunkBlocks::new(&spec, STAGE)?;
    let mut stage = Vec::new();
    for number in (array.shared.rank()..blocks.len()).step_by(array.shared.comm.size()) {
        blocks.each_piece(number, STAGE / size, |piece| {
            let logged = reading.resolve(piece)?.logged(piece.rank())?;
            if logged.is_empty() {
                return Ok(());
            }
            stage.resize((logged.len() * size) as usize, 0);
            reading.packed(&logged, &mut stage)?;
            array.inner.write(&logged, MemoryView::packed(&stage), TransferMode::Independent)
        })?;
    }
    Ok(())
}
