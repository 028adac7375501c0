//! Work for background threads: bounded, in the order that matters, and with no end of it lost.
//!
//! # Rules
//!
//! * A task begins when every earlier task that it [follows](Task::follows) has ended.
//! * MemoryReservation is reserved before a task is pushed; whoever finds none waits.
//! * The first failure closes the queue to new tasks. Tasks that wait are not done, except those that [must
//!   run](Task::must_run) because other ranks count on them.
//! * An error is told once: to whoever holds the ticket of its task, otherwise by [`Queue::take_error`].

use super::loom_shim::{Condvar, Mutex, MutexGuard};
use hyperslab_core::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

/// What the queue must know of its tasks.
pub(crate) trait Task {
    /// Whether this may begin only after `earlier` has ended.
    fn follows(&self, earlier: &Self) -> bool;
    /// Whether it runs, in whatever form, even after another has failed.
    fn must_run(&self) -> bool;
    /// What it does and to what, for messages.
    fn words(&self) -> String;
}

/// Tasks that have not ended, by number.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    /// For callers: a task has ended, or there is more room.
    changed: Condvar,
    /// For threads: a task is ready, or there will be no more.
    work: Condvar,
    /// Bytes that may be reserved.
    limit: u64,
    /// One thread takes tasks one after the other, so that none needs to be compared with another.
    one_thread: bool,
}

/// The most tasks that have not ended: each new one is compared with all.
const MOST_TASKS: usize = 4096;

#[derive(Debug)]
struct State<T> {
    /// Not yet ended, by rising number.
    tasks: BTreeMap<u64, Entry<T>>,
    /// Those that wait for nothing but a thread.
    ready: BTreeSet<u64>,
    next: u64,
    reserved: u64,
    peak: u64,
    /// What went wrong first, with its words.
    failure: Option<(ErrorKind, String)>,
    /// Errors without a ticket that nobody has heard of, the first as it is.
    untold: Option<Error>,
    untold_more: u64,
    tickets: BTreeMap<u64, TicketState>,
    /// No task will come any more.
    ending: bool,
    /// Who sleeps. Waking nobody costs a call of the kernel.
    callers: usize,
    threads: usize,
}

#[derive(Debug)]
struct Entry<T> {
    task: Arc<T>,
    /// Earlier tasks that it follows and that have not ended.
    behind: usize,
    bytes: u64,
}

#[derive(Debug)]
enum TicketState {
    UnderWay(Option<Waker>),
    Ended(Result<()>),
}

/// A task for a thread.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub number: u64,
    pub task: Arc<T>,
    /// Another has failed; this one runs only since it must.
    pub after_failure: bool,
}

