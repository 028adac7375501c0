//! A format whose n-th call fails, over any other format: what is above must tell its caller, and nobody may hang.
//!
//! Calls are counted from 1 over all ranks, containers and arrays. All methods that can fail count, but not a second
//! close. A fault concerns the one rank that makes the call, and the others are treated as a well-behaved format would:
//!
//! * In a collective transfer the failing rank takes part without elements, so that nobody waits for it.
//! * In other collective calls all ranks hear of the failure before anything happens: the failing rank returns its
//!   error, the others one of kind `Peer`. A container that fails to close is closed all the same.
//! * A panic leaves the others waiting until the failing rank is given up.

mod array;
mod container;
mod plan;

pub use plan::Fault;

use container::FaultyContainer;
use hyperslab_core::{Communicator, Container, Format, OpenMode, Result, agree};
use plan::Plan;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A format with faults. A clone has the same plan and counter, so that a test can keep one.
#[derive(Debug, Clone)]
pub struct Faulty {
    inner: Arc<dyn Format>,
    plan: Arc<Plan>,
}

impl Faulty {
    /// Hands everything on to `inner` until told otherwise.
    pub fn new(inner: Arc<dyn Format>) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// Counts from 1 again, and makes call number `call` fail. Later calls succeed.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.plan.fail_at(call, fault);
    }

    /// Calls since the beginning or the last [`Faulty::fail_at`], failed and blocked ones included.
    pub fn calls(&self) -> u64 {
        self.plan.calls()
    }

    /// Makes every call wait, from now on until [`Faulty::release`].
    pub fn hold(&self) {
        self.plan.hold();
    }

    /// Lets all calls go on that wait, and those to come.
    pub fn release(&self) {
        self.plan.release();
    }

    /// Calls that wait for [`Faulty::release`] now.
    pub fn held(&self) -> usize {
        self.plan.held()
    }

    /// Returns when at least so many calls wait for [`Faulty::release`].
    pub fn wait_until_held(&self, calls: usize) {
        self.plan.wait_until_held(calls);
    }
}

#[deny(clippy::missing_trait_methods)]
impl Format for Faulty {
    hyperslab_core::forward!(self, self.inner, [caps, extension]);

    fn name(&self) -> &'static str {
        "faulty"
    }

    fn open(&self, path: &Path, how: OpenMode, comm: &Arc<dyn Communicator>) -> Result<Arc<dyn Container>> {
        agree(&**comm, self.plan.call("open"))?;
        let inner = self.inner.open(path, how, comm)?;
        Ok(Arc::new(FaultyContainer::new(inner, self.plan.clone(), comm.clone())))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.plan.call("look for container")?;
        self.inner.exists(path)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.plan.call("remove")?;
        self.inner.remove(path)
    }

    fn files(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.plan.call("list files")?;
        self.inner.files(path)
    }
}

#[cfg(test)]
mod tests;
