//! The exchange, round by round: data between ranks and aggregators, and between aggregators and the format below.

use super::array::TwoPhaseArray;
use super::domains::{Access, Lane, lanes};
use super::message::{OffsetList, corrupt, join, split};
use super::packed::{Incoming, Outgoing, in_order};
use super::receiving::Receiving;
use super::rounds::{Cursors, RoundRanges, Rounds};
use super::sending::Sending;
use super::storage_order::StorageOrder;
use super::writer::{Round, Target, Writer};
use hyperslab_core::{Communicator, Datatype, Error, MemoryView, MemoryViewMut, Result, Selection, agree};

/// The messages of one round, by rank. Buffers are reused, since fresh memory costs as much as filling it.
struct Messages {
    parts: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
}

impl Messages {
    fn new(ranks: usize) -> Self {
        Self { parts: vec![Vec::new(); ranks], received: Vec::new() }
    }

    /// Nothing to send.
    fn clear(&mut self) {
        self.parts.iter_mut().for_each(Vec::clear);
    }

    /// Empty messages to these ranks, none to the others.
    fn empty(&mut self, ranks: &[usize]) -> Vec<Vec<u8>> {
        self.clear();
        ranks.iter().map(|&rank| std::mem::take(&mut self.parts[rank])).collect()
    }

    /// Sends and receives; the send buffers are empty afterwards.
    fn exchange(&mut self, comm: &dyn Communicator) -> Result<()> {
        comm.all_to_all(&mut self.parts, &mut self.received)?;
        self.clear();
        Ok(())
    }
}

/// A collective transfer by exchange.
pub(super) struct Exchange<'a> {
    array: &'a TwoPhaseArray,
    comm: &'a dyn Communicator,
    order: &'a StorageOrder,
    dtype: &'a Datatype,
    lanes: Vec<Lane>,
    rounds: Rounds<'a>,
    /// Index of this rank as an aggregator.
    me: Option<usize>,
    /// The first error of this rank, which takes part until all ranks know.
    failure: Option<Error>,
}

impl<'a> Exchange<'a> {
    pub fn new(array: &'a TwoPhaseArray, order: &'a StorageOrder, dtype: &'a Datatype, access: &Access) -> Self {
        let shared = &array.shared;
        let lanes = lanes(&shared.options, access, shared.aggregators.len());
        let me = shared.aggregators.iter().position(|&rank| rank == shared.comm.rank());
        let rounds = Rounds::new(&*shared.comm, lanes.clone(), access.bytes);
        Self { array, comm: &*shared.comm, order, dtype, lanes, rounds, me, failure: None }
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

    fn next_windows(&mut self, walks: Option<&Cursors<'_>>) -> Result<Option<RoundRanges>> {
        let well = self.failure.is_none();
        self.rounds.next(walks, well)
    }

    fn target<'b>(&self, lanes: &'b [Lane]) -> Target<'b>
    where
        'a: 'b,
    {
        Target { array: self.array, order: self.order, lanes, aggregator: self.me }
    }

    /// Whether this rank can write while it exchanges the next round.
    fn can_write_beside(&self) -> bool {
        self.me.is_some()
            && self.rounds.are_several()
            && self.array.inner.allows_background_io()
            && self.comm.many_threads()
    }

    /// Writes every rank's selection. Arguments were checked.
    pub fn write(mut self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        let lanes = self.lanes.clone();
        let outgoing = Outgoing::new(memory, self.dtype, selection.len(), in_order(self.order, lanes.len()));
        let begin = outgoing.and_then(|outgoing| {
            let sending = Sending { order: self.order, lanes: &lanes, me: self.me, outgoing, scratch: Vec::new() };
            Ok((sending, Cursors::new(selection, self.order, &lanes)?))
        });
        let mine = self.note(begin);
        let target = self.target(&lanes);
        std::thread::scope(|scope| {
            let writer = match self.can_write_beside() {
                true => Writer::beside(target, scope),
                false => Writer::at_once(target),
            };
            self.write_rounds(mine, writer)
        })?;
        self.end()
    }

