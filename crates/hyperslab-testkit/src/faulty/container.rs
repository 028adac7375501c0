//! An open container with faults.

use super::array::FaultyArray;
use super::plan::Plan;
use hyperslab_core::{Array, ArraySpec, Attribute, Communicator, Container, Durability, Hierarchy, Result, agree};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

#[derive(Debug)]
pub(super) struct FaultyContainer {
    inner: Arc<dyn Container>,
    plan: Arc<Plan>,
    comm: Arc<dyn Communicator>,
    closed: AtomicBool,
}

impl FaultyContainer {
    pub fn new(inner: Arc<dyn Container>, plan: Arc<Plan>, comm: Arc<dyn Communicator>) -> Self {
        Self { inner, plan, comm, closed: AtomicBool::new(false) }
    }

    /// A collective call: if it fails on one rank, it is made on none.
    fn together(&self, operation: &'static str) -> Result<()> {
        agree(&*self.comm, self.plan.call(operation))
    }

    fn wrap(&self, inner: Arc<dyn Array>) -> Arc<dyn Array> {
        Arc::new(FaultyArray::new(inner, self.plan.clone(), self.comm.clone()))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for FaultyContainer {
    hyperslab_core::forward!(self, self.inner, [telemetry]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.together("open array")?;
        self.inner.array(name).map(|inner| self.wrap(inner))
    }

    fn write_back(&self) -> Result<()> {
        self.plan.call("write_back")?;
        self.inner.write_back()
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.together("flush")?;
        self.inner.flush(how)
    }

    fn close(&self) -> Result<()> {
        if self.closed.swap(true, SeqCst) {
            return Ok(());
        }
        let fault = self.plan.call("close");
        let closed = self.inner.close();
        agree(&*self.comm, fault.and(closed))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for FaultyContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.plan.call("list arrays")?;
        self.inner.arrays()
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.plan.call("list groups")?;
        self.inner.groups()
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.together("create group")?;
        self.inner.create_group(name)
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.together("create")?;
        self.inner.create(name, spec).map(|inner| self.wrap(inner))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.together("set attribute")?;
        self.inner.set_attribute(object, name, value)
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.plan.call("read attribute")?;
        self.inner.attribute(object, name)
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.plan.call("list attributes")?;
        self.inner.attributes(object)
    }
}
