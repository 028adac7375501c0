//! Bounded task queue for background threads. Keeps conflicting tasks in order and reports every result exactly once.
//!
//! # Rules
//!
//! * A task starts once every earlier task that it [follows](Task::follows) has ended.
//! * Memory is reserved before a task is pushed; callers block while there is none (backpressure).
//! * The first failure closes the queue to new tasks. Queued tasks are cancelled, except those that
//!   [must run](Task::must_run) because other ranks wait for them.
//! * An error is reported once: to the holder of the task's ticket, otherwise by [`Queue::take_error`].

use super::loom_shim::{Condvar, Mutex, MutexGuard};
use hyperslab_core::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// A task of the queue.
pub(crate) trait Task {
    /// Whether this must not start before `earlier` has ended.
    fn follows(&self, earlier: &Self) -> bool;
    /// Whether it runs even after another task has failed.
    fn must_run(&self) -> bool;
    /// Description for messages.
    fn words(&self) -> String;
}

/// A queue of tasks that have not ended.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    /// Signals callers: a task has ended, or memory was released.
    changed: Condvar,
    /// Signals threads: a task is ready, or the queue is closing.
    work: Condvar,
    /// Maximum bytes reserved.
    limit: u64,
    /// With one thread tasks run in order, and need no comparison.
    one_thread: bool,
}

/// Maximum number of tasks: each new one is compared with all.
const MOST_TASKS: usize = 4096;

#[derive(Debug)]
struct State<T> {
    /// Tasks that have not ended, by increasing number.
    tasks: BTreeMap<u64, Entry<T>>,
    /// Tasks that wait only for a thread.
    ready: BTreeSet<u64>,
    next: u64,
    reserved: u64,
    /// Bytes of tasks that have not ended.
    waiting: u64,
    peak: u64,
    /// Kind and description of the first failure.
    failure: Option<(ErrorKind, String)>,
    /// The first unreported error without a ticket; others are counted.
    untold: Option<Error>,
    untold_more: u64,
    tickets: BTreeMap<u64, TicketState>,
    /// The queue is closing.
    ending: bool,
    /// Number of sleepers: waking none would cost a system call.
    callers: usize,
    threads: usize,
}

#[derive(Debug)]
struct Entry<T> {
    task: Arc<T>,
    /// Number of earlier tasks that it waits for.
    behind: usize,
    bytes: u64,
}

#[derive(Debug)]
enum TicketState {
    UnderWay(Option<Waker>),
    Ended(Result<()>),
}

/// A task taken by a thread.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub number: u64,
    pub task: Arc<T>,
    /// Another task has failed; this one must run.
    pub after_failure: bool,
}

