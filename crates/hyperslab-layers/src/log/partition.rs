//! Partition of an array's bytes among writing ranks.

use std::ops::Range;

/// Number of histogram bins.
const PARTS: u64 = 1024;

/// Divides the byte range into `number` partitions with about equal amounts to write, at multiples of `unit`. Writes are
/// given by first byte, last byte and length.
pub(super) fn shares(
    writes: impl Iterator<Item = (u64, u64, u64)> + Clone,
    unit: u64,
    number: usize,
) -> impl Iterator<Item = Range<u64>> {
    let wider = |(first, last): (u64, u64), write: (u64, u64, u64)| (first.min(write.0), last.max(write.1));
    let (first, last) = writes.clone().fold((u64::MAX, 0), wider);
    let part = last.saturating_sub(first).div_ceil(PARTS).max(1).next_multiple_of(unit.max(1));
    // Boundaries at multiples of the bin length, often whole pages.
    let origin = first / part * part;
    // Difference of each bin to the preceding one; writes count as uniform over their range.
    let mut changes = vec![0.0; PARTS as usize + 3];
    for (first, last, bytes) in writes {
        let (from, to) = ((first - origin) / part, (last - origin) / part);
        let bytes = bytes as f64 / (to - from + 1) as f64;
        changes[from as usize] += bytes;
        changes[to as usize + 1] -= bytes;
    }
    let (mut bytes, mut before, mut sums) = (0.0, 0.0, Vec::with_capacity(changes.len()));
    for change in changes {
        sums.push(before);
        bytes += change;
        before += bytes;
    }
    let boundary = move |share: usize| {
        let wanted = before * share as f64 / number as f64;
        origin + sums.partition_point(|sum| *sum < wanted) as u64 * part
    };
    let last_share = number.saturating_sub(1);
    (0..number).map(move |share| {
        let from = if share == 0 { 0 } else { boundary(share) };
        let to = if share == last_share { u64::MAX } else { boundary(share + 1) };
        from..to
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(writes: &[(u64, u64, u64)], unit: u64, number: usize) -> Vec<Range<u64>> {
        let found: Vec<_> = shares(writes.iter().copied(), unit, number).collect();
        assert!(found.len() == number && found[0].start == 0 && found[number - 1].end == u64::MAX);
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start && pair[1].start.is_multiple_of(unit)));
        found
    }

    #[test]
    fn shares_have_as_much_to_write() {
        let pieces: Vec<_> = (0..1000).map(|n| (n * 4096, n * 4096 + 4095, 4096)).collect();
        let halves = cut(&pieces, 1, 2);
        assert!((450 * 4096..550 * 4096).contains(&halves[0].end), "{halves:?}");
        // Everything in the last tenth.
        let skewed: Vec<_> =
            (0..1000).map(|n| (90_000 + n * 10, 90_000 + n * 10 + 9, 10)).chain([(0, 9, 10)]).collect();
        let skewed = cut(&skewed, 10, 2);
        assert!((94_000..96_000).contains(&skewed[0].end), "{skewed:?}");
        // Columns, all from the first row to the last.
        let columns: Vec<_> = (0..8).map(|n| (n * 100, 99_200 + n * 100 + 99, 100_000 / 8)).collect();
        let columns = cut(&columns, 800, 4);
        assert!(columns[..3].iter().all(|share| (20_000..30_000).contains(&(share.end - share.start))), "{columns:?}");
    }

    #[test]
    fn hostile_ranges_do_not_overflow() {
        let end = i64::MAX as u64;
        for writes in [vec![], vec![(0, 0, 1)], vec![(end, end, 1)], vec![(0, end, u64::MAX), (5, 2047, 9)]] {
            for unit in [1, 7, 1 << 40] {
                cut(&writes, unit, 3);
            }
        }
    }
}
