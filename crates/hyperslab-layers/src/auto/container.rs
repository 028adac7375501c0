//! Containers of the layer.

use super::array::AutoArray;
use super::choice::{Choice, Each};
use super::controller::Controller;
use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Communicator, Container, Durability, Hierarchy, Result, Telemetry,
    agree,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One rank's container.
#[derive(Debug)]
pub(super) struct AutoContainer {
    pub controller: Arc<Controller>,
    pub comm: Arc<dyn Communicator>,
    /// Serialises opening an array with every strategy.
    pub opening: Mutex<()>,
    pub closed: AtomicBool,
    /// Errors of the history, as diagnostics.
    pub wrong: Mutex<Vec<String>>,
}

impl AutoContainer {
    /// Opens an array with the present strategy, and then with the others.
    fn open_array(
        &self,
        name: &str,
        open: impl FnOnce(&dyn Container) -> Result<Arc<dyn Array>>,
    ) -> Result<Arc<dyn Array>> {
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let trip = self.controller.collective_call(false);
        let (strategies, way) = (&self.controller.strategies, trip.way());
        strategies.one.forget_latest();
        let mut by: Each<Option<Arc<dyn Array>>> = [None, None, None];
        let first = agree(&*self.comm, open(strategies.container(way)))?;
        let element = first.spec().map(|spec| spec.dtype.size());
        by[way.index()] = Some(first);
        let mut result = element;
        for other in strategies.all().filter(|other| *other != way) {
            match strategies.container(other).array(name) {
                Ok(array) => by[other.index()] = Some(array),
                Err(error) => result = result.and(Err(error)),
            }
        }
        strategies.one.forget_latest();
        let element = agree(&*self.comm, result)?;
        let (controller, comm, closed) = (self.controller.clone(), self.comm.clone(), AtomicBool::new(false));
        Ok(Arc::new(AutoArray { by, element, controller, comm, closed }))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for AutoContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.open_array(name, |container| container.array(name))
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn write_back(&self) -> Result<()> {
        let trip = self.controller.call();
        let drained = self.controller.strategies.container(trip.way()).write_back();
        self.controller.drained();
        drained
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let trip = self.controller.collective_call(true);
        let flushed = self.controller.strategies.container(trip.way()).flush(how);
        self.controller.drained();
        flushed.and(self.controller.take_error())
    }

    /// Every rank makes the same collective calls below, whatever failed before.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        {
            // So that the time before it counts.
            let _trip = self.controller.call();
        }
        let wrong = self.controller.finish();
        let closed = self.controller.strategies.close();
        let lost = wrong.map(|why| format!("auto: what was learnt is not kept: {why}"));
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).extend(lost);
        closed.and(self.controller.take_error())
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for AutoContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        let trip = self.controller.call();
        self.controller.strategies.container(trip.way()).arrays()
    }

    fn groups(&self) -> Result<Vec<String>> {
        let trip = self.controller.call();
        self.controller.strategies.container(trip.way()).groups()
    }

    fn create_group(&self, name: &str) -> Result<()> {
        let trip = self.controller.call();
        self.controller.strategies.container(trip.way()).create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.open_array(name, |container| container.create(name, spec))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let trip = self.controller.call();
        self.controller.strategies.container(trip.way()).set_attribute(object, name, value)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        let trip = self.controller.call();
        self.controller.strategies.container(trip.way()).attribute(object, name)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        let trip = self.controller.call();
        self.controller.strategies.container(trip.way()).attributes(object)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for AutoContainer {
    hyperslab_core::forward!(self, self.controller.strategies.one.container().telemetry(), [explain]);

    fn diagnostics(&self) -> Vec<String> {
        let strategies = &self.controller.strategies;
        let mut diagnostics = strategies.one.container().diagnostics();
        if strategies.has(Choice::Log) {
            diagnostics.extend(strategies.container(Choice::Log).diagnostics());
        }
        diagnostics.extend(self.controller.summary());
        diagnostics.extend(self.wrong.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        diagnostics
    }

    fn background(&self) -> BackgroundStats {
        let strategies = &self.controller.strategies;
        let mut background = strategies.one.container().background();
        strategies
            .all()
            .filter(|way| *way != Choice::Sync)
            .for_each(|way| background += strategies.container(way).background());
        background
    }
}
