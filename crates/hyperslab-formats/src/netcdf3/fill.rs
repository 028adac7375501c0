//! Writing fill values into elements that are new.

use super::state::Open;
use crate::posix::rank_files::fill_with;
use crate::posix::staging::Staging;
use hyperslab_core::{Communicator, Result, Run};

/// Fills this rank's share of the elements of an array from record `first` on; nothing if they are to be zeros.
pub(crate) fn fill(open: &Open, staging: &Staging, comm: &dyn Communicator, number: usize, first: u64) -> Result<()> {
    let (array, variable) = (&open.arrays[number], &open.header.variables[number]);
    let Some(value) = array.fill.clone().filter(|value| value.iter().any(|byte| *byte != 0)) else {
        return Ok(());
    };
    let place = array.placement(&open.header, variable);
    let rows = if open.header.has_records(variable) { open.header.records } else { 1 };
    let element = value.len() as u64;
    let (from, to) = (first * place.row / element, rows * place.row / element);
    let share = |rank: usize| from + (u128::from(to - from) * rank as u128 / comm.size() as u128) as u64;
    let (from, to) = (share(comm.rank()) * element, share(comm.rank() + 1) * element);
    if from == to {
        return Ok(());
    }
    let most = (staging.size() as u64 / element).max(1) * element;
    let mut buffer = staging.take(most.min(to - from) as usize);
    fill_with(&mut buffer, Some(&value));
    place.turn(&mut buffer);
    for mut run in place.runs(std::iter::once(Run { offset: from, len: to - from })) {
        while run.len > 0 {
            let n = run.len.min(buffer.len() as u64);
            open.file.write_at(&buffer[..n as usize], run.offset)?;
            run = Run { offset: run.offset + n, len: run.len - n };
        }
    }
    Ok(())
}
