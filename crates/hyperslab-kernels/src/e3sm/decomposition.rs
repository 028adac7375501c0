//! How the elements of a climate model's variables are dealt out to ranks: maps as the model's I/O library (PIO) has them.

use super::compact::compact;
use hyperslab_core::{Dims, Error, Result, Selection, dims};

/// A run of elements: flat offset of the first one, and their number.
pub type Run = (u64, u64);

/// What one rank of a map asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// Elements that hold data, in the order of the rank's buffer.
    pub data: Vec<Run>,
    /// Elements without data that the rank would fill.
    pub holes: Vec<Run>,
}

/// The map of variables of one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decomposition {
    /// Extents of the variables, slowest dimension first.
    pub dims: Dims,
    /// By rank of the map.
    pub requests: Vec<Requests>,
}

/// The most requests that a map may have.
pub(crate) const MOST_REQUESTS: usize = 1 << 27;
/// The most ranks that a map may be for.
pub(crate) const MOST_RANKS: usize = 1 << 20;

impl Requests {
    /// Elements that hold data.
    pub fn len(&self) -> u64 {
        self.data.iter().map(|run| run.1).sum()
    }

    /// Whether no element holds data.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}

impl Decomposition {
    /// Elements that hold data, all ranks.
    pub fn elements(&self) -> u64 {
        self.requests.iter().map(Requests::len).sum()
    }

    /// The ranks of the map that rank `rank` of `ranks` stands for: neighbours, as evenly as possible. With more ranks than the
    /// map has, some stand for none.
    pub fn share(&self, rank: usize, ranks: usize) -> std::ops::Range<usize> {
        let all = self.requests.len();
        let end = |rank: usize| (rank as u128 * all as u128 / ranks as u128) as usize;
        if ranks <= all { end(rank)..end(rank + 1) } else { rank.min(all)..(rank + 1).min(all) }
    }

    /// The data elements of some ranks of the map in the first record of a variable, as few regular pieces.
    pub fn first_record(&self, ranks: std::ops::Range<usize>) -> Result<Selection> {
        let runs = self.requests[ranks].iter().flat_map(|requests| requests.data.iter().copied());
        let shape: Dims = [1].into_iter().chain(self.dims.iter().copied()).collect();
        compact(&shape, runs)
    }

    /// Refuses maps whose offsets lie outside or that deal out an element twice.
    pub fn check(&self) -> Result<()> {
        let bad = |message: String| Err(Error::invalid("read map", message));
        if self.dims.is_empty() || self.dims.len() > 8 || self.dims.contains(&0) {
            return bad(format!("dimensions {:?}; 1 to 8 extents of at least 1 are possible", self.dims));
        }
        if self.requests.is_empty() || self.requests.len() > MOST_RANKS {
            return bad(format!("{} ranks; 1 to {MOST_RANKS} are possible", self.requests.len()));
        }
        let whole = dims::byte_count(&self.dims, 8)? / 8;
        let number = |requests: &Requests| requests.data.len() + requests.holes.len();
        let total: usize = self.requests.iter().map(number).sum();
        if total > MOST_REQUESTS {
            return bad(format!("{total} requests; at most {MOST_REQUESTS} are possible"));
        }
        let mut runs: Vec<Run> = Vec::with_capacity(total);
        for requests in &self.requests {
            runs.extend(requests.data.iter().chain(&requests.holes));
        }
        runs.sort_unstable();
        let row = self.dims.last().copied().unwrap_or(1).max(1);
        let (mut end, mut rows) = (0, 0u64);
        for (offset, len) in runs {
            rows = rows.saturating_add(len / row + 1);
            if rows > 2 * MOST_REQUESTS as u64 {
                return bad(format!("requests of more than {} rows", 2 * MOST_REQUESTS));
            }
            if offset < end {
                return bad(format!("element {offset} is dealt out twice"));
            }
            match offset.checked_add(len).filter(|end| len > 0 && *end <= whole) {
                Some(next) => end = next,
                None => return bad(format!("{len} elements at {offset} do not lie in {}", dims::display(&self.dims))),
            }
        }
        Ok(())
    }
}
