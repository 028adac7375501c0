//! Containers on the emulated device.

use super::array::SlowArray;
use super::device::{Device, sleep_until};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Container, Durability, Hierarchy, Result, Telemetry, units::display_size,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The state shared by a container and its arrays on one rank.
#[derive(Debug)]
pub(super) struct Shared {
    pub device: Arc<Device>,
    /// Number of processes that share the rate.
    sharers: u64,
    /// Completion time of everything submitted.
    submitted: Mutex<Instant>,
}

impl Shared {
    pub fn new(device: Arc<Device>, sharers: u64) -> Self {
        Self { device, sharers, submitted: Mutex::new(Instant::now()) }
    }

    /// Submits a transfer; returns its completion time. An empty transfer is no request.
    pub fn transfer(&self, bytes: u64) -> Option<Instant> {
        (bytes > 0).then(|| self.device.transfer(bytes, self.sharers))
    }

    /// Notes that the caller continues before `complete`.
    pub fn note_submitted(&self, complete: Instant) {
        let mut submitted = self.submitted.lock().unwrap_or_else(PoisonError::into_inner);
        *submitted = submitted.max(complete);
    }

    /// Runs a call that takes one latency, and waits for everything submitted.
    fn answer_after_submitted<T>(&self, call: impl FnOnce() -> T) -> T {
        let value = self.device.answer(call);
        sleep_until(*self.submitted.lock().unwrap_or_else(PoisonError::into_inner));
        value
    }
}

/// A container of one rank.
#[derive(Debug)]
pub(super) struct SlowContainer {
    pub inner: Arc<dyn Container>,
    pub shared: Arc<Shared>,
}

impl SlowContainer {
    fn wrap(&self, inner: Arc<dyn Array>) -> Arc<dyn Array> {
        Arc::new(SlowArray::new(inner, self.shared.clone()))
    }

    fn answer<T>(&self, call: impl FnOnce() -> T) -> T {
        self.shared.device.answer(call)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for SlowContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.answer(|| self.inner.array(name)).map(|inner| self.wrap(inner))
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn write_back(&self) -> Result<()> {
        self.shared.answer_after_submitted(|| self.inner.write_back())
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.shared.answer_after_submitted(|| self.inner.flush(how))
    }

    fn close(&self) -> Result<()> {
        self.shared.answer_after_submitted(|| self.inner.close())
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for SlowContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.answer(|| self.inner.arrays())
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.answer(|| self.inner.groups())
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.answer(|| self.inner.create_group(name))
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.answer(|| self.inner.create(name, spec)).map(|inner| self.wrap(inner))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.answer(|| self.inner.set_attribute(object, name, value))
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.answer(|| self.inner.attribute(object, name))
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.answer(|| self.inner.attributes(object))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for SlowContainer {
    hyperslab_core::forward!(self, self.inner.telemetry(), [background, explain]);

    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics = self.inner.diagnostics();
        let options = self.shared.device.options;
        diagnostics.push(format!(
            "slow emulates storage of {}/s and {:?} per request: times say nothing about the real storage",
            display_size(options.rate),
            options.latency
        ));
        diagnostics
    }
}
