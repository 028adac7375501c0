//! Pipelined writes of an aggregator: one round is written while the next is exchanged.

use super::aggregator_round::AggregatorRound;
use super::array::TwoPhaseArray;
use super::domains::Lane;
use super::message::split;
use super::rounds::RoundRanges;
use super::sending::Own;
use super::storage_order::StorageOrder;
use hyperslab_core::Result;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope};

/// The target of an aggregator's writes.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub array: &'a TwoPhaseArray,
    pub order: &'a StorageOrder,
    pub lanes: &'a [Lane],
    /// Index of the rank as an aggregator.
    pub aggregator: Option<usize>,
}

/// The messages that a rank received in one round.
pub(super) struct Round<'a> {
    pub windows: RoundRanges,
    /// By rank.
    pub received: Vec<Vec<u8>>,
    pub own: Option<Own<'a>>,
}

/// A written round.
pub(super) struct Written {
    /// Buffers for reuse.
    pub received: Vec<Vec<u8>>,
    pub result: Result<()>,
}

impl<'a> Target<'a> {
    /// This rank's window, if it is an aggregator with one.
    pub fn window<'b>(&'b self, windows: &'b RoundRanges) -> Option<AggregatorRound<'b>> {
        let aggregator = self.aggregator?;
        let covers = |lane: &Lane| (lane.first..lane.first + lane.count).contains(&aggregator);
        let number = self.lanes.iter().position(covers)?;
        let range = windows[number].as_ref()?;
        Some(AggregatorRound { order: self.order, lane: &self.lanes[number], range, aggregator })
    }

    fn write(&self, round: Round<'_>) -> Written {
        let Round { windows, received, own } = round;
        let write = || {
            let Some(window) = self.window(&windows) else { return Ok(()) };
            let mut sent = received.iter().map(|message| split(message)).collect::<Result<Vec<_>>>()?;
            if let Some((bytes, list)) = &own {
                sent[self.array.shared.comm.rank()] = (bytes, list);
            }
            self.array.shared.with_buffer(|buffer| window.write(&sent, buffer, &*self.array.inner))
        };
        let result = write();
        Written { received, result }
    }
}

/// Writes rounds: on a thread, one round behind, or synchronously.
pub(super) struct Writer<'a> {
    target: Target<'a>,
    thread: Option<Channels<'a>>,
}

struct Channels<'a> {
    rounds: SyncSender<Round<'a>>,
    written: Receiver<std::thread::Result<Written>>,
    under_way: bool,
}

impl<'a> Writer<'a> {
    pub fn at_once(target: Target<'a>) -> Self {
        Self { target, thread: None }
    }

    /// Starts the thread, if requested and possible.
    pub fn beside<'scope>(target: Target<'a>, scope: &'scope Scope<'scope, '_>) -> Self
    where
        'a: 'scope,
    {
        let (rounds, to_write) = sync_channel::<Round<'a>>(1);
        let (done, written) = sync_channel(1);
        let work = move || {
            for round in to_write {
                // A panic is propagated to the rank's thread.
                if done.send(catch_unwind(AssertUnwindSafe(|| target.write(round)))).is_err() {
                    return;
                }
            }
        };
        let spawned = Builder::new().name("hyperslab-writer".into()).spawn_scoped(scope, work);
        Self { target, thread: spawned.ok().map(|_| Channels { rounds, written, under_way: false }) }
    }

    /// Writes a round, or queues it and returns the preceding one. After an error nothing is written.
    pub fn write(&mut self, round: Round<'a>) -> Written {
        let Some(thread) = &mut self.thread else { return self.target.write(round) };
        let before = thread.wait();
        if before.result.is_ok() {
            // The thread lives as long as this end of its channel.
            thread.under_way = thread.rounds.send(round).is_ok();
        }
        before
    }

    /// Waits for the last round.
    pub fn finish(&mut self) -> Result<()> {
        self.thread.as_mut().map_or(Ok(()), |thread| thread.wait().result)
    }
}

impl Channels<'_> {
    /// Waits for the running round, if any.
    fn wait(&mut self) -> Written {
        let nothing = || Written { received: Vec::new(), result: Ok(()) };
        if !std::mem::take(&mut self.under_way) {
            return nothing();
        }
        match self.written.recv() {
            Ok(Ok(written)) => written,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => nothing(),
        }
    }
}
