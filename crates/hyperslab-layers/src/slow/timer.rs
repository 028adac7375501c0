//! Timer for futures: one thread, started by the first future that waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

/// Stops its thread when dropped.
#[derive(Debug, Default)]
pub(super) struct Timer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Ordered by time, and by a number that distinguishes equal times.
    waiting: BTreeMap<(Instant, u64), Waker>,
    numbers: u64,
    running: bool,
    over: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut state = self.state();
        while !state.over {
            let now = Instant::now();
            let first = state.waiting.first_key_value().map(|((when, _), _)| *when);
            state = match first {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(when) if when > now => {
                    self.changed.wait_timeout(state, when - now).unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    let due = state.waiting.pop_first();
                    // Woken outside the lock, which they may take.
                    drop(state);
                    due.into_iter().for_each(|(_, waker)| waker.wake());
                    self.state()
                }
            };
        }
    }
}

impl Timer {
    /// A future that is ready at `when`. Blocks if no thread can be started.
    pub async fn reach(&self, when: Instant) {
        let mut number = None;
        std::future::poll_fn(|context| {
            let mut state = self.0.state();
            if Instant::now() >= when {
                if let Some(number) = number {
                    state.waiting.remove(&(when, number));
                }
                return Poll::Ready(());
            }
            if !state.running {
                let shared = self.0.clone();
                let started = std::thread::Builder::new().name("slow timer".into()).spawn(move || shared.run());
                state.running = started.is_ok();
            }
            if !state.running {
                drop(state);
                super::device::sleep_until(when);
                return Poll::Ready(());
            }
            let number = *number.get_or_insert_with(|| {
                state.numbers += 1;
                state.numbers
            });
            state.waiting.insert((when, number), context.waker().clone());
            self.0.changed.notify_one();
            Poll::Pending
        })
        .await;
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::{EventSet, Request};
    use std::time::Duration;

    #[test]
    fn futures_are_woken_in_the_order_of_their_times() {
        let timer = Arc::new(Timer::default());
        let (begin, mut set) = (Instant::now(), EventSet::new());
        for milliseconds in [30, 10, 20, 0, 10] {
            let (timer, when) = (timer.clone(), begin + Duration::from_millis(milliseconds));
            set.insert(Request::pending(async move {
                timer.reach(when).await;
                assert!(Instant::now() >= when);
                Ok(())
            }));
        }
        assert!(set.wait_all(None).is_empty() && set.is_empty());
        assert!(begin.elapsed() >= Duration::from_millis(30));
        assert!(timer.0.state().waiting.is_empty());
    }

    #[test]
    fn a_future_that_nobody_waits_for_leaves_nothing_behind() {
        let timer = Arc::new(Timer::default());
        let theirs = timer.clone();
        let when = Instant::now() + Duration::from_millis(5);
        let mut request = Request::pending(async move {
            theirs.reach(when).await;
            Ok(())
        });
        assert!(request.test().is_none());
        drop(request);
        super::super::device::sleep_until(when + Duration::from_millis(5));
        while !timer.0.state().waiting.is_empty() {
            std::thread::yield_now();
        }
    }
}
