//! Switches the strategy of a container at epoch boundaries, consistently on all ranks.

use super::choice::Choice;
use super::chooser::{Decision, Situation, choose};
use super::epoch_detector::EpochDetector;
use super::epoch_report::EpochReport;
use super::explain::Explain;
use super::history::{Observed, UpcomingEpoch};
use super::memcpy_rate;
use super::request_class::RequestClass;
use super::shared_history::SharedHistory;
use super::strategies::{Progress, Strategies};
use super::timing_sampler::TimingSampler;
use hyperslab_core::{Communicator, Error, Result, lock};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::time::Instant;

/// Maximum number of collective transfers between two at which ranks agree on the end of an epoch.
const LONGEST_STRIDE: u32 = 63;
/// Number of reads before a pattern is recognised: prefetching in earlier epochs is not representative.
const UNTIL_PATTERN: u64 = 3;
/// Containers with fewer epochs measure the overlap at close.
const MANY_EPOCHS: u64 = 3;

/// The controller of one rank.
#[derive(Debug)]
pub(super) struct Controller {
    pub strategies: Strategies,
    comm: Arc<dyn Communicator>,
    allowed: Vec<Choice>,
    each: HotState,
    opened: Instant,
    /// Owning process: threads do not survive a fork, so that a child keeps its strategy.
    process: u32,
    /// Set when the container is closed; no more decisions.
    finished: AtomicBool,
    state: Mutex<State>,
    /// Error of a strategy change, for the next flush or close.
    trouble: Mutex<Option<Error>>,
}

/// State that every call touches, in one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct HotState {
    /// Read-locked by calls, write-locked by a strategy change.
    going: RwLock<()>,
    /// Index of the present strategy; constant while `going` is held.
    current: AtomicUsize,
    sampler: TimingSampler,
}

#[derive(Debug)]
struct State {
    detector: EpochDetector,
    /// On the first rank, which decides.
    record: Option<Arc<SharedHistory>>,
    explain: Explain,
    decision: Option<Decision>,
    decided: bool,
    /// Estimated cost of tries, in seconds.
    risked: f64,
    seen: Progress,
    /// Epochs with `async` so far.
    behind: u64,
    /// Collective transfers until the next agreement, and the length of the last such interval.
    skip: u32,
    stride: u32,
}

/// Guard of a running call; ends it when dropped.
pub(super) struct CallGuard<'a> {
    controller: &'a Controller,
    way: Choice,
    _going: RwLockReadGuard<'a, ()>,
    /// Whether the call is timed.
    seen: bool,
    /// For a transfer: bytes, class, and wait time so far.
    transfer: Option<(u64, RequestClass, f64)>,
}

impl Controller {
    /// A controller; `record` is given on the first rank only.
    pub fn new(
        strategies: Strategies,
        allowed: Vec<Choice>,
        comm: Arc<dyn Communicator>,
        record: Option<Arc<SharedHistory>>,
        explain: Explain,
    ) -> Self {
        let pause = record.as_ref().map_or(0.0, |record| record.opened());
        let first = allowed.first().copied().unwrap_or(Choice::Sync);
        let state = State {
            detector: EpochDetector::new(pause),
            record,
            explain,
            decision: None,
            decided: false,
            risked: 0.0,
            seen: Progress::default(),
            behind: 0,
            skip: 0,
            stride: 0,
        };
        Self {
            strategies,
            comm,
            allowed,
            each: HotState {
                going: RwLock::default(),
                current: AtomicUsize::new(first.index()),
                sampler: TimingSampler::default(),
            },
            opened: Instant::now(),
            process: std::process::id(),
            finished: AtomicBool::new(false),
            state: Mutex::new(state),
            trouble: Mutex::default(),
        }
    }

    fn now(&self) -> f64 {
        self.opened.elapsed().as_secs_f64()
    }

    fn alone(&self) -> bool {
        self.comm.size() == 1
    }

    /// The present strategy. Lock order: never wait for `going` while holding `state`, which running calls lock at their
    /// end.
    pub(super) fn current(&self) -> Choice {
        Choice::ALL[self.each.current.load(Ordering::Acquire)]
    }

