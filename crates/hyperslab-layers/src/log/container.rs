//! Containers of the layer.

use super::array::LogArray;
use super::session::Session;
use crate::background::ArrayHandle;
use hyperslab_core::{
    Array, ArraySpec, Attribute, BackgroundStats, Container, Durability, Hierarchy, Result, Telemetry, agree,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A container of one rank.
#[derive(Debug)]
pub(super) struct LogContainer {
    pub inner: Arc<dyn Container>,
    pub session: Arc<Session>,
}

impl LogContainer {
    fn wrap(&self, name: &str, inner: Arc<dyn Array>) -> Result<Arc<dyn Array>> {
        let place = ArrayHandle::new(inner, name);
        let array_log = self.session.store.array_log(&place)?;
        Ok(Arc::new(LogArray { place, array_log, session: self.session.clone(), closed: AtomicBool::new(false) }))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for LogContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.wrap(name, self.session.together(|| self.inner.array(name))?)
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn write_back(&self) -> Result<()> {
        if !self.session.is_closed() {
            self.session.store.drain(None)?;
        }
        self.inner.write_back()
    }

    fn flush(&self, how: Durability) -> Result<()> {
        if self.session.is_closed() {
            return self.inner.flush(how);
        }
        let store = &self.session.store;
        agree(&*store.comm, store.take_error().and_then(|()| store.check()))?;
        store.staging.keep_until_synced(how == Durability::Durable);
        let drained = store.drain_collectively();
        store.staging.keep_until_synced(false);
        if drained.is_err() {
            // Reported now.
            let _ = store.take_error();
        }
        drained?;
        let closed = self.session.close_arrays(0);
        closed.and(store.staging.flush(how))
    }

    /// Every rank makes the same collective calls below, whatever failed before.
    fn close(&self) -> Result<()> {
        if self.session.is_closed() {
            return Ok(());
        }
        self.session.stop();
        let store = &self.session.store;
        let before = store.take_error();
        let drained = store.drain_collectively();
        let _ = store.take_error();
        if self.session.set_closed() {
            return Ok(());
        }
        let arrays = self.session.close_arrays(0);
        let closed = self.inner.close();
        let closed = before.and(drained).and(arrays).and(closed);
        store.pool.clear();
        closed.and_then(|()| store.staging.finish()).map_err(|error| store.staging.explain(error))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for LogContainer {
    hyperslab_core::forward!(self, self.inner, [arrays, groups, attribute, attributes]);

    fn create_group(&self, name: &str) -> Result<()> {
        self.session.together(|| self.inner.create_group(name))
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        let known = || self.session.store.staging.publish_metadata();
        let create = || self.inner.create(name, spec).and_then(|array| known().map(|()| array));
        self.wrap(name, self.session.together(create)?)
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.session.together(|| self.inner.set_attribute(object, name, value))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for LogContainer {
    hyperslab_core::forward!(self, self.inner.telemetry(), [explain]);

    fn diagnostics(&self) -> Vec<String> {
        let (mut diagnostics, store) = (self.inner.diagnostics(), &self.session.store);
        let moved = store.moved();
        if moved.writes > 0 {
            diagnostics.push(format!(
                "log: {} writes of the program became {} writes to the file, {} of them taken apart to put them in order",
                moved.writes, moved.counts.writes, moved.counts.flattened
            ));
        }
        if store.staging.direct_was_refused() {
            diagnostics
                .push("the log was written through the page cache: its file system does not allow O_DIRECT".into());
        }
        if let Some(why) = store.staging.stopped() {
            diagnostics.push(format!("writes were no longer logged, and went straight to the storage: {why}"));
        }
        if let Some(why) = store.staging.images.as_ref().and_then(|images| images.stopped()) {
            diagnostics.push(format!("chunks with filters were stored without a copy in the log: {why}"));
        }
        if self.session.is_closed() {
            diagnostics.extend(store.staging.left_over());
        }
        diagnostics
    }

    fn background(&self) -> BackgroundStats {
        let mut background = self.session.store.background();
        background += self.inner.background();
        background
    }
}
