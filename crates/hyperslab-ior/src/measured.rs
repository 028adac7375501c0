//! The figures of a phase, from the calls of all ranks.

use crate::data::Wrong;
use crate::play::{Played, Times};
use crate::stonewall::Stonewall;
use hyperslab_core::{Communicator, Error, ErrorKind, Result};
use hyperslab_run::Busy;

/// Whether a phase writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It does.
    Write,
    /// It reads.
    Read,
}

impl Access {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Read => "read",
        }
    }
}

/// What one rank took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RankTimes {
    /// In all calls, in seconds.
    pub total: f64,
    /// In transfers and flushes.
    pub transfers: f64,
    /// Transfers.
    pub calls: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A phase of a repetition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Seconds in which some rank was in a call.
    pub total: f64,
    /// Seconds in which some rank opened.
    pub open: f64,
    /// Seconds in which some rank transferred or flushed.
    pub transfers: f64,
    /// Seconds in which some rank closed.
    pub close: f64,
    /// Bytes of all ranks.
    pub bytes: u64,
    /// Transfers of all ranks.
    pub calls: u64,
    /// Mean seconds of a transfer of the first rank.
    pub latency: f64,
    /// Every rank.
    pub ranks: Vec<RankTimes>,
    /// What was wrong on all ranks together; the first place of the lowest rank.
    pub wrong: Wrong,
    /// Where ranks stood when the time was over.
    pub stonewall: Option<Stonewall>,
    /// What the format said, once each.
    pub remarks: Vec<String>,
}

impl Measured {
    /// Bytes per second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.total
    }

    /// Transfers per second, while there were some.
    pub fn iops(&self, transfer: u64) -> f64 {
        (self.bytes / transfer) as f64 / self.transfers
    }
}

/// Brings the ranks' figures together; every rank gets them. Collective.
pub fn gather(comm: &dyn Communicator, mine: Played) -> Result<Measured> {
    let all = comm.all_gather(&encode(&mine))?;
    let mut measured = Measured { stonewall: mine.stonewall, ..Measured::default() };
    let mut all_times = Vec::with_capacity(all.len());
    for (rank, bytes) in all.iter().enumerate() {
        let said = decode(bytes)
            .ok_or_else(|| Error::new(ErrorKind::Corrupt, "gather figures", "a rank's figures are incomplete"))?;
        let Times { open, transfers, close } = &said.times;
        let times = RankTimes {
            total: Busy::together([open, transfers, close]),
            transfers: Busy::together([transfers]),
            calls: said.calls,
            bytes: said.bytes,
        };
        if rank == 0 {
            measured.latency = times.transfers / said.calls.max(1) as f64;
        }
        measured.ranks.push(times);
        measured.bytes += said.bytes;
        measured.calls += said.calls;
        measured.wrong.bytes += said.wrong.bytes;
        measured.wrong.transfers += said.wrong.transfers;
        measured.wrong.compared += said.wrong.compared;
        if measured.wrong.first.is_none() {
            measured.wrong.first = said.wrong.first.map(|place| format!("rank {rank}: {place}"));
        }
        for remark in said.remarks {
            if !measured.remarks.contains(&remark) {
                measured.remarks.push(remark);
            }
        }
        all_times.push(said.times);
    }
    measured.open = Busy::together(all_times.iter().map(|times| &times.open));
    measured.transfers = Busy::together(all_times.iter().map(|times| &times.transfers));
    measured.close = Busy::together(all_times.iter().map(|times| &times.close));
    measured.total = Busy::together(all_times.iter().flat_map(|times| [&times.open, &times.transfers, &times.close]));
    Ok(measured)
}

/// Ranks of one program tell each other: numbers, then lines of text.
fn encode(played: &Played) -> Vec<u8> {
    let wrong = &played.wrong;
    let counts = [played.calls, played.bytes, wrong.bytes, wrong.transfers, wrong.compared];
    let mut bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
    [&played.times.open, &played.times.transfers, &played.times.close].iter().for_each(|busy| busy.encode(&mut bytes));
    let lines = std::iter::once(wrong.first.as_deref().unwrap_or("")).chain(played.remarks.iter().map(String::as_str));
    let text: Vec<String> = lines.map(|line| line.replace('\n', " ")).collect();
    bytes.extend(text.join("\n").into_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<Played> {
    let (numbers, text) = bytes.split_at_checked(5 * 8)?;
    let words: Vec<u64> = numbers.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let mut text = text;
    let mut next = || Busy::decode(&mut text);
    let times = Times { open: next()?, transfers: next()?, close: next()? };
    let mut lines = std::str::from_utf8(text).ok()?.split('\n').map(str::to_owned);
    let first = lines.next().filter(|line| !line.is_empty());
    Some(Played {
        times,
        calls: words[0],
        bytes: words[1],
        wrong: Wrong { bytes: words[2], transfers: words[3], compared: words[4], first },
        stonewall: None,
        remarks: lines.filter(|line| !line.is_empty()).collect(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_run::on_threads;

    #[test]
    fn figures_span_the_ranks() {
        let measured = on_threads(2, |comm| {
            let rank = comm.rank() as f64;
            let mut times = Times::default();
            times.open.add(rank, 2.0 + rank);
            times.transfers.add(3.0, 5.0 + 2.0 * rank);
            times.close.add(8.0, 9.0 + rank);
            let wrong =
                Wrong { bytes: 3, transfers: 1, compared: 10, first: (comm.rank() == 1).then(|| "here".into()) };
            let remarks = vec!["the same".into()];
            gather(&*comm, Played { times, calls: 4, bytes: 4096, wrong, stonewall: None, remarks })
        })
        .unwrap();
        assert_eq!(measured[0], measured[1]);
        let one = &measured[0];
        assert_eq!((one.open, one.transfers, one.close, one.total), (3.0, 4.0, 2.0, 9.0));
        assert_eq!((one.ranks[0].total, one.ranks[1].total), (5.0, 8.0));
        assert_eq!((one.bytes, one.calls, one.latency, one.wrong.bytes), (8192, 8, 0.5, 6));
        assert_eq!((one.rate(), one.iops(1024)), (8192.0 / 9.0, 2.0));
        assert_eq!((one.wrong.first.as_deref(), one.remarks.len()), (Some("rank 1: here"), 1));
    }
}
