//! Operations in flight, single and in sets.

use crate::Result;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// An operation in flight. Its error is returned once, by the first method that observes completion; the error of a dropped
/// request is reported by the next flush or close. Also a future, for programs with an executor.
pub struct Request(Option<Pin<Box<dyn Future<Output = Result<()>> + Send>>>);

impl Request {
    /// Already complete.
    pub fn done() -> Self {
        Self(None)
    }

    /// Completes when `operation` does.
    pub fn pending(operation: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self(Some(Box::pin(operation)))
    }

    /// Waits for completion.
    pub fn wait(mut self) -> Result<()> {
        self.wait_until(None).unwrap_or(Ok(()))
    }

    /// Waits for completion, at most `limit`. `None`: still in flight.
    pub fn wait_for(&mut self, limit: Duration) -> Option<Result<()>> {
        self.wait_until(deadline(limit))
    }

    /// The result, if it is complete. Never blocks.
    pub fn test(&mut self) -> Option<Result<()>> {
        self.ask(Waker::noop())
    }

    fn wait_until(&mut self, deadline: Option<Instant>) -> Option<Result<()>> {
        let waker = this_thread();
        wait(deadline, || self.ask(&waker))
    }

    fn ask(&mut self, waker: &Waker) -> Option<Result<()>> {
        match Pin::new(self).poll(&mut Context::from_waker(waker)) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

impl Future for Request {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let Some(operation) = &mut self.0 else { return Poll::Ready(Ok(())) };
        let result = std::task::ready!(operation.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(result)
    }
}

impl Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Request(pending)" } else { "Request(done)" })
    }
}

/// A set of requests to wait for. A request leaves the set when its result has been returned.
#[derive(Debug, Default)]
pub struct EventSet {
    requests: Vec<(usize, Request)>,
    inserted: usize,
}

impl EventSet {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request; returns its number, counting from 0.
    pub fn insert(&mut self, request: Request) -> usize {
        let number = self.inserted;
        self.requests.push((number, request));
        self.inserted += 1;
        number
    }

    /// Requests whose result has not been returned yet.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether no request is left.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// A completed request and its result, if there is one. Never blocks.
    pub fn test(&mut self) -> Option<(usize, Result<()>)> {
        self.ask(Waker::noop())
    }

    /// Waits until a request completes, at most `limit`. `None`: timed out, or the set is empty.
    pub fn wait_any(&mut self, limit: Option<Duration>) -> Option<(usize, Result<()>)> {
        if self.is_empty() {
            return None;
        }
        let waker = this_thread();
        wait(limit.and_then(deadline), || self.ask(&waker))
    }

    /// Waits until all requests complete, at most `limit`. Returns those that failed; the rest of the set is still in flight.
    pub fn wait_all(&mut self, limit: Option<Duration>) -> Vec<(usize, crate::Error)> {
        let (deadline, mut failed) = (limit.and_then(deadline), Vec::new());
        let mut in_flight = Vec::new();
        for (number, mut request) in std::mem::take(&mut self.requests) {
            match request.wait_until(deadline) {
                None => in_flight.push((number, request)),
                Some(Ok(())) => {}
                Some(Err(error)) => failed.push((number, error)),
            }
        }
        self.requests = in_flight;
        failed
    }

    fn ask(&mut self, waker: &Waker) -> Option<(usize, Result<()>)> {
        let mut ends = self.requests.iter_mut().enumerate();
        let (at, result) = ends.find_map(|(at, (_, request))| Some((at, request.ask(waker)?)))?;
        Some((self.requests.remove(at).0, result))
    }
}

/// `None`, meaning no deadline, if it lies beyond the range of the clock.
fn deadline(limit: Duration) -> Option<Instant> {
    Instant::now().checked_add(limit)
}

/// Polls whenever this thread is unparked, until there is an answer or the deadline has passed.
fn wait<T>(deadline: Option<Instant>, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            None => std::thread::park(),
            Some(Duration::ZERO) => return None,
            Some(left) => std::thread::park_timeout(left),
        }
    }
}

/// A waker that unparks the waiting thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn this_thread() -> Waker {
    Waker::from(Arc::new(Unpark(std::thread::current())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Error;
    use std::sync::Mutex;

    /// An operation completed by the test.
    #[derive(Clone, Default)]
    struct Switch(Arc<Mutex<SwitchState>>);

    #[derive(Default)]
    struct SwitchState {
        end: Option<Result<()>>,
        waker: Option<Waker>,
    }

    impl Switch {
        fn complete(&self, result: Result<()>) {
            let waker = {
                let mut state = self.0.lock().unwrap();
                state.end = Some(result);
                state.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        }
        fn request(&self) -> Request {
            let state = self.0.clone();
            Request::pending(std::future::poll_fn(move |context| {
                let mut state = state.lock().unwrap();
                state.waker = Some(context.waker().clone());
                state.end.take().map_or(Poll::Pending, Poll::Ready)
            }))
        }
    }

    fn failed() -> Result<()> {
        Err(Error::invalid("write", "no"))
    }

    #[test]
    fn a_request_tells_its_end_once() {
        let switch = Switch::default();
        let mut request = switch.request();
        assert!(request.test().is_none() && request.wait_for(Duration::from_millis(1)).is_none());
        switch.complete(failed());
        assert!(request.test().unwrap().is_err());
        assert!(request.test().unwrap().is_ok() && request.wait().is_ok());
        assert!(Request::done().wait().is_ok());
    }

    #[test]
    fn waiting_ends_when_another_thread_completes() {
        let switch = Switch::default();
        let request = switch.request();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| request.wait());
            switch.complete(failed());
            assert!(waiting.join().unwrap().is_err());
        });
    }

    #[test]
    fn sets_tell_each_request_once() {
        let (mut set, switches) = (EventSet::new(), [Switch::default(), Switch::default(), Switch::default()]);
        assert!(set.wait_any(None).is_none() && set.wait_all(None).is_empty());
        for (number, switch) in switches.iter().enumerate() {
            assert_eq!(set.insert(switch.request()), number);
        }
        assert!(set.test().is_none() && set.wait_any(Some(Duration::from_millis(1))).is_none());
        switches[1].complete(failed());
        let (number, result) = set.wait_any(None).unwrap();
        assert!(number == 1 && result.is_err() && set.len() == 2);
        switches[2].complete(failed());
        let failures = set.wait_all(Some(Duration::from_millis(1)));
        assert_eq!(failures.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2]);
        assert_eq!(set.len(), 1);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| set.wait_all(None).len());
            switches[0].complete(Ok(()));
            assert_eq!(waiting.join().unwrap(), 0);
        });
        assert!(set.is_empty());
    }
}