impl<T: Task> Queue<T> {
    /// An empty queue with a memory limit, for one thread or several.
    pub fn new(limit: u64, one_thread: bool) -> Self {
        let state = State {
            tasks: BTreeMap::new(),
            ready: BTreeSet::new(),
            next: 0,
            reserved: 0,
            waiting: 0,
            peak: 0,
            failure: None,
            untold: None,
            untold_more: 0,
            tickets: BTreeMap::new(),
            ending: false,
            callers: 0,
            threads: 0,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), work: Condvar::new(), limit, one_thread }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks a caller until the state changes.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        state.callers += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.callers -= 1;
        state
    }

    /// Wakes blocked callers.
    fn wake_callers(&self, state: MutexGuard<'_, State<T>>) {
        let any = state.callers > 0;
        drop(state);
        if any {
            self.changed.notify_all();
        }
    }

    /// Blocks until `done` returns true.
    fn wait<'a, R>(
        &'a self,
        mut state: MutexGuard<'a, State<T>>,
        mut done: impl FnMut(&mut State<T>) -> Option<R>,
    ) -> R {
        loop {
            if let Some(result) = done(&mut state) {
                return result;
            }
            state = self.sleep(state);
        }
    }

    /// Blocks until `bytes` can be reserved. `Ok(false)` if they exceed the limit. Fails after a failure.
    pub fn reserve(&self, bytes: u64) -> Result<bool> {
        if bytes > self.limit {
            return self.check().map(|()| false);
        }
        self.wait(self.lock(), |state| match state.check() {
            Err(error) => Some(Err(error)),
            Ok(()) => state.try_reserve(bytes, self.limit).then_some(Ok(true)),
        })
    }

    /// Reserves memory without blocking.
    pub fn try_reserve(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        state.check().is_ok() && state.try_reserve(bytes, self.limit)
    }

    /// Releases reserved memory that no task took over.
    pub fn release(&self, bytes: u64) {
        let mut state = self.lock();
        state.reserved -= bytes;
        self.wake_callers(state);
    }

    /// Bytes below the limit that are not reserved.
    pub fn room(&self) -> u64 {
        self.limit - self.lock().reserved
    }

    /// Maximum bytes reserved so far.
    pub fn peak(&self) -> u64 {
        self.lock().peak
    }

    /// Adds a task that owns `bytes` of the reserved memory; returns its number. After a failure only tasks that must run
    /// are accepted; for others, returns the error and releases the memory.
    pub fn push(&self, task: T, bytes: u64, ticket: bool) -> Result<u64> {
        let mut state = self.lock();
        if let Err(error) = state.check().and_then(|()| state.check_open())
            && !task.must_run()
        {
            state.reserved -= bytes;
            self.wake_callers(state);
            return Err(error);
        }
        let number = state.next;
        state.next += 1;
        let behind = match self.one_thread {
            true => 0,
            false => state.tasks.values().filter(|earlier| task.follows(&earlier.task)).count(),
        };
        if behind == 0 {
            state.ready.insert(number);
        }
        if ticket {
            state.tickets.insert(number, TicketState::UnderWay(None));
        }
        state.waiting += bytes;
        state.tasks.insert(number, Entry { task: Arc::new(task), behind, bytes });
        let sleeps = behind == 0 && state.threads > 0;
        drop(state);
        if sleeps {
            self.work.notify_one();
        }
        Ok(number)
    }

    /// Blocks until a task is ready, and takes it. `None` if the queue is closed.
    pub fn take(&self) -> Option<Taken<T>> {
        let mut state = self.lock();
        loop {
            if let Some(number) = state.ready.pop_first() {
                let Some(task) = state.tasks.get(&number).map(|entry| entry.task.clone()) else { continue };
                return Some(Taken { number, task, after_failure: state.failure.is_some() });
            }
            if state.ending && state.tasks.is_empty() {
                return None;
            }
            state.threads += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.threads -= 1;
        }
    }

    /// Reports the result of a taken task. The thread must have dropped its reference to the task.
    pub fn end(&self, number: u64, result: Result<()>) {
        let mut state = self.lock();
        let Some(ended) = state.remove(number) else { return };
        let (mut wake, mut given_up) = (Vec::new(), Vec::new());
        match result {
            Ok(()) => wake.extend(state.deliver(number, Ok(()))),
            Err(error) => {
                let first = state.failure.is_none();
                if first {
                    state.failure = Some((error.kind(), error.to_string()));
                }
                wake.extend(state.deliver(number, Err(error)));
                if first {
                    state.give_up_waiting(&mut wake, &mut given_up);
                }
            }
        }
        state.no_longer_behind(number, &ended.task);
        let callers = state.callers > 0;
        // This thread takes one itself.
        let threads = state.threads > 0 && (state.ready.len() > 1 || (state.ending && state.tasks.is_empty()));
        drop(state);
        // Dropped outside the lock: dropping tasks may release memory.
        drop((ended, given_up));
        if callers {
            self.changed.notify_all();
        }
        if threads {
            self.work.notify_all();
        }
        wake.into_iter().for_each(Waker::wake);
    }

    /// Blocks until no present task is left for which `fits` holds.
    pub fn wait_while(&self, fits: impl Fn(&T) -> bool) {
        // Does not wait for later tasks.
        let mut state = self.lock();
        let awaited: Vec<u64> =
            state.tasks.iter().filter(|(_, entry)| fits(&entry.task)).map(|(number, _)| *number).collect();
        if !awaited.is_empty() {
            state = self.wait_gone(state, &awaited);
        }
        drop(state);
    }

    /// Whether a task with this or a lower number is left.
    pub fn any_up_to(&self, last: u64) -> bool {
        self.lock().tasks.first_key_value().is_some_and(|(first, _)| *first <= last)
    }

    /// Blocks until no task with this or a lower number is left.
    pub fn wait_for_earlier(&self, last: u64) {
        self.wait(self.lock(), |state| {
            state.tasks.first_key_value().is_none_or(|(first, _)| *first > last).then_some(())
        });
    }

    /// Whether tasks that have not ended hold more than `bytes`.
    pub fn has_more_than(&self, bytes: u64) -> bool {
        self.lock().waiting > bytes
    }

    /// Blocks until tasks that have not ended hold at most `most()` bytes, re-evaluated after each end of a task.
    pub fn wait_for_less(&self, most: impl Fn() -> u64) {
        self.wait(self.lock(), |state| (state.waiting <= most()).then_some(()));
    }

    fn wait_gone<'a>(&'a self, mut state: MutexGuard<'a, State<T>>, awaited: &[u64]) -> MutexGuard<'a, State<T>> {
        while awaited.iter().any(|number| state.tasks.contains_key(number)) {
            state = self.sleep(state);
        }
        state
    }

    /// Tasks that have not ended and for which `fits` holds, in order.
    pub fn those(&self, fits: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let state = self.lock();
        state.tasks.values().filter(|entry| fits(&entry.task)).map(|entry| entry.task.clone()).collect()
    }

    /// Maximum bytes reserved.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether a task is left for which `fits` holds.
    pub fn any(&self, fits: impl Fn(&T) -> bool) -> bool {
        self.lock().tasks.values().any(|entry| fits(&entry.task))
    }

    /// Fails if a task has failed, with its description.
    pub fn check(&self) -> Result<()> {
        self.lock().check()
    }

    /// Returns unreported errors, combined.
    pub fn take_error(&self) -> Result<()> {
        let mut state = self.lock();
        let more = std::mem::take(&mut state.untold_more);
        match state.untold.take() {
            None => Ok(()),
            Some(error) if more == 0 => Err(error),
            Some(error) => {
                Err(error
                    .hint(format!("write the data anew: {more} further background operations were not done either")))
            }
        }
    }

    /// Closes the queue; threads leave when all tasks have ended.
    pub fn finish(&self) {
        self.lock().ending = true;
        self.work.notify_all();
    }

    /// Polls the result of a task with a ticket.
    pub fn poll(&self, number: u64, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = self.lock();
        match state.tickets.get_mut(&number) {
            Some(TicketState::UnderWay(waker)) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            _ => match state.tickets.remove(&number) {
                Some(TicketState::Ended(result)) => Poll::Ready(result),
                _ => Poll::Ready(Ok(())),
            },
        }
    }

    /// Drops a ticket: an error of the task is reported with the others.
    pub fn forget(&self, number: u64) {
        let mut state = self.lock();
        if let Some(TicketState::Ended(Err(error))) = state.tickets.remove(&number) {
            state.keep(error);
        }
    }
}

