//! Containers of the layer.

use super::array::CachedArray;
use super::block_cache::BlockCache;
use super::geometry::Geometry;
use super::options::Options;
use super::stats::CacheStats;
use crate::array_key::ArrayKey;
use hyperslab_core::{Array, ArraySpec, Communicator, Container, Durability, Hierarchy, Result, Telemetry};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state shared by a container and its arrays on one rank.
#[derive(Debug)]
pub(super) struct Shared {
    pub store: Arc<BlockCache>,
    pub comm: Arc<dyn Communicator>,
    pub options: Options,
    /// Open read-only: blocks never become stale.
    pub read_only: bool,
    /// Whether the format below uses hints.
    pub prefetch: bool,
    pub counts: CacheStats,
    pub closed: AtomicBool,
}

impl Shared {
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The block geometry of an array.
    pub fn geometry(&self, number: u64, spec: ArraySpec) -> Result<Option<Geometry>> {
        Geometry::new(number, spec, &self.options.block, self.store.budget().limit)
    }
}

/// A container of one rank.
#[derive(Debug)]
pub(super) struct CachedContainer {
    pub inner: Arc<dyn Container>,
    pub shared: Arc<Shared>,
}

impl CachedContainer {
    fn wrap(&self, name: &str, inner: Arc<dyn Array>) -> Result<Arc<dyn Array>> {
        let spec = inner.spec()?;
        let make = |number| self.shared.geometry(number, spec.clone());
        let named = self.shared.store.named(&ArrayKey::of(&*inner, name), &spec, make)?;
        Ok(Arc::new(CachedArray::new(inner, named, self.shared.clone())))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for CachedContainer {
    hyperslab_core::forward!(self, self.inner, [write_back]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.wrap(name, self.inner.array(name)?)
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    /// Makes other ranks' writes visible: invalidates blocks once all ranks have flushed.
    fn flush(&self, how: Durability) -> Result<()> {
        let flushed = self.inner.flush(how);
        if self.shared.read_only || self.shared.is_closed() {
            return flushed;
        }
        let met = if self.shared.comm.size() > 1 { self.shared.comm.barrier() } else { Ok(()) };
        self.shared.store.clear();
        flushed.and(met)
    }

    fn close(&self) -> Result<()> {
        if !self.shared.closed.swap(true, Ordering::AcqRel) {
            self.shared.store.leave();
        }
        self.inner.close()
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for CachedContainer {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, create_group, set_attribute, attribute, attributes]);

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.wrap(name, self.inner.create(name, spec)?)
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for CachedContainer {
    hyperslab_core::forward!(self, self.inner.telemetry(), [background, explain]);

    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics = self.inner.diagnostics();
        diagnostics.extend(self.shared.counts.diagnostic(self.shared.store.budget().peak()));
        diagnostics
    }
}
