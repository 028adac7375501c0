//! Containers whose calls are recorded.

use super::array::TraceArray;
use super::late_names::LateNames;
use super::merge;
use super::recorder::Recorder;
use hyperslab_core::workload::Step;
use hyperslab_core::{Array, ArraySpec, Attribute, Communicator, Container, Durability, Hierarchy, Result, Telemetry};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A container of one rank.
#[derive(Debug)]
pub(super) struct TraceContainer {
    inner: Arc<dyn Container>,
    recorder: Arc<Recorder>,
    comm: Arc<dyn Communicator>,
    closed: AtomicBool,
    names: LateNames,
}

impl TraceContainer {
    pub fn new(inner: Arc<dyn Container>, recorder: Recorder, comm: Arc<dyn Communicator>, names: LateNames) -> Self {
        Self { inner, recorder: Arc::new(recorder), comm, closed: AtomicBool::new(false), names }
    }

    /// Opens an array by `call`; `declared` is its specification, if known.
    fn enter(
        &self,
        call: impl FnOnce() -> Result<Arc<dyn Array>>,
        declared: Option<&ArraySpec>,
        name: &str,
    ) -> Result<Arc<dyn Array>> {
        let mut entered = None;
        let inner = self.recorder.call(call, |state, array| {
            let spec = declared.map_or_else(|| array.spec(), |spec| Ok(spec.clone()));
            let (slot, kind) = self.recorder.enter(state, spec, declared.is_none())?;
            entered = Some(slot);
            let (file, name) = (0, name.into());
            Some(match declared {
                Some(_) => Step::Create { slot, file, array: kind, name },
                None => Step::Open { slot, file, array: kind, name },
            })
        })?;
        Ok(Arc::new(TraceArray::new(inner, entered, self.recorder.clone())))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Container for TraceContainer {
    hyperslab_core::forward!(self, self.inner, [write_back]);

    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        self.enter(|| self.inner.array(name), None, name)
    }

    fn telemetry(&self) -> &dyn Telemetry {
        self
    }

    fn flush(&self, how: Durability) -> Result<()> {
        self.recorder.call(|| self.inner.flush(how), |_, ()| Some(Step::Flush { file: 0, how }))
    }

    fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return self.inner.close();
        }
        let result = self.recorder.last_call(|| self.inner.close());
        merge::publish(&self.recorder, &*self.comm, &self.names);
        result
    }
}

#[deny(clippy::missing_trait_methods)]
impl Hierarchy for TraceContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.recorder.beside(|| self.inner.arrays())
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.recorder.beside(|| self.inner.groups())
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.recorder.call(|| self.inner.create_group(name), |_, ()| Some(Step::Group { file: 0, name: name.into() }))
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.enter(|| self.inner.create(name, spec), Some(spec), name)
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.recorder.call(
            || self.inner.set_attribute(object, name, value),
            |state, ()| {
                state.note_seed(object, name, value);
                Some(Step::Attribute { file: 0, object: object.into(), name: name.into(), value: value.clone() })
            },
        )
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.recorder.beside(|| self.inner.attribute(object, name))
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.recorder.beside(|| self.inner.attributes(object))
    }
}

#[deny(clippy::missing_trait_methods)]
impl Telemetry for TraceContainer {
    hyperslab_core::forward!(self, self.inner.telemetry(), [background, explain]);

    fn diagnostics(&self) -> Vec<String> {
        let mut diagnostics = self.inner.diagnostics();
        diagnostics.extend(self.recorder.lock().diagnostics.iter().cloned());
        diagnostics
    }
}
