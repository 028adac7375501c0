//! What one rank spent its time on. Bounded memory however many steps there are.

use crate::busy::Busy;
use crate::clock::Clock;
use crate::latency::{CallTimes, Latency, Operation};
use hyperslab_core::{BackgroundStats, Communicator, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// One rank's times in seconds and bytes, of one repetition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RankMeasurement {
    /// The rank.
    pub rank: usize,
    /// From the first step to the end of the last.
    pub wall: f64,
    /// Wall time without emulated compute, data preparation and checking, and without waiting for other ranks' such work.
    pub observed: f64,
    /// Emulated compute.
    pub compute: f64,
    /// Making the data to write and clearing buffers to read into.
    pub prepare: f64,
    /// Comparing what was read.
    pub check: f64,
    /// The transfer calls, and closing arrays that code what was written only then.
    pub raw: f64,
    /// How long at least one of all ranks was in such a call; 0 if that was not measured.
    #[serde(default)]
    pub transferring: f64,
    /// Creating and opening groups and arrays, attributes, shapes, closing arrays.
    pub metadata: f64,
    /// Opening or creating containers.
    pub open_file: f64,
    /// Flushes.
    pub flush: f64,
    /// Closing containers.
    pub close_file: f64,
    /// Waiting in barriers, and for other ranks before collective steps that are metadata.
    pub barrier: f64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Steps taken.
    pub steps: u64,
    /// Seconds in calls of the stack, barriers aside: how long the program waited for I/O.
    #[serde(default)]
    pub blocked: f64,
    /// I/O behind the program's back, if a layer did some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<BackgroundMeasurement>,
    /// Every kind of call that happened.
    pub operations: BTreeMap<String, Latency>,
}

/// I/O of one rank that went on while the program did something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct BackgroundMeasurement {
    /// Seconds in which the format below was at work in the background.
    pub busy: f64,
    /// Seconds that the program waited for it.
    pub waited: f64,
    /// Bytes written or read in the background.
    pub bytes: u64,
    /// The most bytes of memory held for it at a time.
    pub memory: u64,
    /// The part of `busy` that the program did not wait for, from 0 to 1.
    pub hidden: f64,
}

impl BackgroundMeasurement {
    fn of(background: &BackgroundStats) -> Option<Self> {
        let hidden = background.hidden()?;
        let (busy, waited) = (background.busy.as_secs_f64(), background.waited.as_secs_f64());
        Some(Self { busy, waited, bytes: background.bytes, memory: background.memory, hidden })
    }
}

/// Collects one rank's times while it runs.
pub(crate) struct Recorder {
    rank: usize,
    clock: Arc<Clock>,
    calls: CallTimes,
    pub compute: Duration,
    pub prepare: Duration,
    pub check: Duration,
    pub bytes_written: u64,
    pub bytes_read: u64,
    pub steps: u64,
    pub background: BackgroundStats,
    waiting: Duration,
    coding: Duration,
    transfers: Busy,
    samples: Option<BufWriter<File>>,
}

impl RankMeasurement {
    /// Time inside calls that move or describe data: what this rank itself had to do, without waiting in barriers.
    pub fn own(&self) -> f64 {
        self.raw + self.metadata + self.open_file + self.flush + self.close_file
    }
}

impl Recorder {
    /// Measures by `clock`. With `samples`, every call is also written to that file as CSV.
    pub fn start(rank: usize, clock: Arc<Clock>, samples: Option<&Path>) -> Result<Self> {
        let samples = samples.map(open_samples).transpose()?;
        Ok(Self {
            rank,
            clock,
            calls: CallTimes::default(),
            compute: Duration::ZERO,
            prepare: Duration::ZERO,
            check: Duration::ZERO,
            bytes_written: 0,
            bytes_read: 0,
            steps: 0,
            background: BackgroundStats::default(),
            waiting: Duration::ZERO,
            coding: Duration::ZERO,
            transfers: Busy::default(),
            samples,
        })
    }

    /// Times one call. A failed call is not counted.
    pub fn time<T>(&mut self, operation: Operation, bytes: u64, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.time_sized(operation, call, |_| bytes)
    }

    /// The same for a call whose result tells how many bytes were transferred.
    pub fn time_sized<T>(
        &mut self,
        operation: Operation,
        call: impl FnOnce() -> Result<T>,
        bytes: impl FnOnce(&T) -> u64,
    ) -> Result<T> {
        let from = self.clock.counted();
        let value = call()?;
        let took = self.clock.counted().saturating_sub(from);
        let clock = self.clock.clone();
        let (noted, keeping) = clock.exclude(|| self.note(operation, bytes(&value), from, took));
        self.prepare += keeping;
        noted.map(|()| value)
    }

