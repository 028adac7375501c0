//! K-way merge of the runs of interleaving requests; the latest request wins.

use super::{Entry, ExtentPart, Requests};
use hyperslab_core::{Result, Run};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The remaining runs of a request.
struct Cursor<'a> {
    runs: Box<dyn Iterator<Item = Run> + 'a>,
    /// Packed length of earlier runs.
    at: u64,
}

/// A run at the sweep position, ordered by request.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    number: u32,
    end: u64,
    /// First byte in the array and in the packed elements.
    offset: u64,
    at: u64,
}

/// The next run of a request, ordered by its first byte.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    offset: u64,
    /// Index of the request in the group.
    place: u32,
    /// 0 until the request is met, when its runs are created.
    len: u64,
}

/// The next runs of all requests of a group, by first byte.
struct Coming<'a> {
    group: &'a [Entry],
    requests: &'a dyn Requests,
    cursors: Vec<Option<Cursor<'a>>>,
    /// The next run.
    first: Option<Next>,
    /// Requests not yet met, in reverse order.
    waiting: Vec<Next>,
    /// Runs that arrived in order: nearly all if requests alternate regularly.
    queue: VecDeque<Next>,
    /// All other runs.
    heap: BinaryHeap<Reverse<Next>>,
}

impl<'a> Coming<'a> {
    fn new(group: &'a [Entry], requests: &'a dyn Requests) -> Self {
        let mut cursors = Vec::new();
        cursors.resize_with(group.len(), || None);
        let mut waiting: Vec<Next> =
            (0..).zip(group).map(|(place, entry)| Next { offset: entry.first, place, len: 0 }).collect();
        waiting.sort_unstable_by_key(|next| Reverse(*next));
        let first = waiting.pop();
        Self { group, requests, cursors, first, waiting, queue: VecDeque::new(), heap: BinaryHeap::new() }
    }

    /// First byte of the next run.
    fn offset(&self) -> Option<u64> {
        self.first.map(|first| first.offset)
    }

    /// Takes the next run. `None` if there is none, or if a request was just met: then call again.
    fn take(&mut self) -> Result<Option<Open>> {
        let Some(Next { offset, place, len }) = self.first else { return Ok(None) };
        let number = self.group[place as usize].number;
        let slot = &mut self.cursors[place as usize];
        if len == 0 {
            *slot = Some(Cursor { runs: self.requests.runs(number)?, at: 0 });
        }
        let Some(cursor) = slot else { return Ok(None) };
        let at = cursor.at;
        cursor.at += len;
        match cursor.runs.next() {
            Some(run) => self.add(Next { offset: run.offset, place, len: run.len }),
            None => *slot = None,
        }
        self.first = self.remove_first();
        Ok((len > 0).then_some(Open { number, end: offset + len, offset, at }))
    }

    fn add(&mut self, next: Next) {
        // A distant run would keep all others out of the queue.
        if let Some(far) = self.queue.pop_back_if(|last| *last > next) {
            self.heap.push(Reverse(far));
        }
        match self.queue.back() {
            Some(last) if *last > next => self.heap.push(Reverse(next)),
            _ => self.queue.push_back(next),
        }
    }

    fn remove_first(&mut self) -> Option<Next> {
        let (queued, heaped) = (self.queue.front(), self.heap.peek().map(|Reverse(next)| next));
        let known = [queued, heaped].into_iter().flatten().min().copied();
        if let Some(waiting) = self.waiting.pop_if(|waiting| known.is_none_or(|known| *waiting < known)) {
            return Some(waiting);
        }
        if known.as_ref() == queued { self.queue.pop_front() } else { self.heap.pop().map(|Reverse(next)| next) }
    }
}

/// Calls `each` with the bytes that any request writes, in increasing order, each from the last request that writes it.
/// Omits parts that begin at or after `to`.
pub(super) fn merge(
    group: &[Entry],
    requests: &dyn Requests,
    to: u64,
    each: &mut dyn FnMut(ExtentPart) -> Result<()>,
) -> Result<()> {
    let mut coming = Coming::new(group, requests);
    let mut open: BinaryHeap<Open> = BinaryHeap::new();
    let mut position = 0;
    while let Some(next) = coming.offset().or((!open.is_empty()).then_some(u64::MAX)) {
        let Some(top) = open.peek() else {
            if next >= to {
                break;
            }
            if let Some(run) = coming.take()? {
                if coming.offset().is_none_or(|next| run.end <= next) {
                    // A single active run.
                    each(ExtentPart {
                        offset: run.offset,
                        len: run.end - run.offset,
                        request: run.number,
                        at: run.at,
                    })?;
                } else {
                    position = run.offset;
                    open.push(run);
                }
            }
            continue;
        };
        if position >= to {
            break;
        }
        if next <= position {
            open.extend(coming.take()?);
        } else if top.end <= position {
            open.pop();
        } else {
            let end = top.end.min(next);
            let at = top.at + (position - top.offset);
            each(ExtentPart { offset: position, len: end - position, request: top.number, at })?;
            position = end;
        }
    }
    Ok(())
}
