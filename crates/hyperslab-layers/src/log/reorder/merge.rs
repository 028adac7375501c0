//! Requests that interleave: their runs in one order, the latest on top.

use super::{Entry, Part, Requests};
use hyperslab_core::{Result, Run};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// The runs of a request that are still to come.
struct Cursor<'a> {
    runs: Box<dyn Iterator<Item = Run> + 'a>,
    /// Packed bytes of the runs before.
    at: u64,
}

/// A run under the sweep, ordered by request.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Open {
    number: u32,
    end: u64,
    /// First byte in the array and in the packed elements.
    offset: u64,
    at: u64,
}

/// The next runs of all requests of a group, by their first bytes.
struct Coming<'a> {
    group: &'a [Entry],
    requests: &'a dyn Requests,
    cursors: Vec<Option<Cursor<'a>>>,
    /// Where the next run of a request begins: (offset, place in the group, length). Requests that were not met yet wait with
    /// their first byte and length 0, so that their runs are made only then.
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
}

impl<'a> Coming<'a> {
    fn new(group: &'a [Entry], requests: &'a dyn Requests) -> Self {
        let mut cursors = Vec::new();
        cursors.resize_with(group.len(), || None);
        let next = group.iter().enumerate().map(|(place, entry)| Reverse((entry.first, place, 0))).collect();
        Self { group, requests, cursors, next }
    }

    /// Where the next run begins.
    fn offset(&self) -> Option<u64> {
        self.next.peek().map(|Reverse((offset, _, _))| *offset)
    }

    /// Takes the next run. `None`: there is none, or a request was only met now and this has to be called again.
    fn take(&mut self) -> Result<Option<Open>> {
        let Some(mut top) = self.next.peek_mut() else { return Ok(None) };
        let Reverse((offset, place, len)) = *top;
        let number = self.group[place].number;
        let slot = &mut self.cursors[place];
        if len == 0 {
            *slot = Some(Cursor { runs: self.requests.runs(number)?, at: 0 });
        }
        let Some(cursor) = slot else { return Ok(None) };
        let at = cursor.at;
        cursor.at += len;
        match cursor.runs.next() {
            Some(run) => *top = Reverse((run.offset, place, run.len)),
            None => {
                PeekMut::pop(top);
                *slot = None;
            }
        }
        Ok((len > 0).then_some(Open { number, end: offset + len, offset, at }))
    }
}

/// Calls `each` with the bytes that any of the requests writes, rising, each from the last request that writes it. Parts that
/// begin at `to` or behind it are left out.
pub(super) fn merge(
    group: &[Entry],
    requests: &dyn Requests,
    to: u64,
    each: &mut dyn FnMut(Part) -> Result<()>,
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
                    // Nobody else is there.
                    each(Part { offset: run.offset, len: run.end - run.offset, request: run.number, at: run.at })?;
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
            each(Part { offset: position, len: end - position, request: top.number, at })?;
            position = end;
        }
    }
    Ok(())
}