impl<T: Task> State<T> {
    fn check(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some((kind, words)) => Err(refused(*kind, words)),
        }
    }

    fn check_open(&self) -> Result<()> {
        if self.ending { Err(Error::invalid("access", "the container is closed")) } else { Ok(()) }
    }

    fn try_reserve(&mut self, bytes: u64, limit: u64) -> bool {
        let fits = self.reserved + bytes <= limit && self.tasks.len() < MOST_TASKS;
        if fits {
            self.reserved += bytes;
            self.peak = self.peak.max(self.reserved);
        }
        fits
    }

    fn remove(&mut self, number: u64) -> Option<Entry<T>> {
        self.ready.remove(&number);
        let entry = self.tasks.remove(&number)?;
        self.reserved -= entry.bytes;
        self.waiting -= entry.bytes;
        Some(entry)
    }

    /// Marks tasks as ready that waited for an ended one.
    fn no_longer_behind(&mut self, number: u64, ended: &T) {
        for (later, entry) in self.tasks.range_mut(number..) {
            if entry.behind > 0 && entry.task.follows(ended) {
                entry.behind -= 1;
                if entry.behind == 0 {
                    self.ready.insert(*later);
                }
            }
        }
    }

    /// Delivers a result to its ticket, or keeps the error. Returns the waker.
    fn deliver(&mut self, number: u64, result: Result<()>) -> Option<Waker> {
        match self.tickets.get_mut(&number) {
            Some(ticket) => match std::mem::replace(ticket, TicketState::Ended(result)) {
                TicketState::UnderWay(waker) => waker,
                TicketState::Ended(_) => None,
            },
            None => {
                if let Err(error) = result {
                    self.keep(error);
                }
                None
            }
        }
    }

    fn keep(&mut self, error: Error) {
        match &self.untold {
            None => self.untold = Some(error),
            Some(_) => self.untold_more += 1,
        }
    }

    /// Removes queued tasks that need not run.
    fn give_up_waiting(&mut self, wake: &mut Vec<Waker>, given_up: &mut Vec<Entry<T>>) {
        let Some((kind, words)) = self.failure.clone() else { return };
        // Tasks that are blocked, or ready and not taken, have not started.
        let waiting = |(number, entry): (&u64, &Entry<T>)| {
            let waits = entry.behind > 0 || self.ready.contains(number);
            (waits && !entry.task.must_run()).then_some(*number)
        };
        let numbers: Vec<u64> = self.tasks.iter().filter_map(waiting).collect();
        for number in numbers {
            let Some(entry) = self.remove(number) else { continue };
            wake.extend(self.deliver(number, Err(refused(kind, &words).target(entry.task.words()))));
            self.no_longer_behind(number, &entry.task);
            given_up.push(entry);
        }
    }
}

/// The error of calls after a failure.
fn refused(kind: ErrorKind, words: &str) -> Error {
    let first = words.lines().next().unwrap_or_default();
    Error::new(kind, "access", format!("refused, because an operation in the background failed before: {first}"))
        .backend("background")
        .hint("close the container, remove the cause, and write the data anew")
}
