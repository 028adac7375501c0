//! The two phases, round by round: data between ranks and aggregators, and between aggregators and the format below.

use super::array::TwoPhaseArray;
use super::domains::{Access, Lane, lanes};
use super::message::{Places, corrupt, join, split};
use super::order::Order;
use super::packed::{Incoming, Outgoing, in_order};
use super::receiving::Receiving;
use super::rounds::{Rounds, Walks, Windows};
use super::sending::{Own, Sending};
use super::window::Window;
use hyperslab_core::{Communicator, Datatype, Error, MemoryView, MemoryViewMut, Result, Selection, agree};

/// A collective transfer that all ranks agreed to make by exchanging data.
pub(super) struct Exchange<'a> {
    array: &'a TwoPhaseArray,
    comm: &'a dyn Communicator,
    order: &'a Order,
    dtype: &'a Datatype,
    lanes: Vec<Lane>,
    rounds: Rounds<'a>,
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

    fn next_windows(&mut self, walks: Option<&Walks<'_>>) -> Result<Option<Windows>> {
        let well = self.failure.is_none();
        self.rounds.next(walks, well)
    }

    /// This rank's window, if it is an aggregator that has one. One that failed does nothing more.
    fn window<'b>(&'b self, windows: &'b Windows) -> Option<Window<'b>> {
        let aggregator = self.me.filter(|_| self.failure.is_none())?;
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
            let aggregators = &self.array.shared.aggregators;
            let drafts = mine.as_mut().map(|(sending, walks)| sending.drafts(walks, &windows, aggregators.len()));
            let drafts = drafts.and_then(|drafts| self.note(drafts)).unwrap_or_default();
            let (mut own, mut parts) = (None, vec![Vec::new(); self.comm.size()]);
            for (draft, &rank) in drafts.into_iter().zip(aggregators) {
                let (message, stays) = draft.finish();
                own = own.or(stays);
                parts[rank] = message;
            }
            let received = self.comm.all_to_all(parts)?;
            // Before the aggregators write, so that meanwhile the others prepare the next round.
            next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
            let packed = mine.as_ref().and_then(|(sending, _)| sending.outgoing.all()).unwrap_or_default();
            let written = self.write_window(&windows, &received, own, packed);
            self.note(written);
        }
        self.end()
    }

    fn write_window(&self, windows: &Windows, received: &[Vec<u8>], own: Option<Own>, packed: &[u8]) -> Result<()> {
        let Some(window) = self.window(windows) else { return Ok(()) };
        let mut sent = received.iter().map(|message| split(message)).collect::<Result<Vec<_>>>()?;
        if let Some((range, list)) = &own {
            sent[self.comm.rank()] = (&packed[range.start as usize..range.end as usize], list);
        }
        self.array.shared.with_buffer(|buffer| window.write(&sent, buffer, &*self.array.inner))
    }

    /// Every rank reads its selection. Arguments were checked. Each message answers what was asked in the round before
    /// and asks for the next.
    pub fn read(mut self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
        let lanes = self.lanes.clone();
        let incoming = Incoming::new(memory, self.dtype, selection.len(), in_order(self.order, lanes.len()));
        let begin = incoming.and_then(|incoming| {
            let receiving = Receiving { order: self.order, lanes: &lanes, incoming, scratch: Vec::new() };
            Ok((receiving, Walks::new(selection, self.order, &lanes)?))
        });
        let mut mine = self.note(begin);
        let mut complete = true;
        let mut next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
        let mut way = mine.as_ref().map(|(_, walks)| walks.clone());
        let mut received = self.ask(&mut mine, next.as_ref(), vec![Vec::new(); self.comm.size()])?;
        while let Some(windows) = next {
            let replies = self.read_window(&windows, &received, mine.as_mut(), way.as_ref());
            let replies = self.note(replies).unwrap_or_else(|| vec![Vec::new(); self.comm.size()]);
            next = self.next_windows(mine.as_ref().map(|(_, walks)| walks))?;
            let next_way = mine.as_ref().map(|(_, walks)| walks.clone());
            received = self.ask(&mut mine, next.as_ref(), replies)?;
            if let (Some((receiving, _)), Some(mut way)) = (&mut mine, way) {
                let own = self.own_lane();
                let taken =
                    self.answers(&received).and_then(|mut all| receiving.take(&mut way, &windows, own, &mut all));
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

    /// Sends `replies`, by rank, and asks the aggregators for this rank's bytes of `windows`. Returns what came.
    fn ask(
        &mut self,
        mine: &mut Option<(Receiving<'_>, Walks<'_>)>,
        windows: Option<&Windows>,
        mut replies: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>> {
        let aggregators = &self.array.shared.aggregators;
        let requests = mine
            .as_mut()
            .zip(windows)
            .map(|((receiving, walks), windows)| receiving.requests(walks, windows, aggregators.len()));
        let requests = requests.and_then(|requests| self.note(requests)).unwrap_or_default();
        let mut lists: Vec<Places> = std::iter::repeat_with(Places::default).take(self.comm.size()).collect();
        for (list, &rank) in requests.into_iter().zip(aggregators) {
            lists[rank] = list;
        }
        for (reply, list) in replies.iter_mut().zip(lists) {
            *reply = join(std::mem::take(reply), list);
        }
        self.comm.all_to_all(replies)
    }

    /// The lane whose bytes come from this rank alone. Those of its own go straight to its memory.
    fn own_lane(&self) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.count == 1 && self.me == Some(lane.first))
    }

    /// The answers of this rank to what was asked of it, by rank.
    fn read_window(
        &self,
        windows: &Windows,
        received: &[Vec<u8>],
        mine: Option<&mut (Receiving<'_>, Walks<'_>)>,
        way: Option<&Walks<'_>>,
    ) -> Result<Vec<Vec<u8>>> {
        let mut replies = vec![Vec::new(); self.comm.size()];
        let Some(window) = self.window(windows) else { return Ok(replies) };
        let asked = received.iter().map(|message| Ok(split(message)?.1)).collect::<Result<Vec<_>>>()?;
        self.array.shared.with_buffer(|buffer| {
            let answers = window.read(&asked, buffer, &*self.array.inner)?;
            let mut own = None;
            if let (Some(Walks::Rows(walks)), Some((receiving, _)), Some(lane)) = (way, mine, self.own_lane()) {
                let mut at = walks[lane].packed();
                window.pieces(&answers, self.comm.rank(), buffer, |piece| {
                    receiving.incoming.put(at, piece);
                    at += piece.len() as u64;
                });
                own = Some(self.comm.rank());
            }
            for (rank, reply) in replies.iter_mut().enumerate().filter(|(rank, _)| own != Some(*rank)) {
                *reply = window.reply(&answers, rank, buffer);
            }
            Ok(replies)
        })
    }

    /// What each aggregator answered.
    fn answers<'b>(&self, received: &'b [Vec<u8>]) -> Result<Vec<&'b [u8]>> {
        self.array.shared.aggregators.iter().map(|&rank| Ok(split(&received[rank])?.0)).collect()
    }

    /// All ranks hear whether anyone failed.
    fn end(&mut self) -> Result<()> {
        agree(self.comm, self.failure.take().map_or(Ok(()), Err))
    }
}