    /// Times the closing of an array. One that `codes` what was written to it, which formats may do only now, transfers.
    pub fn time_close(&mut self, codes: bool, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let from = self.clock.counted();
        call()?;
        let took = self.clock.counted().saturating_sub(from);
        if codes {
            self.coding += took;
            self.transferred(took);
        }
        let clock = self.clock.clone();
        let (noted, keeping) = clock.exclude(|| self.note(Operation::CloseArray, 0, from, took));
        self.prepare += keeping;
        noted
    }

    /// Waits for other ranks; that is no part of the call before which it is done.
    pub fn wait(&mut self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let from = self.clock.counted();
        call()?;
        self.waiting += self.clock.counted().saturating_sub(from);
        Ok(())
    }

    /// A transfer has ended. What did not count of it was waiting for unmeasured work of other ranks, before they all began.
    fn transferred(&mut self, took: Duration) {
        let end = self.clock.wall().as_secs_f64();
        self.transfers.add(end - took.as_secs_f64(), end);
    }

    /// Keeps the books about a call.
    fn note(&mut self, operation: Operation, bytes: u64, from: Duration, took: Duration) -> Result<()> {
        self.calls.record(operation, took)?;
        match operation {
            Operation::Write => self.bytes_written += bytes,
            Operation::Read => self.bytes_read += bytes,
            _ => {}
        }
        if matches!(operation, Operation::Write | Operation::Read) {
            self.transferred(took);
        }
        if let Some(samples) = &mut self.samples {
            let at = from.as_secs_f64();
            writeln!(samples, "{},{},{at:.9},{:.9},{bytes}", self.steps, operation.name(), took.as_secs_f64())
                .map_err(|e| Error::io("write samples", e))?;
        }
        Ok(())
    }

    /// Ends the measurement. Collective.
    pub fn finish(mut self, comm: &dyn Communicator) -> Result<(RankMeasurement, CallTimes)> {
        let (wall, observed) = (self.clock.wall(), self.clock.counted());
        if let Some(mut samples) = self.samples.take() {
            samples.flush().map_err(|e| Error::io("write samples", e))?;
        }
        let total = |operation| self.calls.total(operation);
        use Operation as O;
        let raw = total(O::Write) + total(O::Read) + self.coding.as_secs_f64();
        let transferring = transferring(&self.transfers, raw, comm)?;
        let metadata = [O::Group, O::Create, O::Open, O::Resize, O::Attribute, O::CloseArray];
        let mut measured = RankMeasurement {
            rank: self.rank,
            wall: wall.as_secs_f64(),
            observed: observed.as_secs_f64(),
            compute: self.compute.as_secs_f64(),
            prepare: self.prepare.as_secs_f64(),
            check: self.check.as_secs_f64(),
            raw,
            transferring,
            metadata: (metadata.into_iter().map(total).sum::<f64>() - self.coding.as_secs_f64()).max(0.0),
            open_file: total(O::OpenFile),
            flush: total(O::Flush),
            close_file: total(O::CloseFile),
            barrier: total(O::Barrier) + self.waiting.as_secs_f64(),
            bytes_written: self.bytes_written,
            bytes_read: self.bytes_read,
            steps: self.steps,
            blocked: 0.0,
            background: BackgroundMeasurement::of(&self.background),
            operations: self.calls.summaries(),
        };
        measured.blocked = measured.own();
        Ok((measured, self.calls))
    }
}

/// How long at least one rank transferred. Collective.
fn transferring(mine: &Busy, raw: f64, comm: &dyn Communicator) -> Result<f64> {
    if comm.size() == 1 {
        return Ok(raw);
    }
    let mut bytes = raw.to_le_bytes().to_vec();
    mine.encode(&mut bytes);
    let mut all = Vec::with_capacity(comm.size());
    let (mut longest, mut joined) = (raw, 0.0);
    for said in comm.all_gather(&bytes)? {
        let told = said
            .split_first_chunk::<8>()
            .and_then(|(raw, mut rest)| Some((f64::from_le_bytes(*raw), Busy::decode(&mut rest)?)));
        let Some((raw, busy)) = told else {
            return Err(Error::new(ErrorKind::Corrupt, "measure", "a rank's message lacks its transfers"));
        };
        longest = longest.max(raw);
        // Of very many calls, gaps between them are among the intervals.
        joined += (busy.seconds() - raw).max(0.0);
        all.push(busy);
    }
    Ok(longest.max(Busy::together(&all) - joined))
}

fn open_samples(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).map_err(|e| Error::io("write samples", e).target(path.display()))?;
    let mut samples = BufWriter::new(file);
    writeln!(samples, "step,operation,start_seconds,seconds,bytes").map_err(|e| Error::io("write samples", e))?;
    Ok(samples)
}
