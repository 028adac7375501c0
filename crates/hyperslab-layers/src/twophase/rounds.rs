//! A rank's way through its selection, lane by lane and round by round.

use super::domains::Lane;
use super::order::Order;
use super::walk::{ChunkWalk, RowWalk};
use hyperslab_core::{Communicator, Reduce, Result, Selection};
use std::ops::Range;

/// Where the rank stands in every lane. A copy goes on from the same places.
#[derive(Debug, Clone)]
pub(super) enum Walks<'a> {
    Rows(Vec<RowWalk<'a>>),
    Chunks(Vec<ChunkWalk<'a>>),
}

impl<'a> Walks<'a> {
    /// At the begin of every lane.
    pub fn new(selection: &'a Selection, order: &'a Order, lanes: &[Lane]) -> Result<Self> {
        match &order.chunks {
            None => {
                let mut walk = RowWalk::new(selection, order)?;
                let starts = lanes.iter().map(|lane| {
                    while walk.next_before(lane.range.start).is_some() {}
                    walk.clone()
                });
                Ok(Self::Rows(starts.collect()))
            }
            Some(grid) => {
                let mut walk = ChunkWalk::new(selection, grid, order.frame_bytes)?;
                let starts = lanes.iter().map(|lane| {
                    while walk.next_before(lane.range.start)?.is_some() {}
                    Ok(walk.clone())
                });
                Ok(Self::Chunks(starts.collect::<Result<_>>()?))
            }
        }
    }

    /// The next byte in lane `number`; the largest number when nothing is left there.
    fn next(&self, number: usize, lane: &Lane) -> u64 {
        let next = match self {
            Self::Rows(walks) => walks[number].peek(),
            Self::Chunks(walks) => walks[number].peek(),
        };
        next.filter(|next| *next < lane.range.end).unwrap_or(u64::MAX)
    }
}

/// The windows of the next round, one for each lane that has any byte left; `None` when all is done, or a rank says
/// that it failed. Stretches that nobody accesses are skipped. Collective.
pub(super) fn next_windows(
    comm: &dyn Communicator,
    lanes: &[Lane],
    walks: Option<&Walks<'_>>,
    well: bool,
) -> Result<Option<Vec<Option<Range<u64>>>>> {
    let next = |(number, lane)| walks.map_or(u64::MAX, |walks| walks.next(number, lane));
    let mut values: Vec<u64> = lanes.iter().enumerate().map(next).chain([u64::from(well)]).collect();
    comm.all_reduce(&mut values, Reduce::Min)?;
    if values.pop() == Some(0) || values.iter().all(|next| *next == u64::MAX) {
        return Ok(None);
    }
    let windows = lanes.iter().zip(values).map(|(lane, next)| (next != u64::MAX).then(|| lane.window(next)));
    Ok(Some(windows.collect()))
}
