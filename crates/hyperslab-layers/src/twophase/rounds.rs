//! Rounds: the windows of each, and a rank's cursors through its selection.

use super::domains::Lane;
use super::storage_cursor::{ChunkCursor, RowCursor};
use super::storage_order::StorageOrder;
use hyperslab_core::{Communicator, Reduce, Result, Selection};
use std::ops::Range;

/// The position of the rank in every lane. A clone continues from the same positions.
#[derive(Debug, Clone)]
pub(super) enum Cursors<'a> {
    Rows(Vec<RowCursor<'a>>),
    Chunks(Vec<ChunkCursor<'a>>),
}

impl<'a> Cursors<'a> {
    /// Positions at the begin of every lane.
    pub fn new(selection: &'a Selection, order: &'a StorageOrder, lanes: &[Lane]) -> Result<Self> {
        match &order.chunks {
            None => {
                let mut walk = RowCursor::new(selection, order)?;
                let starts = lanes.iter().map(|lane| {
                    while walk.next_before(lane.range.start).is_some() {}
                    walk.clone()
                });
                Ok(Self::Rows(starts.collect()))
            }
            Some(grid) => {
                let mut walk = ChunkCursor::new(selection, grid, order.frame_bytes)?;
                let starts = lanes.iter().map(|lane| {
                    while walk.next_before(lane.range.start)?.is_some() {}
                    Ok(walk.clone())
                });
                Ok(Self::Chunks(starts.collect::<Result<_>>()?))
            }
        }
    }

    /// The next byte in lane `number`; `u64::MAX` at its end.
    fn next(&self, number: usize, lane: &Lane) -> u64 {
        let next = match self {
            Self::Rows(walks) => walks[number].peek(),
            Self::Chunks(walks) => walks[number].peek(),
        };
        next.filter(|next| *next < lane.range.end).unwrap_or(u64::MAX)
    }
}

/// Number of rounds between agreements on whether to continue.
const ROUNDS_BETWEEN_QUESTIONS: u64 = 16;

/// The windows of one round, one for each unfinished lane.
pub(super) type RoundRanges = Vec<Option<Range<u64>>>;

/// The sequence of rounds, the same on all ranks.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    comm: &'a dyn Communicator,
    lanes: Vec<Lane>,
    /// Number of rounds begun.
    begun: u64,
    /// Number of rounds, if all windows are visited.
    all: Option<u64>,
}

impl<'a> Rounds<'a> {
    /// The rounds of ranks that access `bytes` bytes in these lanes. If most windows would be empty, ranks agree on the
    /// next ones in each round, so that empty windows are skipped; otherwise that would cost an extra message.
    pub fn new(comm: &'a dyn Communicator, lanes: Vec<Lane>, bytes: u64) -> Self {
        let windows = lanes.iter().map(Lane::windows).max().unwrap_or(0);
        let in_a_round = lanes.iter().fold(0, |sum: u64, lane| sum.saturating_add(lane.step())).max(1);
        let dense = windows <= (bytes / in_a_round).saturating_mul(2).saturating_add(2);
        Self { comm, lanes, begun: 0, all: dense.then_some(windows) }
    }

    /// Whether there may be several rounds.
    pub fn are_several(&self) -> bool {
        self.all.is_none_or(|all| all > 1)
    }

    /// The windows of the next round; `None` at the end, or after a failure of any rank. Collective.
    pub fn next(&mut self, walks: Option<&Cursors<'_>>, well: bool) -> Result<Option<RoundRanges>> {
        let number = self.begun;
        self.begun += 1;
        match self.all {
            Some(all) if number >= all => Ok(None),
            Some(_) => {
                let mut well = [u64::from(well)];
                if number % ROUNDS_BETWEEN_QUESTIONS == ROUNDS_BETWEEN_QUESTIONS - 1 {
                    self.comm.all_reduce(&mut well, Reduce::Min)?;
                    if well == [0] {
                        return Ok(None);
                    }
                }
                let window = |lane: &Lane| (number < lane.windows()).then(|| lane.window(number));
                Ok(Some(self.lanes.iter().map(window).collect()))
            }
            None => self.next_touched(walks, well),
        }
    }

    /// The first window of each lane that any rank still needs.
    fn next_touched(&self, walks: Option<&Cursors<'_>>, well: bool) -> Result<Option<RoundRanges>> {
        let next = |(number, lane)| walks.map_or(u64::MAX, |walks| walks.next(number, lane));
        let mut values: Vec<u64> = self.lanes.iter().enumerate().map(next).chain([u64::from(well)]).collect();
        self.comm.all_reduce(&mut values, Reduce::Min)?;
        if values.pop() == Some(0) || values.iter().all(|next| *next == u64::MAX) {
            return Ok(None);
        }
        let window = |(lane, next): (&Lane, u64)| (next != u64::MAX).then(|| lane.window_at(next));
        Ok(Some(self.lanes.iter().zip(values).map(window).collect()))
    }
}
