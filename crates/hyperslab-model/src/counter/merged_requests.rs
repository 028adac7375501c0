//! Requests that layers put together before they reach the format.

use hyperslab_core::{Dims, Result, Selection};

/// The most pieces that one doer's part is cut into; the others are taken to be like them.
const MOST_PIECES: u64 = 4096;

/// Requests of one array that are waiting, with the ranks that made them.
#[derive(Debug, Default)]
pub(super) struct MergedRequests {
    parts: Vec<(usize, Selection)>,
    pub(super) came: usize,
}

/// Who does what was put together, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doers {
    /// How many ranks do it.
    pub(super) number: usize,
    /// Ranks that are walked, of all.
    pub(super) walked: usize,
    pub(super) ranks: usize,
    /// Bytes of an element, and those that are moved at a time.
    pub(super) element: u64,
    pub(super) buffer: u64,
}

impl MergedRequests {
    pub(super) fn add(&mut self, place: usize, selection: &Selection) {
        self.came += 1;
        if !selection.is_empty() {
            self.parts.push((place, selection.clone()));
        }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The requests that reach the format, each with the place of the rank that makes it: pieces of the box around all of
    /// them if together they fill it, otherwise the requests themselves, shared out.
    pub(super) fn requests(self, doers: &Doers) -> Result<Vec<(usize, Selection)>> {
        let walked = doers.walked.max(1);
        let number = doers.number.clamp(1, walked);
        let place_of = |doer: usize| doer * walked / number;
        match self.filled_box(doers) {
            Some((low, high)) => pieces(&low, &high, number, doers, &place_of),
            None => {
                let shared = self.parts.into_iter().enumerate().map(|(i, (_, part))| (place_of(i % number), part));
                Ok(shared.collect())
            }
        }
    }

    fn filled_box(&self, doers: &Doers) -> Option<(Dims, Dims)> {
        let mut bounds = self.parts.iter().filter_map(|(_, part)| part.bounds());
        let (mut low, mut high) = bounds.next()?;
        for (from, to) in bounds {
            low.iter_mut().zip(&from).for_each(|(mine, theirs)| *mine = (*mine).min(*theirs));
            high.iter_mut().zip(&to).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
        }
        let volume = low.iter().zip(&high).fold(1u128, |n, (low, high)| n.saturating_mul(u128::from(high - low)));
        let elements: u128 = self.parts.iter().map(|(_, part)| u128::from(part.len())).sum();
        let of_all = elements * doers.ranks as u128 / doers.walked.max(1) as u128;
        // A rank that is not walked may have a little less.
        (of_all >= volume - volume / 16).then_some((low, high))
    }
}

/// The box cut along its slowest dimension that has an extent, a part for each doer and each part into pieces.
fn pieces(
    low: &Dims,
    high: &Dims,
    number: usize,
    doers: &Doers,
    place_of: &dyn Fn(usize) -> usize,
) -> Result<Vec<(usize, Selection)>> {
    let along = low.iter().zip(high).position(|(low, high)| high - low > 1).unwrap_or(0);
    let Some(&first) = low.get(along) else { return Ok(vec![(0, Selection::all(&[])?)]) };
    let extent = high[along] - first;
    let counts: Dims = low.iter().zip(high).map(|(low, high)| high - low).collect();
    let slice = counts[along + 1..].iter().fold(doers.element, |n, extent| n.saturating_mul(*extent));
    let mut found = Vec::new();
    for doer in 0..number {
        let share = |n: usize| first + (u128::from(extent) * n as u128 / number as u128) as u64;
        let (mut at, end) = (share(doer), share(doer + 1));
        let step = (doers.buffer / slice.max(1)).max((end - at).div_ceil(MOST_PIECES)).max(1);
        while at < end {
            let (mut start, mut count) = (low.clone(), counts.clone());
            (start[along], count[along]) = (at, step.min(end - at));
            at += count[along];
            found.push((place_of(doer), Selection::dense(&start, &count)?));
        }
    }
    Ok(found)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn doers(number: usize, buffer: u64) -> Doers {
        Doers { number, walked: 4, ranks: 4, element: 4, buffer }
    }

    #[test]
    fn interleaved_requests_become_few_large_ones() {
        let mut joint = MergedRequests::default();
        for rank in 0..4 {
            joint.add(rank, &Selection::strided(&[rank as u64], &[4], &[256], &[1]).unwrap());
        }
        let requests = joint.requests(&doers(2, 1 << 20)).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1], (2, Selection::dense(&[512], &[512]).unwrap()));
    }

    #[test]
    fn pieces_are_of_the_buffers_size_and_cover_all() {
        let mut joint = MergedRequests::default();
        joint.add(0, &Selection::dense(&[10, 0], &[100, 8]).unwrap());
        joint.add(1, &Selection::empty(2));
        let requests = joint.requests(&Doers { walked: 1, ranks: 1, ..doers(1, 320) }).unwrap();
        assert_eq!(requests.len(), 10);
        assert_eq!(requests.iter().map(|(_, piece)| piece.len()).sum::<u64>(), 800);
    }

    #[test]
    fn requests_with_gaps_stay_as_they_are() {
        let mut joint = MergedRequests::default();
        joint.add(0, &Selection::dense(&[0], &[1]).unwrap());
        joint.add(3, &Selection::dense(&[1000], &[1]).unwrap());
        assert_eq!(joint.requests(&doers(4, 1 << 20)).unwrap().len(), 2);
        assert!(MergedRequests::default().requests(&doers(4, 1)).unwrap().is_empty());
    }
}
