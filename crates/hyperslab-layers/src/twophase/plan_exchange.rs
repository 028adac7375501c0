//! Agreement on the exchange before any data moves.

use super::domains::Access;
use hyperslab_core::{Communicator, Error, ErrorKind, Result};
use std::ops::Range;

/// The request of one rank, with validated arguments.
#[derive(Debug)]
pub(super) struct RankRequest {
    /// First to last byte in storage order; `None` if nothing is selected.
    pub range: Option<Range<u64>>,
    /// Number of bytes selected.
    pub bytes: u64,
    /// Whether the transfer must go to the format below.
    pub left_to_format: bool,
}

/// The decision of all ranks.
#[derive(Debug)]
pub(super) enum ExchangePlan {
    /// No rank selected anything.
    Nothing,
    /// All ranks call the format below.
    LeftToFormat,
    /// All ranks exchange data.
    Exchange(Access),
}

const WISH: u8 = 0;
const LEFT_TO_FORMAT: u8 = 1;
const ERROR: u8 = 2;

/// Exchanges the requests of all ranks, or errors: an error of one rank is returned by all, with kind `Peer` on the others.
/// `grain` is the indivisible length of domains, the same on all ranks. Collective.
pub(super) fn agree_on_access(comm: &dyn Communicator, mine: Result<RankRequest>, grain: u64) -> Result<ExchangePlan> {
    let message = match &mine {
        Err(error) => [&[ERROR], error.to_string().as_bytes()].concat(),
        Ok(RankRequest { range, bytes, left_to_format }) => {
            let (start, end) = range.as_ref().map_or((u64::MAX, 0), |range| (range.start, range.end));
            let tag = if *left_to_format { LEFT_TO_FORMAT } else { WISH };
            [&[tag][..], &start.to_le_bytes(), &end.to_le_bytes(), &bytes.to_le_bytes()].concat()
        }
    };
    let all = comm.all_gather(&message)?;
    mine.map_err(|error| error.rank(comm.rank()))?;
    let (mut first, mut last, mut bytes, mut left_to_format) = (u64::MAX, 0, 0u128, false);
    for (rank, said) in all.iter().enumerate() {
        let (tag, rest) = said.split_first().ok_or_else(|| unreadable(rank))?;
        if *tag == ERROR {
            return Err(Error::new(ErrorKind::Peer, "agree", String::from_utf8_lossy(rest)).rank(rank));
        }
        let (numbers, []) = rest.as_chunks::<8>() else { return Err(unreadable(rank)) };
        let [start, end, selected] = numbers else { return Err(unreadable(rank)) };
        first = first.min(u64::from_le_bytes(*start));
        last = last.max(u64::from_le_bytes(*end));
        bytes += u128::from(u64::from_le_bytes(*selected));
        left_to_format |= *tag == LEFT_TO_FORMAT;
    }
    if left_to_format {
        return Ok(ExchangePlan::LeftToFormat);
    }
    if first >= last {
        return Ok(ExchangePlan::Nothing);
    }
    let crowding = bytes.div_ceil(u128::from(last - first)).clamp(1, u128::from(u64::MAX)) as u64;
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    Ok(ExchangePlan::Exchange(Access { range: first..last, grain, bytes, crowding }))
}

fn unreadable(rank: usize) -> Error {
    Error::new(ErrorKind::Corrupt, "agree", "a rank's message makes no sense")
        .rank(rank)
        .hint("check that all ranks run the same version")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_comm::Threads;

    fn wish(range: Option<Range<u64>>, bytes: u64) -> RankRequest {
        RankRequest { range, bytes, left_to_format: false }
    }

    #[test]
    fn ranges_are_joined_and_empty_ones_do_not_count() {
        Threads::run(3, |comm| {
            let mine = [wish(Some(8..16), 8), wish(None, 0), wish(Some(12..32), 20)].into_iter().nth(comm.rank());
            let agreed = agree_on_access(&*comm, Ok(mine.unwrap()), 4)?;
            let ExchangePlan::Exchange(access) = agreed else { panic!("{agreed:?}") };
            assert_eq!((access.range, access.grain, access.bytes, access.crowding), (8..32, 4, 28, 2));
            assert!(matches!(agree_on_access(&*comm, Ok(wish(None, 0)), 4)?, ExchangePlan::Nothing));
            let odd = RankRequest { left_to_format: comm.rank() == 1, ..wish(None, 0) };
            assert!(matches!(agree_on_access(&*comm, Ok(odd), 4)?, ExchangePlan::LeftToFormat));
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn an_error_is_everyones() {
        let results = Threads::run_each(3, |comm| {
            let bad = Error::invalid("write", "outside");
            agree_on_access(&*comm, if comm.rank() == 1 { Err(bad) } else { Ok(wish(None, 0)) }, 1).map(|_| ())
        });
        let kinds: Vec<_> = results.into_iter().map(|result| result.unwrap_err().kind()).collect();
        assert_eq!(kinds, [ErrorKind::Peer, ErrorKind::InvalidInput, ErrorKind::Peer]);
    }
}
