//! The union of several ranks' runs, as disjoint, non-adjacent runs in increasing order.

use super::message::Checked;
use hyperslab_core::Run;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Lazy merge of runs, in memory proportional to the number of ranks.
pub(super) struct Coverage<I> {
    sources: Vec<I>,
    /// Min-heap of the next run of each source: begin, end, source.
    next: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Maximum gap that is bridged.
    bridge: u64,
}

/// The union of the lists, bridging gaps of up to `bridge` bytes.
pub(super) fn coverage<'a>(lists: &[Checked<'a>], bridge: u64) -> Coverage<impl Iterator<Item = Run> + use<'a>> {
    Coverage::new(lists.iter().map(Checked::runs).collect(), bridge)
}

impl<I: Iterator<Item = Run>> Coverage<I> {
    fn new(mut sources: Vec<I>, bridge: u64) -> Self {
        let first = |(i, source): (usize, &mut I)| source.next().map(|run| Reverse((run.offset, run.end(), i)));
        let next = sources.iter_mut().enumerate().filter_map(first).collect();
        Self { sources, next, bridge }
    }
}

impl<I: Iterator<Item = Run>> Iterator for Coverage<I> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut merged: Option<(u64, u64)> = None;
        while let Some(mut top) = self.next.peek_mut() {
            let Reverse((begin, end, source)) = *top;
            match &mut merged {
                None => merged = Some((begin, end)),
                Some((_, reached)) if begin <= reached.saturating_add(self.bridge) => *reached = end.max(*reached),
                Some(_) => break,
            }
            match self.sources[source].next() {
                Some(run) => *top = Reverse((run.offset, run.end(), source)),
                None => {
                    std::collections::binary_heap::PeekMut::pop(top);
                }
            }
        }
        merged.map(|(begin, end)| Run { offset: begin, len: end - begin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_runs_are_the_union(
            lists in prop::collection::vec(prop::collection::vec((0u64..9, 1u64..9), 0..9), 0..5),
            bridge in 0u64..4,
        ) {
            let mut covered = [false; 200];
            let sources: Vec<Vec<Run>> = lists
                .into_iter()
                .map(|list| {
                    let mut at = 0;
                    list.into_iter()
                        .map(|(gap, len)| {
                            let run = Run { offset: at + gap, len };
                            at = run.end();
                            covered[run.offset as usize..run.end() as usize].fill(true);
                            run
                        })
                        .collect()
                })
                .collect();
            let merged: Vec<Run> = Coverage::new(sources.into_iter().map(Vec::into_iter).collect(), bridge).collect();
            for pair in merged.windows(2) {
                prop_assert!(pair[1].offset > pair[0].end() + bridge);
            }
            let last = covered.iter().rposition(|c| *c).map_or(0, |last| last + 1);
            for (at, covered) in covered.iter().enumerate() {
                let inside = merged.iter().any(|run| (run.offset..run.end()).contains(&(at as u64)));
                prop_assert!(inside || !covered, "{} is lost", at);
                prop_assert!(!inside || *covered || bridge > 0, "{} is invented", at);
                prop_assert!(!inside || at < last);
            }
        }
    }
}
