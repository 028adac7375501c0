//! An open container behind the layer.

use super::array::AutoArray;
use super::choice::{Choice, Each};
use super::pilot::Pilot;
use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Communicator, Container, Durability, Result, agree,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One rank's container.
#[derive(Debug)]
pub(super) struct AutoContainer {
    pub pilot: Arc<Pilot>,
    pub comm: Arc<dyn Communicator>,
    /// Held while an array is opened by every way.
    pub opening: Mutex<()>,
    pub closed: AtomicBool,
    /// What went wrong with the history.
    pub wrong: Mutex<Vec<String>>,
}

impl AutoContainer {
    /// Opens an array by the way in use, as `open` says, and then by the others.
    fn open_array(
        &self,
        name: &str,
        open: impl FnOnce(&dyn Container) -> Result<Arc<dyn Array>>,
    ) -> Result<Arc<dyn Array>> {
        let _one = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let trip = self.pilot.call_together(false);
        let (ways, way) = (&self.pilot.ways, trip.way());
        ways.one.forget_latest();
        let mut by: Each<Option<Arc<dyn Array>>> = [None, None, None];
        let first = agree(&*self.comm, open(ways.container(way)))?;
        let element = first.spec().map(|spec| spec.dtype.size());
        by[way.index()] = Some(first);
        let mut result = element;
        for other in ways.all().filter(|other| *other != way) {
            match ways.container(other).array(name) {
                Ok(array) => by[other.index()] = Some(array),
                Err(error) => result = result.and(Err(error)),
            }
        }
        ways.one.forget_latest();
        let element = agree(&*self.comm, result)?;
        let (pilot, comm, closed) = (self.pilot.clone(), self.comm.clone(), AtomicBool::new(false));
        Ok(Arc::new(AutoArray { by, element, pilot, comm, closed }))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for AutoContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        let trip = self.pilot.call();
        self.pilot.ways.container(trip.way()).arrays()
    }

    fn groups(&self) -> Result<Vec<String>> {
        let trip = self.pilot.call();
        self.pilot.ways.container(trip.way()).groups()
    }

    fn create_group(&self, name: &str) -> Result<()> {
        let trip = self.pilot.call();
        self.pilot.ways.container(trip.way()).create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.open_array(name, |container| container.create(name, spec))
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.open_array(name, |container| container.array(name))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        let trip = self.pilot.call();
        self.pilot.ways.container(trip.way()).set_attribute(object, name, value)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        let trip = self.pilot.call();
        self.pilot.ways.container(trip.way()).attribute(object, name)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        let trip = self.pilot.call();
        self.pilot.ways.container(trip.way()).attributes(object)
    }

    fn diagnostics(&self) -> Vec<String> {
        let ways = &self.pilot.ways;
        let mut diagnostics = ways.one.container().diagnostics();
        if ways.has(Choice::Log) {
            diagnostics.extend(ways.container(Choice::Log).diagnostics());
        }
        diagnostics.extend(self.pilot.summary());
        diagnostics.extend(self.wrong.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned());
        diagnostics
    }

    fn background(&self) -> BackgroundStats {
        let ways = &self.pilot.ways;
        let mut background = ways.one.container().background();
        ways.all().filter(|way| *way != Choice::Sync).for_each(|way| background += ways.container(way).background());
        background
    }

    fn write_back(&self) -> Result<()> {
        let trip = self.pilot.call();
        let settled = self.pilot.ways.container(trip.way()).write_back();
        self.pilot.settled();
        settled
    }

    fn flush(&self, how: Durability) -> Result<()> {
        let trip = self.pilot.call_together(true);
        let flushed = self.pilot.ways.container(trip.way()).flush(how);
        self.pilot.settled();
        flushed.and(self.pilot.take_trouble())
    }

    /// Every rank makes the same collective calls of the format below, whatever went wrong before.
    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        {
            // So that the time before it counts.
            let _trip = self.pilot.call();
        }
        let wrong = self.pilot.finish();
        let closed = self.pilot.ways.close();
        let lost = wrong.map(|why| format!("auto: what was learnt is not kept: {why}"));
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).extend(lost);
        closed.and(self.pilot.take_trouble())
    }
}
