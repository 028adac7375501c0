//! The recorder of one rank for one opened container.

use super::rank_spool::{RankSpool, SpoolHeader};
use hyperslab_core::workload::{SEED_ATTRIBUTE, Step, write_step};
use hyperslab_core::{ArraySpec, Attribute, Datatype, Error, OpenMode, Result};
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of kinds of arrays of a workload.
const MOST_KINDS: usize = 1 << 20;

thread_local! {
    /// When this thread last closed a recorded container.
    static CLOSED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The recorder of one rank.
#[derive(Debug)]
pub(super) struct Recorder {
    state: Mutex<State>,
    /// Whether recording is active; avoids the lock.
    active: AtomicBool,
    gap: Duration,
    /// `None` if no rank records.
    pub trace: Option<PathBuf>,
    pub begin: Option<SpoolHeader>,
}

/// The state of the recording.
#[derive(Debug)]
pub(super) struct State {
    pub part: Option<RankSpool>,
    /// Diagnostics.
    pub diagnostics: Vec<String>,
    /// Why there is no spool.
    pub why_not: Option<String>,
    /// Kinds of arrays, by their JSON.
    kinds: HashMap<String, u32>,
    pub specs: Vec<ArraySpec>,
    /// Slots in use.
    slots: BTreeSet<u32>,
    /// Slots of arrays that existed before.
    found: BTreeSet<u32>,
    /// End of the last call.
    idle_since: Instant,
    /// Compute time not yet recorded.
    computed: Duration,
    /// Hash of all collective steps so far.
    pub common: Hash,
    /// Hash of all declarations so far.
    pub declared: Hash,
    /// Data seed declared by the program.
    pub seed: Option<u64>,
    /// Whether an array that existed before was resized.
    pub extended: bool,
    /// Number of failed calls, which are not recorded.
    pub failed: u64,
}

impl Recorder {
    /// A recorder that records nothing.
    pub fn off(reason: String) -> Self {
        let state = State { diagnostics: vec![format!("nothing is traced: {reason}")], ..State::new(Err(reason)) };
        Self { state: Mutex::new(state), active: false.into(), gap: Duration::ZERO, trace: None, begin: None }
    }

    /// A recorder to `part`, or one that knows why this rank cannot record.
    pub fn new(part: Result<RankSpool, String>, trace: PathBuf, begin: SpoolHeader, gap: Duration) -> Self {
        let active = part.is_ok().into();
        Self { state: Mutex::new(State::new(part)), active, gap, trace: Some(trace), begin: Some(begin) }
    }

    /// Opens the container and records that. From then on the spool survives a failing program.
    pub fn first_call<T>(self, how: OpenMode, call: impl FnOnce() -> Result<T>) -> Result<(T, Self)> {
        if let Some(closed) = CLOSED.get() {
            self.lock().idle_since = closed;
        }
        let value = self.call(call, |_, _| Some(Step::OpenFile { file: 0, how }))?;
        if let Some(part) = &mut self.lock().part {
            part.keep();
        }
        Ok((value, self))
    }

    /// Runs a call and, if it succeeds, records the step returned by `step`.
    pub fn call<T>(
        &self,
        call: impl FnOnce() -> Result<T>,
        step: impl FnOnce(&mut State, &T) -> Option<Step>,
    ) -> Result<T> {
        self.call_or(call, step, |_| None)
    }

    /// The same, with a step for a failed call in which other ranks took part.
    pub fn call_or<T>(
        &self,
        call: impl FnOnce() -> Result<T>,
        step: impl FnOnce(&mut State, &T) -> Option<Step>,
        failed: impl FnOnce(&mut State) -> Option<Step>,
    ) -> Result<T> {
        if !self.is_active() {
            return call();
        }
        let begin = Instant::now();
        let result = call();
        let end = Instant::now();
        let mut state = self.lock();
        state.note_gap(begin);
        let step = match &result {
            Ok(value) => step(&mut state, value),
            Err(_) => {
                state.failed += 1;
                failed(&mut state)
            }
        };
        if let Some(step) = step {
            self.write(&mut state, &step, Some(end - begin), end);
        }
        state.idle_since = Instant::now();
        result
    }

    /// Runs a call that has no step.
    pub fn beside<T>(&self, call: impl FnOnce() -> T) -> T {
        if !self.is_active() {
            return call();
        }
        self.lock().note_gap(Instant::now());
        let value = call();
        self.lock().idle_since = Instant::now();
        value
    }

    /// Records steps that are not calls of their own.
    pub fn also(&self, steps: impl IntoIterator<Item = Step>) {
        if self.is_active() {
            let mut state = self.lock();
            for step in steps {
                self.write(&mut state, &step, None, Instant::now());
            }
        }
    }

    /// Records the closing of arrays that are still open, and of the container.
    pub fn last_call(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let arrays = self.lock().slots.iter().map(|&slot| Step::CloseArray { slot }).collect::<Vec<_>>();
        self.also(arrays);
        let close = || Some(Step::CloseFile { file: 0 });
        let result = self.call_or(call, |_, ()| close(), |_| close());
        CLOSED.set(Some(Instant::now()));
        self.active.store(false, Ordering::Release);
        result
    }

    fn write(&self, state: &mut State, step: &Step, took: Option<Duration>, now: Instant) {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let computed = state.computed;
        let compute = (!computed.is_zero() && computed >= self.gap)
            .then(|| Step::Compute { nanoseconds: nanoseconds(std::mem::take(&mut state.computed)) });
        if step.is_collective() {
            state.common.add_step(step);
        }
        let Some(part) = &mut state.part else { return };
        let written = compute
            .iter()
            .try_for_each(|compute| part.step(compute, None, now))
            .and_then(|()| part.step(step, took.map(nanoseconds), now));
        if let Err(error) = written {
            self.stop(state, &error);
        }
    }

    /// Ends tracing with a reason.
    fn stop(&self, state: &mut State, error: &Error) {
        self.active.store(false, Ordering::Release);
        if let Some(mut part) = state.part.take() {
            part.discard();
        }
        state.why_not = Some(error.to_string());
        state.diagnostics.push(format!("tracing stopped, and there is no trace: {error}"));
    }

    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Assigns a slot and a kind to an array, if possible.
    pub fn enter(&self, state: &mut State, spec: Result<ArraySpec>, found: bool) -> Option<(u32, u32)> {
        let entered = spec.and_then(|spec| state.kind(spec));
        match entered {
            Ok(kind) => {
                let slot = state.free_slot();
                state.slots.insert(slot);
                if found {
                    state.found.insert(slot);
                }
                Some((slot, kind))
            }
            Err(error) => {
                self.stop(state, &error);
                None
            }
        }
    }
}

impl State {
    fn new(part: Result<RankSpool, String>) -> Self {
        let (part, why_not) = match part {
            Ok(part) => (Some(part), None),
            Err(reason) => (None, Some(reason)),
        };
        Self {
            part,
            diagnostics: Vec::new(),
            why_not,
            kinds: HashMap::new(),
            specs: Vec::new(),
            slots: BTreeSet::new(),
            found: BTreeSet::new(),
            idle_since: Instant::now(),
            computed: Duration::ZERO,
            common: Hash::default(),
            declared: Hash::default(),
            seed: None,
            extended: false,
            failed: 0,
        }
    }

    fn note_gap(&mut self, begin: Instant) {
        self.computed += begin.saturating_duration_since(self.idle_since);
    }

    /// The lowest free slot.
    fn free_slot(&self) -> u32 {
        (0..).zip(&self.slots).find(|(slot, used)| slot != *used).map_or(self.slots.len() as u32, |(slot, _)| slot)
    }

    /// Frees a slot; returns whether it was in use.
    pub fn leave(&mut self, slot: u32) -> bool {
        self.found.remove(&slot);
        self.slots.remove(&slot)
    }

    /// Notes a change of an array's shape.
    pub fn resized(&mut self, slot: u32) {
        self.extended |= self.found.contains(&slot);
    }

    /// The data seed declared by the program.
    pub fn note_seed(&mut self, object: &str, name: &str, value: &Attribute) {
        if object.is_empty() && name == SEED_ATTRIBUTE && value.dtype == Datatype::I64 {
            let bytes: Option<[u8; 8]> = value.data.as_slice().try_into().ok();
            self.seed = bytes.map(i64::from_ne_bytes).and_then(|seed| u64::try_from(seed).ok());
        }
    }

    fn kind(&mut self, spec: ArraySpec) -> Result<u32> {
        let text = serde_json::to_string(&spec).map_err(|e| Error::invalid("trace", e.to_string()))?;
        if let Some(kind) = self.kinds.get(&text) {
            return Ok(*kind);
        }
        if self.specs.len() >= MOST_KINDS {
            return Err(Error::unsupported("trace", format!("there are more than {MOST_KINDS} kinds of arrays")));
        }
        let kind = self.specs.len() as u32;
        if let Some(part) = &mut self.part {
            part.declare(spec.clone())?;
        }
        self.declared.add(text.as_bytes());
        self.kinds.insert(text, kind);
        self.specs.push(spec);
        Ok(kind)
    }
}

/// An FNV-1a hash, to compare ranks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash(pub u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
    }

    fn add_step(&mut self, step: &Step) {
        let mut text = Vec::with_capacity(128);
        // Writing to memory cannot fail; a difference between ranks would be noticed.
        if write_step(None, None, &step.in_common(), &mut text).is_ok() {
            self.add(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank_spool::PART_VERSION;
    use super::*;

    #[test]
    fn a_disk_that_is_full_stops_the_recording_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t");
        let begin = SpoolHeader {
            hyperslab_trace_part: PART_VERSION,
            rank: 0,
            ranks: 1,
            file: "c".into(),
            how: OpenMode::Create,
        };
        let mut part = RankSpool::create(&trace, &begin, 1 << 20).unwrap().unwrap();
        part.refuse_writes();
        let recorder = Recorder::new(Ok(part), trace, begin, Duration::ZERO);
        let ((), recorder) = recorder.first_call(OpenMode::Create, || Ok(())).unwrap();
        let group = || Some(Step::Group { file: 0, name: "g".into() });
        for number in 0..10_000 {
            assert_eq!(recorder.call(|| Ok(number), |_, _| group()).unwrap(), number);
        }
        assert!(!recorder.is_active());
        let diagnostics = recorder.lock().diagnostics.clone();
        assert!(diagnostics.len() == 1 && diagnostics[0].contains("tracing stopped"), "{diagnostics:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn short_gaps_add_up_and_slots_are_used_again() {
        let mut state = State::new(Err("test".into()));
        let now = Instant::now();
        for _ in 0..4 {
            state.idle_since = now;
            state.note_gap(now + Duration::from_micros(3));
        }
        assert_eq!(state.computed, Duration::from_micros(12));
        state.idle_since = now + Duration::from_secs(1);
        state.note_gap(now);
        assert_eq!(state.computed, Duration::from_micros(12), "calls that overlap");
        state.slots.extend([0, 1, 3]);
        assert_eq!(state.free_slot(), 2);
        assert!(state.leave(0) && !state.leave(0));
        assert_eq!(state.free_slot(), 0);
    }
}
