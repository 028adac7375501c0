//! Containers of the layer.

use super::array::TwoPhaseArray;
use super::options::Options;
use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Communicator, Container, Durability, PageBuffer, Result,
};
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
    fn arrays(&self) -> Result<Vec<String>> {
        self.inner.arrays()
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.inner.groups()
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.inner.create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.inner.create(name, spec).map(|inner| self.wrap(name, inner))
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.inner.array(name).map(|inner| self.wrap(name, inner))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.inner.set_attribute(object, name, value)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.inner.attribute(object, name)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.inner.attributes(object)
    }

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

    fn background(&self) -> BackgroundStats {
        self.inner.background()
    }

    fn write_back(&self) -> Result<()> {
        self.inner.write_back()
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.inner.flush(how)
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}
