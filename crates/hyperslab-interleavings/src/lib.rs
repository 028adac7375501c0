//! The queue of background transfers (`hyperslab-layers`) with every order in which threads can meet in it, tried one after
//! the other by `loom`. The queue's own file is compiled here against loom's locks instead of the standard library's, in a
//! crate of its own so that nothing else needs building for it.

#[cfg(test)]
#[path = "../../hyperslab-layers/src/background/queue.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod queue;

#[cfg(test)]
mod loom_shim {
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::queue::{Queue, Task};
    use hyperslab_core::{Error, Result};
    use loom::thread;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Waker};

    /// Writes an element; fails if told to.
    #[derive(Debug)]
    struct Write {
        element: u32,
        value: u32,
        fails: bool,
        collective: bool,
    }

    impl Task for Write {
        fn follows(&self, earlier: &Self) -> bool {
            self.element == earlier.element || (self.collective && earlier.collective)
        }
        fn must_run(&self) -> bool {
            self.collective
        }
        fn words(&self) -> String {
            format!("element {}", self.element)
        }
    }

    fn write(element: u32, value: u32) -> Write {
        Write { element, value, fails: false, collective: false }
    }

    /// What was written, in order.
    type Log = Arc<Mutex<Vec<(u32, u32)>>>;

    fn worker(queue: &Arc<Queue<Write>>, log: &Log) -> thread::JoinHandle<()> {
        let (queue, log) = (queue.clone(), log.clone());
        thread::spawn(move || {
            while let Some(taken) = queue.take() {
                let (element, value) = (taken.task.element, taken.task.value);
                let skipped = taken.after_failure && taken.task.collective;
                let fails = taken.task.fails && !skipped;
                if !fails && !skipped {
                    log.lock().unwrap().push((element, value));
                }
                let number = taken.number;
                drop(taken);
                queue.end(number, if fails { Err(Error::invalid("write", "no")) } else { Ok(()) });
            }
        })
    }

    fn push(queue: &Queue<Write>, task: Write, ticket: bool) -> Result<u64> {
        assert!(queue.reserve(1)?);
        queue.push(task, 1, ticket)
    }

    /// Models with two workers need a bound, or they take hours.
    fn model(threads_switch: Option<usize>, test: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = threads_switch;
        builder.check(test);
    }

    #[test]
    fn overlapping_writes_keep_their_order_on_two_threads() {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        model(Some(3), || {
            RUNS.fetch_add(1, Ordering::Relaxed);
            let (queue, log) = (Arc::new(Queue::new(8, false)), Log::default());
            let workers = [worker(&queue, &log), worker(&queue, &log)];
            for (element, value) in [(1, 1), (2, 1), (1, 2)] {
                push(&queue, write(element, value), false).unwrap();
            }
            queue.wait_while(|task| task.element == 1);
            let seen = log.lock().unwrap().clone();
            let position = |wanted| seen.iter().position(|found| *found == wanted);
            assert!(position((1, 1)).unwrap() < position((1, 2)).unwrap(), "{seen:?}");
            queue.finish();
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            assert_eq!(log.lock().unwrap().len(), 3);
            queue.take_error().unwrap();
        });
        assert!(RUNS.load(Ordering::Relaxed) > 100, "only {RUNS:?} orders were tried");
    }

    #[test]
    fn a_full_queue_makes_callers_wait_and_not_for_ever() {
        model(Some(3), || {
            let (queue, log) = (Arc::new(Queue::new(1, true)), Log::default());
            let worker = worker(&queue, &log);
            for value in 0..3 {
                push(&queue, write(0, value), false).unwrap();
            }
            assert!(!queue.reserve(2).unwrap(), "never fits");
            queue.finish();
            worker.join().unwrap();
            assert_eq!(*log.lock().unwrap(), [(0, 0), (0, 1), (0, 2)]);
            assert_eq!((queue.peak(), queue.room()), (1, 1));
        });
    }

    #[test]
    fn a_failure_is_told_once_and_ends_what_waits() {
        model(Some(3), || {
            let (queue, log) = (Arc::new(Queue::new(2, true)), Log::default());
            let worker = worker(&queue, &log);
            let first = push(&queue, Write { fails: true, ..write(1, 1) }, true).unwrap();
            // Refused at once, or given up later: an error either way, and no hang.
            let second = push(&queue, write(1, 2), false);
            let third = push(&queue, write(2, 1), false);
            let collective = Write { collective: true, ..write(3, 1) };
            queue.push(collective, 0, false).unwrap();
            queue.wait_while(|_| true);
            let mut context = Context::from_waker(Waker::noop());
            let Poll::Ready(result) = queue.poll(first, &mut context) else { panic!("it has ended") };
            assert!(result.unwrap_err().to_string().contains("no"));
            assert!(queue.check().is_err());
            assert_eq!(queue.take_error().is_err(), second.is_ok() || third.is_ok());
            queue.take_error().unwrap();
            queue.finish();
            worker.join().unwrap();
            assert!(log.lock().unwrap().is_empty(), "nothing was written after the failure");
            assert_eq!(queue.room(), 2, "all room was given back");
        });
    }

    #[test]
    fn a_dropped_ticket_leaves_its_error_to_the_next_flush() {
        model(None, || {
            let (queue, log) = (Arc::new(Queue::new(1, true)), Log::default());
            let worker = worker(&queue, &log);
            let number = push(&queue, Write { fails: true, ..write(1, 1) }, true).unwrap();
            queue.forget(number);
            queue.wait_while(|_| true);
            assert!(queue.take_error().is_err());
            queue.take_error().unwrap();
            queue.finish();
            worker.join().unwrap();
        });
    }

    #[test]
    fn callers_on_two_threads_share_the_room() {
        model(Some(2), || {
            let (queue, log) = (Arc::new(Queue::new(1, true)), Log::default());
            let worker = worker(&queue, &log);
            let other = {
                let queue = queue.clone();
                thread::spawn(move || push(&queue, write(1, 1), false).map(drop).unwrap())
            };
            push(&queue, write(2, 1), false).unwrap();
            other.join().unwrap();
            queue.finish();
            worker.join().unwrap();
            assert_eq!(log.lock().unwrap().len(), 2);
        });
    }
}