    /// Enters a call with the present strategy.
    #[inline]
    fn go(&self, seen: bool) -> CallGuard<'_> {
        let going = self.each.going.read().unwrap_or_else(PoisonError::into_inner);
        CallGuard { controller: self, way: self.current(), _going: going, seen, transfer: None }
    }

    /// Begins a timed call, and accounts for untimed ones before it.
    fn look(&self, now: f64) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.detector.begin(now, self.each.sampler.take());
        state
    }

    /// Begins a transfer. Collective if the transfer is.
    #[inline]
    pub fn transfer(&self, bytes: u64, writes: bool, collective: bool) -> CallGuard<'_> {
        let class = RequestClass::of(bytes, writes);
        match self.each.sampler.passes(bytes, class) {
            true => self.go(false),
            false => self.timed_transfer(bytes, class, collective),
        }
    }

    /// Begins a timed transfer.
    #[inline(never)]
    fn timed_transfer(&self, bytes: u64, class: RequestClass, collective: bool) -> CallGuard<'_> {
        let now = self.now();
        let mut state = self.look(now);
        let decision = match self.alone() {
            true => (bytes > 0).then(|| self.decide_locally(&mut state, now, bytes, class)).flatten(),
            false if collective && !state.skipped() => {
                drop(state);
                let decision = self.decide_collectively(Some((bytes, class)), false);
                state = lock(&self.state);
                decision
            }
            false => None,
        };
        let changes = decision.is_some_and(|to| to != self.current());
        let begin = |state: &mut State, now: f64| {
            if bytes > 0 {
                state.detector.begin_transfer(now, class);
            }
        };
        if !changes {
            // Waiting for other ranks does not count as transfer time.
            begin(&mut state, if self.alone() { now } else { self.now() });
        }
        drop(state);
        if changes {
            self.switch_to(decision);
            begin(&mut lock(&self.state), self.now());
        }
        let mut trip = self.go(true);
        if bytes > 0 {
            trip.transfer = Some((bytes, class, self.strategies.waited(trip.way).as_secs_f64()));
        }
        trip
    }

    /// Begins a call that is no transfer.
    pub fn call(&self) -> CallGuard<'_> {
        drop(self.look(self.now()));
        self.go(true)
    }

    /// Begins a collective call. `ends`: it ends the epoch if anything was transferred.
    pub fn collective_call(&self, ends: bool) -> CallGuard<'_> {
        drop(self.look(self.now()));
        if !self.alone() {
            let decision = self.decide_collectively(None, ends);
            self.switch_to(decision);
        }
        self.go(true)
    }

    /// Notes that everything transferred so far is drained.
    pub fn drained(&self) {
        lock(&self.state).detector.drained();
    }

    fn decide_locally(&self, state: &mut State, now: f64, bytes: u64, class: RequestClass) -> Option<Choice> {
        let over = state.detector.is_over(now);
        if !over && state.decided {
            return None;
        }
        let report = over.then(|| self.report(state));
        self.advance(state, report, now, bytes as f64, class, state.detector.pause())
    }

    /// Combines the epoch reports of all ranks; the first rank decides for all. Errors are ignored here: the call itself
    /// will meet them.
    fn decide_collectively(&self, request: Option<(u64, RequestClass)>, ends: bool) -> Option<Choice> {
        if self.finished.load(Ordering::Acquire) {
            return None;
        }
        let now = self.now();
        let mut state = lock(&self.state);
        let epoch = state.detector.so_far();
        let over = state.detector.is_over(now) || (ends && epoch.transfers > 0);
        let mut mine = self.report(&mut state);
        mine.over = over;
        mine.pause = state.detector.pause();
        mine.failed = self.strategies.failed(self.current());
        mine.request = request.map_or(0.0, |(bytes, _)| bytes as f64);
        mine.coming = request.map(|(_, class)| class).or(epoch.class);
        let mut numbers = mine.numbers();
        drop(state);
        self.comm.all_reduce_f64(&mut numbers, hyperslab_core::Reduce::Max).ok()?;
        let all = EpochReport::from_numbers(&numbers);
        let mut state = lock(&self.state);
        let first = !state.decided && request.is_some();
        if request.is_some() {
            state.stride = if all.over || first { 0 } else { (2 * state.stride + 1).min(LONGEST_STRIDE) };
            state.skip = state.stride;
        }
        if all.failed || !(all.over || first) {
            return None;
        }
        let class = all.coming?;
        let mut choice = vec![self.current().index() as u8];
        let report = all.over.then_some(all);
        if let Some(next) = self.advance(&mut state, report, now, all.request, class, all.pause) {
            choice = vec![next.index() as u8];
        }
        drop(state);
        self.comm.broadcast(0, &mut choice).ok()?;
        Choice::ALL.get(usize::from(*choice.first()?)).copied()
    }

    /// Ends the reported epoch and decides on the next. First rank only.
    fn advance(
        &self,
        state: &mut State,
        report: Option<EpochReport>,
        now: f64,
        request: f64,
        class: RequestClass,
        pause: f64,
    ) -> Option<Choice> {
        let current = self.current();
        let before = state.decided.then_some(current);
        state.decided = true;
        if let Some(report) = report {
            self.note(state, &report, current, Some(report.epoch.room));
            state.detector.next_epoch(now);
        }
        let record = state.record.clone()?;
        if std::process::id() != self.process {
            return None;
        }
        let ranks = self.comm.size() as u32;
        let (decision, measured) = record.with(|history| {
            let coming = UpcomingEpoch { class, ranks, request, pause, copy_rate: memcpy_rate::rate(history) };
            let forecast = history.forecast(&coming);
            let (allowed, elapsed, risked) = (&self.allowed[..], now, state.risked);
            (choose(&Situation { forecast: &forecast, allowed, current: before, elapsed, risked }), forecast.measured)
        });
        state.detector.unsure = measured[decision.choice.index()] == 0;
        state.risked += decision.risk;
        state.decision = Some(decision);
        Some(decision.choice)
    }

    /// Adds a finished epoch to the history.
    fn note(&self, state: &mut State, report: &EpochReport, choice: Choice, room: Option<f64>) {
        if choice == Choice::Async {
            state.behind += 1;
        }
        let (Some(record), Some(class)) = (&state.record, report.epoch.class) else { return };
        let epoch = report.epoch;
        let observed = Observed {
            choice,
            class,
            ranks: self.comm.size() as u32,
            bytes: epoch.bytes,
            compute: epoch.compute,
            room,
            calls: epoch.calls,
            hand_over: epoch.calls - epoch.waited,
            behind: report.behind.map(|seconds| (1.0, seconds)),
            straight: report.straight,
            fresh: report.fresh,
        };
        record.with(|history| history.learn(&observed));
        let number = state.detector.finished + 1;
        let decision = state.decision.take();
        state.explain.epoch(number, decision.as_ref(), &observed);
    }

    /// Reports this rank's present epoch, including background progress.
    fn report(&self, state: &mut State) -> EpochReport {
        let (epoch, way) = (state.detector.so_far(), self.current());
        let now = self.strategies.progress(way);
        let bytes = now.bytes.saturating_sub(state.seen.bytes);
        let seconds = now.busy.saturating_sub(state.seen.busy).as_secs_f64();
        let behind = (bytes > 0).then(|| seconds / bytes as f64);
        let reads = epoch.class.is_some_and(|class| !class.writes);
        let fresh = now.memory > state.seen.memory || (reads && state.behind < UNTIL_PATTERN);
        let straight = bytes == 0 && self.strategies.is_idle(way);
        match bytes > 0 {
            true => state.seen = now,
            false => state.seen.memory = now.memory,
        }
        EpochReport { epoch, behind, straight, fresh, ..EpochReport::default() }
    }

    /// Switches to the decided strategy. Called with the same decision on all ranks if they decide collectively.
    pub(super) fn switch_to(&self, decision: Option<Choice>) {
        let Some(to) = decision else { return };
        if to == self.current() {
            return;
        }
        let going = match self.alone() {
            // Another thread is in a call: switch at the next epoch.
            true => match self.each.going.try_write() {
                Ok(going) => going,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            },
            false => self.each.going.write().unwrap_or_else(PoisonError::into_inner),
        };
        let changed = self.strategies.change(self.current(), to);
        let failed = !matches!(changed, Ok(true));
        if let Err(error) = changed {
            lock(&self.trouble).get_or_insert(error);
        }
        let mut failed = [f64::from(u8::from(failed))];
        let told = self.alone() || self.comm.all_reduce_f64(&mut failed, hyperslab_core::Reduce::Max).is_ok();
        if told && failed[0] == 0.0 {
            self.each.current.store(to.index(), Ordering::Release);
            drop(going);
            lock(&self.state).seen = self.strategies.progress(to);
        }
    }

    /// Returns the error of a strategy change, once.
    pub fn take_error(&self) -> Result<()> {
        lock(&self.trouble).take().map_or(Ok(()), Err)
    }

    /// Ends the last epoch and saves the history. Returns a diagnostic if saving failed.
    pub fn finish(&self) -> Option<String> {
        self.finished.store(true, Ordering::Release);
        let mut state = lock(&self.state);
        let report = self.report(&mut state);
        let way = self.current();
        // The first rank's own measurements: other ranks may be gone.
        if report.epoch.transfers > 0 && report.epoch.calls > 0.0 {
            let few = state.detector.finished < MANY_EPOCHS;
            self.note(&mut state, &report, way, few.then_some(report.epoch.room));
        }
        state.record.take().and_then(|record| record.closed(state.decided))
    }

    /// A summary of all epochs.
    pub fn summary(&self) -> Option<String> {
        lock(&self.state).explain.summary()
    }
}

impl State {
    /// Whether ranks skip the agreement at this collective transfer; all count alike.
    fn skipped(&mut self) -> bool {
        let skipped = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        skipped
    }
}

impl CallGuard<'_> {
    /// The strategy of the call.
    #[inline]
    pub fn way(&self) -> Choice {
        self.way
    }

    /// Ends a timed call.
    #[inline(never)]
    fn end(&self) {
        let now = self.controller.now();
        let waited = self
            .transfer
            .map_or(0.0, |(.., before)| self.controller.strategies.waited(self.way).as_secs_f64() - before);
        let mut state = lock(&self.controller.state);
        if let Some((bytes, ..)) = self.transfer {
            state.detector.end_transfer(now, bytes as f64, waited);
        }
        state.detector.end(now);
        let sampler = &self.controller.each.sampler;
        match (self.transfer, state.detector.latest()) {
            // With background work or several ranks, every call is timed.
            (Some((_, class, _)), Some(seconds)) if self.way == Choice::Sync && self.controller.alone() => {
                sampler.allow(class, seconds);
            }
            _ => sampler.stop(),
        }
    }
}

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.seen {
            self.end();
        }
    }
}
