//! What the log has of an array, brought into the array by all ranks.

use super::array::LogArray;
use super::read::Reading;
use crate::blocks::Blocks;
use hyperslab_core::{MemoryView, Result, TransferMode, agree};

/// Bytes of elements in memory at a time.
const STAGE: u64 = 16 << 20;

/// Every rank brings blocks of the array home that no other rank touches. Collective; the index is stored, and the same on
/// every rank.
pub(super) fn replay(array: &LogArray) -> Result<()> {
    agree(&*array.shared.comm, my_blocks(array)).map_err(|error| error.target(&array.named.name))
}

fn my_blocks(array: &LogArray) -> Result<()> {
    let (reading, spec) = (Reading::new(array)?, array.inner.spec()?);
    let size = spec.dtype.size();
    let blocks = Blocks::new(&spec, STAGE)?;
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
