//! Containers of the layer.

use super::array::{ArrayState, AsyncArray};
use super::options::Options;
use crate::array_key::ArrayKey;
use crate::background::{ArrayHandle, Engine, Job, Staging};
use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Communicator, Container, Durability, Hierarchy, OpenMode, Result,
    Telemetry, agree,
};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// Maximum number of arrays closed by the program and still open below.
const MOST_CLOSING: usize = 32;
/// Minimum background time for a judgement of the benefit.
const WORTH_SAYING: Duration = Duration::from_millis(50);
/// Share of the background time, spent on copying and waiting, beyond which there is hardly any benefit: copies also slow
/// the background down.
const WORTH_WHILE: f64 = 0.8;

/// The state shared by a container and its arrays on one rank.
#[derive(Debug)]
pub(super) struct Shared {
    pub engine: Engine,
    /// The journal of staged writes, if not in memory.
    pub staging: Option<Arc<Staging>>,
    /// The program's communicator; the format below has its own.
    comm: Arc<dyn Communicator>,
    pub options: Options,
    /// Open read-only: prefetched data never becomes stale.
    pub read_only: bool,
    /// Whether background I/O is off, since MPI does not allow it.
    pub synchronous: bool,
    /// Whether the format below can write some fields of elements.
    pub partial_fields: bool,
    /// Whether the format below prefetches by itself.
    pub hands_hints_on: bool,
    closing: Mutex<VecDeque<Arc<ArrayHandle>>>,
    /// Arrays that are open.
    names: Mutex<HashMap<ArrayKey, Weak<ArrayState>>>,
    closed: AtomicBool,
}

impl Shared {
    /// `comm` is the program's communicator, `background` that of the format below.
    pub fn new(
        how: OpenMode,
        comm: Arc<dyn Communicator>,
        background: Arc<dyn Communicator>,
        options: Options,
        memory: u64,
    ) -> Self {
        Self {
            engine: Engine::new(options.threads, memory, options.lag, background),
            staging: None,
            synchronous: !comm.many_threads(),
            comm,
            options,
            read_only: how == OpenMode::Read,
            partial_fields: false,
            hands_hints_on: false,
            closing: Mutex::default(),
            names: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// Runs a collective call of the format below on this thread, in order with collective writes. An earlier failure of
    /// one rank fails all.
    pub fn together<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.is_closed() {
            agree(&*self.comm, self.engine.check())?;
            self.before_collective();
        }
        call()
    }

    /// Waits for writes for which `fits` holds, and ensures that recovery does not replay them. Collective.
    pub fn clear_for(&self, fits: impl Fn(&Job) -> bool) -> Result<()> {
        let Some(staging) = &self.staging else {
            self.engine.wait_while(fits);
            return Ok(());
        };
        self.engine.drain();
        agree(&*self.comm, self.engine.check().and_then(|()| staging.clear()))
    }

    /// Publishes metadata of new objects, so that recovery finds them. Collective.
    pub fn publish_metadata(&self) -> Result<()> {
        self.staging.as_ref().map_or(Ok(()), |staging| staging.publish_metadata())
    }

    /// Waits for collective writes, and drops prefetched data that other ranks may have changed.
    pub fn before_collective(&self) {
        self.engine.wait_while(Job::is_collective);
        if !self.read_only {
            self.engine.forget_prefetched();
        }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes an array once its writes are complete. Collective.
    pub fn close_later(&self, place: Arc<ArrayHandle>) -> Result<()> {
        self.lock_closing().push_back(place);
        self.close_arrays(MOST_CLOSING)
    }

    /// Closes the oldest closing arrays until `left` are left. Collective, with the same number on every rank.
    fn close_arrays(&self, left: usize) -> Result<()> {
        let mut result = Ok(());
        while let Some(place) = self.next_to_close(left) {
            self.engine.wait_while(|job| Arc::ptr_eq(job.place(), &place) || job.is_collective());
            let closed = place.array.close().map_err(|error| error.target(&place.name));
            result = result.and(closed);
        }
        result
    }

    fn next_to_close(&self, left: usize) -> Option<Arc<ArrayHandle>> {
        let mut closing = self.lock_closing();
        if closing.len() > left { closing.pop_front() } else { None }
    }

    fn lock_closing(&self) -> MutexGuard<'_, VecDeque<Arc<ArrayHandle>>> {
        self.closing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of an array, shared by its handles.
    fn named(&self, known: &ArrayKey, spec: ArraySpec) -> Arc<ArrayState> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = names.get(known).and_then(Weak::upgrade) {
            named.set_spec(spec);
            return named;
        }
        let named = Arc::new(ArrayState::new(spec));
        if names.len() == names.capacity() {
            names.retain(|_, named| named.strong_count() > 0);
        }
        names.insert(known.clone(), Arc::downgrade(&named));
        named
    }
}

/// A container of one rank.
#[derive(Debug)]
pub(crate) struct AsyncContainer {
    pub(super) inner: Arc<dyn Container>,
    pub(super) shared: Arc<Shared>,
}

impl AsyncContainer {
    /// Waits for this rank's transfers, and drops prefetched data: until the next transfer through this container, others
    /// may use the one below. Errors are kept for the next call.
    pub fn come_to_rest(&self) {
        self.shared.engine.drain();
        self.shared.engine.forget_prefetched();
    }