impl<T: Task> Queue<T> {
    /// An empty queue whose tasks may hold `limit` bytes, for one thread or several.
    pub fn new(limit: u64, one_thread: bool) -> Self {
        let state = State {
            tasks: BTreeMap::new(),
            ready: BTreeSet::new(),
            next: 0,
            reserved: 0,
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

    /// Puts a caller to sleep until something has changed.
    fn sleep<'a>(&'a self, mut state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        state.callers += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.callers -= 1;
        state
    }

    /// Wakes callers that sleep.
    fn tell_callers(&self, state: MutexGuard<'_, State<T>>) {
        let any = state.callers > 0;
        drop(state);
        if any {
            self.changed.notify_all();
        }
    }

    /// Waits until `done` says so.
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

    /// Waits for room and takes it. `Ok(false)`: there is never so much room. Fails after a failure.
    pub fn reserve(&self, bytes: u64) -> Result<bool> {
        if bytes > self.limit {
            return self.check().map(|()| false);
        }
        self.wait(self.lock(), |state| match state.check() {
            Err(error) => Some(Err(error)),
            Ok(()) => state.try_reserve(bytes, self.limit).then_some(Ok(true)),
        })
    }

    /// Takes room if there is some.
    pub fn try_reserve(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        state.check().is_ok() && state.try_reserve(bytes, self.limit)
    }

    /// Gives room back that no task took over.
    pub fn release(&self, bytes: u64) {
        let mut state = self.lock();
        state.reserved -= bytes;
        self.tell_callers(state);
    }

    /// Bytes that may be kept beside those that are reserved.
    pub fn room(&self) -> u64 {
        self.limit - self.lock().reserved
    }

    /// The most bytes that were reserved at a time.
    pub fn peak(&self) -> u64 {
        self.lock().peak
    }

    /// Adds a task that holds `bytes` of what was reserved; returns its number. After a failure only tasks that must run
    /// are added: then the others get the error, and their room is given back.
    pub fn push(&self, task: T, bytes: u64, ticket: bool) -> Result<u64> {
        let mut state = self.lock();
        if let Err(error) = state.check().and_then(|()| state.check_open())
            && !task.must_run()
        {
            state.reserved -= bytes;
            self.tell_callers(state);
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
        state.tasks.insert(number, Entry { task: Arc::new(task), behind, bytes });
        let sleeps = behind == 0 && state.threads > 0;
        drop(state);
        if sleeps {
            self.work.notify_one();
        }
        Ok(number)
    }

    /// The next task for a thread, waiting for one. `None`: there will be no more.
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

    /// Says how a task that was taken ended. The thread has dropped its own reference to the task before.
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
        // Not under the lock: tasks may give room back when they are dropped.
        drop((ended, given_up));
        if callers {
            self.changed.notify_all();
        }
        if threads {
            self.work.notify_all();
        }
        wake.into_iter().for_each(Waker::wake);
    }

    /// Waits until no task is left for which `fits` holds.
    pub fn wait_while(&self, fits: impl Fn(&T) -> bool) {
        // Later tasks are not waited for.
        let mut state = self.lock();
        let awaited: Vec<u64> =
            state.tasks.iter().filter(|(_, entry)| fits(&entry.task)).map(|(number, _)| *number).collect();
        if !awaited.is_empty() {
            state = self.wait_gone(state, &awaited);
        }
        drop(state);
    }

    /// Whether a task is left whose number is at most this one.
    pub fn any_up_to(&self, last: u64) -> bool {
        self.lock().tasks.first_key_value().is_some_and(|(first, _)| *first <= last)
    }

    /// Waits until no task is left whose number is at most this one.
    pub fn wait_for_earlier(&self, last: u64) {
        self.wait(self.lock(), |state| {
            state.tasks.first_key_value().is_none_or(|(first, _)| *first > last).then_some(())
        });
    }

    fn wait_gone<'a>(&'a self, mut state: MutexGuard<'a, State<T>>, awaited: &[u64]) -> MutexGuard<'a, State<T>> {
        while awaited.iter().any(|number| state.tasks.contains_key(number)) {
            state = self.sleep(state);
        }
        state
    }

    /// The tasks that have not ended and for which `fits` holds, in their order.
    pub fn those(&self, fits: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let state = self.lock();
        state.tasks.values().filter(|entry| fits(&entry.task)).map(|entry| entry.task.clone()).collect()
    }

    /// Bytes that may be reserved.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether a task is left for which `fits` holds.
    pub fn any(&self, fits: impl Fn(&T) -> bool) -> bool {
        self.lock().tasks.values().any(|entry| fits(&entry.task))
    }

    /// Fails if a task has failed, with words about it.
    pub fn check(&self) -> Result<()> {
        self.lock().check()
    }

    /// The errors that nobody has heard of yet, as one.
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

    /// No task will be pushed any more; threads leave when all have ended.
    pub fn finish(&self) {
        self.lock().ending = true;
        self.work.notify_all();
    }

    /// Looks at the end of a task with a ticket. Ready once.
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

    /// Nobody will ask about this task: its error is told with the others.
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
        Some(entry)
    }

    /// Later tasks that followed an ended one may be ready now.
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

    /// Hands an end to the ticket, or keeps the error. Returns who waits for it.
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

    /// Takes out the tasks that wait and need not run.
    fn give_up_waiting(&mut self, wake: &mut Vec<Waker>, given_up: &mut Vec<Entry<T>>) {
        let Some((kind, words)) = self.failure.clone() else { return };
        // Whoever is behind another, or ready and not taken, has not begun.
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

/// The error of whatever comes after a failure.
fn refused(kind: ErrorKind, words: &str) -> Error {
    let first = words.lines().next().unwrap_or_default();
    Error::new(kind, "access", format!("refused, because an operation in the background failed before: {first}"))
        .backend("background")
        .hint("close the container, remove the cause, and write the data anew")
}
