//! Containers of the layer.

use super::array::TwoPhaseArray;
use super::options::Options;
use hyperslab_core::{Array, ArraySpec, Communicator, Container, Hierarchy, PageBuffer, Result, Telemetry};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The state shared by a container and its arrays on one rank.
#[derive(Debug)]
pub(super) struct Shared {
    pub comm: Arc<dyn Communicator>,
    pub options: Options,
    /// The ranks of the aggregators.
    pub aggregators: Vec<usize>,
    /// An aggregator's buffer, reused since fresh memory costs as much as filling it.
    buffer: Mutex<PageBuffer>,
    /// Number of collective transfers forwarded to the format below.
    left_to_format: AtomicU64,
}

impl Shared {
    pub fn new(comm: Arc<dyn Communicator>, options: Options, aggregators: Vec<usize>) -> Arc<Self> {
        let (buffer, left_to_format) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { comm, options, aggregators, buffer, left_to_format })
    }

    /// Runs `work` with the buffer. Frees it if it exceeds the option.
    pub fn with_buffer<T>(&self, work: impl FnOnce(&mut PageBuffer) -> T) -> T {
        let mut buffer = std::mem::take(&mut *self.buffer.lock().unwrap_or_else(PoisonError::into_inner));
        let result = work(&mut buffer);
        if buffer.len() as u64 <= self.options.buffer {
            *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = buffer;
        }
        result
    }

    pub fn note_left_to_format(&self) {
        self.left_to_format.fetch_add(1, Ordering::Relaxed);
    }
}

/// A container of one rank.
#[derive(Debug)]
pub(super) struct TwoPhaseContainer {
    pub inner: Arc<dyn Container>,
    pub shared: Arc<Shared>,
}

impl TwoPhaseContainer {
    fn wrap(&self, name: &str, inner: Arc<dyn Array>) -> Arc<dyn Array> {
        Arc::new(TwoPhaseArray { inner, shared: self.shared.clone(), name: name.into() })
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for TwoPhaseContainer {
    hyperslab_core::forward!(self, self.inner, [write_back, flush, close]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.inner.array(name).map(|inner| self.wrap(name, inner))
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for TwoPhaseContainer {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, create_group, set_attribute, attribute, attributes]);

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.inner.create(name, spec).map(|inner| self.wrap(name, inner))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for TwoPhaseContainer {
    hyperslab_core::forward!(self, self.inner.telemetry(), [background, explain]);

    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics = self.inner.diagnostics();
        match self.shared.left_to_format.load(Ordering::Relaxed) {
            0 => {}
            number => diagnostics.push(format!(
                "twophase left {number} collective transfers to the format below: some fields of an element, or chunks \
                 larger than 1 GiB"
            )),
        }
        diagnostics
    }
}
