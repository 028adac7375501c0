//! The state shared by all handles of an array.

use super::geometry::Geometry;
use crate::array_key::ArrayKey;
use hyperslab_core::{ArraySpec, Result};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Maximum number of arrays remembered; beyond it, closed arrays are forgotten.
const MOST_CLOSED: usize = 4096;

/// The state of an array.
#[derive(Debug)]
pub(super) struct ArrayState {
    /// `None` if the array is not cached.
    geometry: RwLock<Option<Arc<Geometry>>>,
}

impl ArrayState {
    fn new(geometry: Option<Geometry>) -> Arc<Self> {
        Arc::new(Self { geometry: RwLock::new(geometry.map(Arc::new)) })
    }

    pub fn geometry(&self) -> Option<Arc<Geometry>> {
        self.geometry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the geometry after a change of shape; returns the former one.
    pub fn set(&self, geometry: Option<Geometry>) -> Option<Arc<Geometry>> {
        let mut place = self.geometry.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, geometry.map(Arc::new))
    }
}

/// The arrays of a container, by key, so that a reopened array finds its blocks.
#[derive(Debug, Default)]
pub(super) struct ArrayStates(Mutex<HashMap<ArrayKey, Arc<ArrayState>>>);

impl ArrayStates {
    /// The state of an array, kept if its `spec` is unchanged.
    pub fn get(
        &self,
        known: &ArrayKey,
        spec: &ArraySpec,
        make: impl FnOnce() -> Result<Option<Geometry>>,
    ) -> Result<Arc<ArrayState>> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = names.get(known)
            && named.geometry().is_some_and(|geometry| geometry.spec == *spec)
        {
            return Ok(named.clone());
        }
        let geometry = make()?;
        if let Some(named) = names.get(known) {
            named.set(geometry);
            return Ok(named.clone());
        }
        if names.len() >= MOST_CLOSED && names.len() == names.capacity() {
            names.retain(|_, named| Arc::strong_count(named) > 1);
        }
        let named = ArrayState::new(geometry);
        names.insert(known.clone(), named.clone());
        Ok(named)
    }
}