    /// Fails after a background failure, and in a forked child.
    pub fn check(&self) -> Result<()> {
        self.shared.engine.check()
    }

    /// Whether the queue is empty.
    pub fn is_idle(&self) -> bool {
        self.shared.engine.waiting(|_| true).is_empty()
    }

    /// Bytes of completed background transfers, and their time.
    pub fn done(&self) -> (u64, Duration) {
        self.shared.engine.times().done()
    }

    fn wrap(&self, name: &str, inner: Arc<dyn Array>) -> Result<Arc<dyn Array>> {
        let place = ArrayHandle::new(inner, name);
        let named = self.shared.named(&place.known, place.array.spec()?);
        Ok(Arc::new(AsyncArray::new(place, named, self.shared.clone())))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for AsyncContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.wrap(name, self.shared.together(|| self.inner.array(name))?)
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn write_back(&self) -> Result<()> {
        if !self.shared.is_closed() {
            self.shared.engine.drain();
            self.shared.engine.check()?;
        }
        self.inner.write_back()
    }

    fn flush(&self, how: Durability) -> Result<()> {
        if self.shared.is_closed() {
            return self.inner.flush(how);
        }
        self.shared.engine.drain();
        let drained = self.shared.engine.take_error().and_then(|()| self.shared.engine.check());
        agree(&*self.shared.comm, drained)?;
        self.shared.before_collective();
        let closed = self.shared.close_arrays(0);
        let flushed = match &self.shared.staging {
            None => self.inner.flush(how),
            Some(staging) => staging.flush(how),
        };
        closed.and(flushed)
    }

    /// Every rank makes the same collective calls below, whatever failed before.
    fn close(&self) -> Result<()> {
        if self.shared.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.shared.engine.stop();
        let drained = self.shared.engine.take_error();
        let arrays = self.shared.close_arrays(0);
        let closed = self.inner.close();
        let closed = drained.and(arrays).and(closed);
        let Some(staging) = &self.shared.staging else { return closed };
        closed.and_then(|()| staging.finish()).map_err(|error| staging.explain(error))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for AsyncContainer {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, attribute, attributes]);

    fn create_group(&self, name: &str) -> Result<()> {
        self.shared.together(|| self.inner.create_group(name))
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let create = || self.inner.create(name, spec).and_then(|array| self.shared.publish_metadata().map(|()| array));
        self.wrap(name, self.shared.together(create)?)
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.shared.together(|| self.inner.set_attribute(object, name, value))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for AsyncContainer {
    hyperslab_core::forward!(self, self.inner.telemetry(), [explain]);

    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics = self.inner.diagnostics();
        if self.shared.synchronous {
            diagnostics.push(
                "nothing was done in the background: this MPI library does not allow calls of several threads \
                 (MPI_THREAD_MULTIPLE)"
                    .into(),
            );
        }
        if let Some(why) = self.shared.staging.as_ref().and_then(|staging| staging.stopped()) {
            diagnostics.push(format!("writes were no longer staged, and went straight to the storage: {why}"));
        }
        if let Some(staging) = self.shared.staging.as_ref().filter(|_| self.shared.is_closed()) {
            diagnostics.extend(staging.left_over());
        }
        let background = self.background();
        let cost = self.shared.engine.times().copying() + background.waited;
        if background.busy > WORTH_SAYING && cost.as_secs_f64() > background.busy.as_secs_f64() * WORTH_WHILE {
            diagnostics.push(format!(
                "{} is the wrong tool here: copying and waiting took {:.3} s, for {:.3} s of I/O in the background; leave \
                 it out, or compute between transfers",
                self.shared.options.layer,
                cost.as_secs_f64(),
                background.busy.as_secs_f64()
            ));
        }
        diagnostics
    }

    fn background(&self) -> BackgroundStats {
        let mut background = self.shared.engine.background();
        background += self.inner.background();
        background
    }
}
