//! The two phases, round by round: data between ranks and aggregators, and between aggregators and the format below.

use super::array::TwoPhaseArray;
use super::domains::{Access, Lane, lanes};
use super::message::{corrupt, split};
use super::order::Order;
use super::packed::{Incoming, Outgoing, in_order};
use super::receiving::Receiving;
use super::rounds::{Walks, next_windows};
use super::sending::{Own, Sending};
use super::window::Window;
use hyperslab_core::{Communicator, Datatype, Error, MemoryView, MemoryViewMut, Result, Selection, agree};
use std::ops::Range;

/// A collective transfer that all ranks agreed to make by exchanging data.
pub(super) struct Exchange<'a> {
    array: &'a TwoPhaseArray,
    comm: &'a dyn Communicator,
    order: &'a Order,
    dtype: &'a Datatype,
    lanes: Vec<Lane>,
    /// This rank as an aggregator, by number.
    me: Option<usize>,
    /// The first thing that went wrong on this rank. It goes on taking part until all have heard of it.
    failure: Option<Error>,
}

impl<'a> Exchange<'a> {
    pub fn new(array: &'a TwoPhaseArray, order: &'a Order, dtype: &'a Datatype, access: &Access) -> Self {
        let shared = &array.shared;
        let lanes = lanes(&shared.options, access, shared.aggregators.len());
        let me = shared.aggregators.iter().position(|&rank| rank == shared.comm.rank());
        Self { array, comm: &*shared.comm, order, dtype, lanes, me, failure: None }
    }

    /// Keeps the first error.
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(error);
                None
            }
        }
    }

    /// `messages`, by number of the aggregator, as everyone exchanges them.
    fn to_ranks(&self, messages: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
        let mut parts = vec![Vec::new(); self.comm.size()];
        for (message, &rank) in messages.zip(&self.array.shared.aggregators) {
            parts[rank] = message;
        }
        parts
    }

    /// This rank's window, if it is an aggregator that has one.
    fn window<'b>(&'b self, windows: &'b [Option<Range<u64>>]) -> Option<Window<'b>> {
        let aggregator = self.me?;
        let covers = |lane: &Lane| (lane.first..lane.first + lane.count).contains(&aggregator);
        let number = self.lanes.iter().position(covers)?;
        let range = windows[number].as_ref()?;
        Some(Window { order: self.order, lane: &self.lanes[number], range, aggregator })
    }

    /// Every rank writes its selection. Arguments were checked.
    pub fn write(mut self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let lanes = self.lanes.clone();
        let outgoing = Outgoing::new(memory, self.dtype, selection.len(), in_order(self.order, lanes.len()));
        let begin = outgoing.and_then(|outgoing| {
            let sending = Sending { order: self.order, lanes: &lanes, me: self.me, outgoing, scratch: Vec::new() };
            Ok((sending, Walks::new(selection, self.order, &lanes)?))
        });
        let mut mine = self.note(begin);
        let mut next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
        while let Some(windows) = next {
            let number = self.array.shared.aggregators.len();
            let drafts = mine.as_mut().map(|(sending, walks)| sending.drafts(walks, &windows, number));
            let mut own = None;
            let messages = drafts.and_then(|drafts| self.note(drafts)).unwrap_or_default().into_iter().map(|draft| {
                let (message, stays) = draft.finish();
                own = own.take().or(stays);
                message
            });
            let parts = self.to_ranks(messages);
            let received = self.comm.all_to_all(parts)?;
            // Before the aggregators write, so that meanwhile the others prepare the next round.
            next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
            let packed = mine.as_ref().and_then(|(sending, _)| sending.outgoing.all()).unwrap_or_default();
            let written = self.write_window(&windows, &received, own, packed);
            self.note(written);
        }
        self.end()
    }

    fn write_window(
        &self,
        windows: &[Option<Range<u64>>],
        received: &[Vec<u8>],
        own: Option<Own>,
        packed: &[u8],
    ) -> Result<()> {
        let Some(window) = self.window(windows).filter(|_| self.failure.is_none()) else { return Ok(()) };
        let mut sent = received.iter().map(|message| split(message)).collect::<Result<Vec<_>>>()?;
        if let Some((range, list)) = &own {
            sent[self.comm.rank()] = (&packed[range.start as usize..range.end as usize], list);
        }
        self.array.shared.with_buffer(|buffer| window.write(&sent, buffer, &*self.array.inner))
    }

    /// Every rank reads its selection. Arguments were checked.
    pub fn read(mut self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
        let lanes = self.lanes.clone();
        let incoming = Incoming::new(memory, self.dtype, selection.len(), in_order(self.order, lanes.len()));
        let begin = incoming.and_then(|incoming| {
            let receiving = Receiving { order: self.order, lanes: &lanes, incoming, scratch: Vec::new() };
            Ok((receiving, Walks::new(selection, self.order, &lanes)?))
        });
        let mut mine = self.note(begin);
        let mut complete = true;
        while let Some(windows) = self.next_windows(mine.as_ref().map(|(_, walks)| walks))? {
            let number = self.array.shared.aggregators.len();
            let way = mine.as_ref().map(|(_, walks)| walks.clone());
            let requests = mine.as_mut().map(|(receiving, walks)| receiving.requests(walks, &windows, number));
            let requests = requests.and_then(|requests| self.note(requests)).unwrap_or_default();
            let parts = self.to_ranks(requests.into_iter().map(|places| places.finish()));
            let asked = self.comm.all_to_all(parts)?;
            let replies = self.read_window(&windows, &asked);
            let replies = self.note(replies).unwrap_or_else(|| vec![Vec::new(); self.comm.size()]);
            let received = self.comm.all_to_all(replies)?;
            if let (Some((receiving, _)), Some(mut way)) = (&mut mine, way) {
                let mut answers: Vec<&[u8]> =
                    self.array.shared.aggregators.iter().map(|&rank| received[rank].as_slice()).collect();
                let taken = receiving.take(&mut way, &windows, &mut answers);
                complete &= self.note(taken).unwrap_or(false);
            }
        }
        self.end()?;
        if !complete {
            return Err(corrupt());
        }
        if let Some((receiving, _)) = mine {
            receiving.incoming.finish();
        }
        Ok(())
    }

    fn read_window(&self, windows: &[Option<Range<u64>>], asked: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        match self.window(windows).filter(|_| self.failure.is_none()) {
            Some(window) => self.array.shared.with_buffer(|buffer| window.read(asked, buffer, &*self.array.inner)),
            None => Ok(vec![Vec::new(); self.comm.size()]),
        }
    }

    fn next_windows(&self, walks: Option<&Walks<'_>>) -> Result<Option<Vec<Option<Range<u64>>>>> {
        next_windows(self.comm, &self.lanes, walks, self.failure.is_none())
    }

    /// All ranks hear whether anyone failed.
    fn end(&mut self) -> Result<()> {
        agree(self.comm, self.failure.take().map_or(Ok(()), Err))
    }
}