    fn write_rounds<'b>(&mut self, mut mine: Option<(Sending<'b>, Cursors<'_>)>, mut writer: Writer<'b>) -> Result<()> {
        let mut next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
        let mut messages = Messages::new(self.comm.size());
        while let Some(windows) = next {
            let aggregators = &self.array.shared.aggregators;
            let empty = messages.empty(aggregators);
            let drafts = mine.as_mut().map(|(sending, walks)| sending.drafts(walks, &windows, empty));
            let drafts = drafts.and_then(|drafts| self.note(drafts)).unwrap_or_default();
            let mut own = None;
            for (draft, &rank) in drafts.into_iter().zip(aggregators) {
                let (message, stays) = draft.finish();
                own = own.or(stays);
                messages.parts[rank] = message;
            }
            messages.exchange(self.comm)?;
            // Before aggregators write, so that other ranks need not wait for them.
            next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
            // After an error a rank only takes part in the exchange.
            if self.failure.is_none() {
                let received = std::mem::take(&mut messages.received);
                let written = writer.write(Round { windows, received, own });
                messages.received = written.received;
                self.note(written.result);
            }
        }
        let written = writer.finish();
        self.note(written);
        Ok(())
    }

    /// Reads every rank's selection. Arguments were checked. Each message has the reply to the preceding round and the
    /// request for the next.
    pub fn read(mut self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
        let lanes = self.lanes.clone();
        let incoming = Incoming::new(memory, self.dtype, selection.len(), in_order(self.order, lanes.len()));
        let begin = incoming.and_then(|incoming| {
            let receiving = Receiving { order: self.order, lanes: &lanes, incoming, scratch: Vec::new() };
            Ok((receiving, Cursors::new(selection, self.order, &lanes)?))
        });
        let mut mine = self.note(begin);
        let mut complete = true;
        let mut next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
        let mut way = mine.as_ref().map(|(_, walks)| walks.clone());
        let mut messages = Messages::new(self.comm.size());
        self.ask(&mut mine, next.as_ref(), &mut messages)?;
        while let Some(windows) = next {
            let replied = self.read_window(&windows, &mut messages, mine.as_mut(), way.as_ref());
            if self.note(replied).is_none() {
                messages.clear();
            }
            next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
            let next_way = mine.as_ref().map(|(_, walks)| walks.clone());
            self.ask(&mut mine, next.as_ref(), &mut messages)?;
            if let (Some((receiving, _)), Some(mut way)) = (&mut mine, way) {
                let own = self.own_lane();
                let taken = self
                    .answers(&messages.received)
                    .and_then(|mut all| receiving.take(&mut way, &windows, own, &mut all));
                complete &= self.note(taken).unwrap_or(false);
            }
            way = next_way;
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

    /// Sends the replies, and requests this rank's bytes of `windows`.
    fn ask(
        &mut self,
        mine: &mut Option<(Receiving<'_>, Cursors<'_>)>,
        windows: Option<&RoundRanges>,
        messages: &mut Messages,
    ) -> Result<()> {
        let aggregators = &self.array.shared.aggregators;
        let requests = mine
            .as_mut()
            .zip(windows)
            .map(|((receiving, walks), windows)| receiving.requests(walks, windows, aggregators.len()));
        let requests = requests.and_then(|requests| self.note(requests)).unwrap_or_default();
        let mut lists: Vec<OffsetList> = std::iter::repeat_with(OffsetList::default).take(self.comm.size()).collect();
        for (list, &rank) in requests.into_iter().zip(aggregators) {
            lists[rank] = list;
        }
        for (reply, list) in messages.parts.iter_mut().zip(lists) {
            *reply = join(std::mem::take(reply), list);
        }
        messages.exchange(self.comm)
    }

    /// The lane whose only aggregator is this rank: its own bytes go directly to its memory.
    fn own_lane(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.count == 1 && self.me == Some(lane.first))
    }

    /// Prepares this rank's replies as an aggregator.
    fn read_window(
        &self,
        windows: &RoundRanges,
        messages: &mut Messages,
        mine: Option<&mut (Receiving<'_>, Cursors<'_>)>,
        way: Option<&Cursors<'_>>,
    ) -> Result<()> {
        messages.clear();
        let Messages { parts: replies, received } = messages;
        let target = self.target(&self.lanes);
        let window = target.window(windows).filter(|_| self.failure.is_none());
        let Some(window) = window else { return Ok(()) };
        let asked = received.iter().map(|message| Ok(split(message)?.1)).collect::<Result<Vec<_>>>()?;
        self.array.shared.with_buffer(|buffer| {
            let answers = window.read(&asked, buffer, &*self.array.inner)?;
            let mut own = None;
            if let (Some(Cursors::Rows(walks)), Some((receiving, _)), Some(lane)) = (way, mine, self.own_lane()) {
                let mut at = walks[lane].packed();
                window.pieces(&answers, self.comm.rank(), buffer, |piece| {
                    receiving.incoming.put(at, piece);
                    at += piece.len() as u64;
                });
                own = Some(self.comm.rank());
            }
            for (rank, reply) in replies.iter_mut().enumerate().filter(|(rank, _)| own != Some(*rank)) {
                window.reply(&answers, rank, buffer, reply);
            }
            Ok(())
        })
    }

    /// The reply of each aggregator.
    fn answers<'b>(&self, received: &'b [Vec<u8>]) -> Result<Vec<&'b [u8]>> {
        self.array.shared.aggregators.iter().map(|&rank| Ok(split(&received[rank])?.0)).collect()
    }

    /// Agrees on whether any rank failed.
    fn end(&mut self) -> Result<()> {
        agree(self.comm, self.failure.take().map_or(Ok(()), Err))
    }
}
