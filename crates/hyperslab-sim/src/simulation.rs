//! The time of a walked workload on a system.

use crate::layer_effects::LayerEffects;
use crate::stage::{Rates, StageTime, round_time};
use crate::system::System;
use crate::timing::TimingParameters;
use crate::walk::{WalkEvent, Walked};
use serde::Serialize;

/// Seconds of the transfers alone, without what opens, computes and closes.
pub fn transfer_seconds(walked: &Walked, rates: &Rates, timing: &TimingParameters) -> f64 {
    transfers(walked, rates, timing).total
}

/// The same by what takes them.
pub fn transfers(walked: &Walked, rates: &Rates, timing: &TimingParameters) -> StageTime {
    let mut all = StageTime::default();
    for event in &walked.events {
        if let WalkEvent::Transfer(loads) = event {
            loads.iter().for_each(|load| all += round_time(load, rates, timing) * load.rounds);
        }
    }
    all
}

/// What a part of the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Opening, creating, waiting for all.
    Open,
    /// Computing.
    Compute,
    /// Writing.
    Write,
    /// Reading.
    Read,
    /// Waiting until what was written is on storage.
    Flush,
}

/// A part of the run, from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimelineSpan {
    /// What.
    pub kind: SpanKind,
    /// When it begins.
    pub start: f64,
    /// How long the program is in it.
    pub seconds: f64,
    /// Seconds of storage work that go on behind the program's back from then on.
    pub behind: f64,
}

/// A run that was simulated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulated {
    /// Seconds of I/O that the program sees.
    pub seconds: f64,
    /// Seconds of computation.
    pub compute: f64,
    /// Seconds of opening, creating and waiting for all; part of the seconds.
    pub metadata: f64,
    /// Storage work that the program does not see.
    pub hidden: f64,
    /// Bytes written.
    pub written: f64,
    /// Bytes read.
    pub read: f64,
    /// What the transfers are made of.
    pub stages: StageTime,
    /// Seconds of copies in memory, or to local storage, that layers make.
    pub copies: f64,
    /// What happens when; at most a few thousand parts.
    pub timeline: Vec<TimelineSpan>,
}

impl Simulated {
    /// Bytes per second of all I/O.
    pub fn rate(&self) -> f64 {
        let bytes = self.written + self.read;
        if self.seconds > 0.0 { bytes / self.seconds } else { 0.0 }
    }
}

/// Parts of a timeline that are kept.
const MOST_SPANS: usize = 4096;
/// Seconds of a barrier among two, for each doubling.
const BARRIER: f64 = 5e-6;

/// Plays what was walked.
pub fn simulate(walked: &Walked, system: &System, layers: &LayerEffects, timing: &TimingParameters) -> Simulated {
    let mut play = Play {
        rates: Rates::of(system),
        system,
        layers,
        timing,
        now: 0.0,
        storage_free: 0.0,
        pending: 0.0,
        ahead_from: None,
        found: Simulated {
            seconds: 0.0,
            compute: 0.0,
            metadata: 0.0,
            hidden: 0.0,
            written: walked.written,
            read: walked.read,
            stages: StageTime::default(),
            copies: 0.0,
            timeline: Vec::new(),
        },
    };
    let barrier = BARRIER * (walked.ranks.max(2) as f64).log2();
    for event in &walked.events {
        match event {
            WalkEvent::Open { files } => {
                let servers = system.metadata.servers.value * system.metadata.operations.value;
                let seconds = system.metadata.open_seconds.value + files / servers;
                play.found.metadata += seconds;
                play.spend(SpanKind::Open, seconds, 0.0);
            }
            WalkEvent::Barrier => {
                play.found.metadata += barrier;
                play.spend(SpanKind::Open, barrier, 0.0);
            }
            WalkEvent::Compute(seconds) => {
                play.found.compute += seconds;
                play.ahead_from = Some(play.now);
                play.spend(SpanKind::Compute, *seconds, 0.0);
            }
            WalkEvent::Flush => play.flush(),
            WalkEvent::Transfer(loads) => play.transfer(loads),
        }
    }
    play.flush();
    play.found.seconds = play.now - play.found.compute;
    play.found.hidden =
        (play.found.stages.total + play.found.copies + play.found.metadata - play.found.seconds).max(0.0);
    play.found
}

struct Play<'a> {
    rates: Rates,
    system: &'a System,
    layers: &'a LayerEffects,
    timing: &'a TimingParameters,
    now: f64,
    /// When the storage has done what was put off.
    storage_free: f64,
    /// Seconds that a flush will take, of what lies in logs.
    pending: f64,
    /// When the last computation began: reads that follow it may have begun then, one after the other.
    ahead_from: Option<f64>,
    found: Simulated,
}

impl Play<'_> {
    fn spend(&mut self, kind: SpanKind, seconds: f64, behind: f64) {
        let full = self.found.timeline.len() >= MOST_SPANS;
        match self.found.timeline.last_mut() {
            Some(last) if last.kind == kind && last.behind == 0.0 && behind == 0.0 => last.seconds += seconds,
            _ if full => {}
            _ => self.found.timeline.push(TimelineSpan { kind, start: self.now, seconds, behind }),
        }
        self.now += seconds;
    }

    fn transfer(&mut self, loads: &[crate::load::Load]) {
        let (mut stages, mut copies, mut drain) = (StageTime::default(), 0.0, StageTime::default());
        for load in loads {
            let seen = self.layers.below(load, self.system);
            let time = round_time(&seen.load, &self.rates, self.timing);
            stages += time * load.rounds;
            copies += (seen.copy + seen.exchange) * load.rounds;
            if let Some(later) = &seen.later {
                drain += round_time(later, &self.rates, self.timing) * load.rounds;
            }
        }
        let writes = loads.first().is_some_and(|load| load.kind.writes);
        let kind = if writes { SpanKind::Write } else { SpanKind::Read };
        self.found.copies += copies;
        if self.layers.logs() && writes {
            // Appended now, written in order at the flush.
            self.found.stages += drain;
            self.pending += drain.total;
            self.spend(kind, copies, drain.total);
            return;
        }
        self.found.stages += stages;
        if self.layers.puts_off(writes) {
            let begins = if writes { self.now + copies } else { *self.ahead_from.get_or_insert(self.now) };
            let done = self.storage_free.max(begins) + stages.total;
            self.storage_free = done;
            // What was read ahead is there when the computation before it was long enough.
            let waits = if writes { 0.0 } else { (done - self.now).max(0.0) };
            self.spend(kind, copies + waits, if writes { stages.total } else { 0.0 });
        } else {
            self.spend(kind, copies + stages.total, 0.0);
        }
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let waits = (self.storage_free - self.now).max(0.0) + pending;
        if waits > 0.0 {
            self.spend(SpanKind::Flush, waits, 0.0);
        }
    }
}
