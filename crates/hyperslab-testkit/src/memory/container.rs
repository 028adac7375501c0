//! An open [`super::Memory`] container of one rank.

use super::array::MemoryArray;
use super::store::{Store, Stored, check_name, not_found};
use hyperslab_core::{
    Array, ArraySpec, Attribute, Communicator, Container, Durability, Error, ErrorKind, Hierarchy, Result, agree,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a container and its arrays have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    store: Arc<Mutex<Store>>,
    writable: bool,
    closed: AtomicBool,
    pub(crate) comm: Arc<dyn Communicator>,
}

impl Shared {
    pub(crate) fn with<T>(&self, operation: &'static str, act: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::invalid(operation, "the container is closed").backend("memory"));
        }
        act(&mut self.store.lock().unwrap_or_else(PoisonError::into_inner)).map_err(|error| error.backend("memory"))
    }

    pub(crate) fn check_writable(&self, operation: &'static str) -> Result<()> {
        match self.writable {
            true => Ok(()),
            false => Err(Error::invalid(operation, "the container is open for reading only").backend("memory")),
        }
    }

    /// The first rank acts, and everybody hears how it went. Arguments are judged by every rank.
    fn first_acts(
        &self,
        operation: &'static str,
        judged: Result<()>,
        act: impl FnOnce(&mut Store) -> Result<()>,
    ) -> Result<()> {
        agree(&*self.comm, judged.and_then(|()| self.check_writable(operation)))?;
        let done = if self.comm.rank() == 0 { self.with(operation, act) } else { self.with(operation, |_| Ok(())) };
        agree(&*self.comm, done)
    }
}

#[derive(Debug)]
pub(crate) struct MemoryContainer {
    shared: Arc<Shared>,
}

impl MemoryContainer {
    pub(crate) fn new(store: Arc<Mutex<Store>>, writable: bool, comm: Arc<dyn Communicator>) -> Self {
        Self { shared: Arc::new(Shared { store, writable, closed: AtomicBool::new(false), comm }) }
    }

    fn open_array(&self, name: &str) -> Arc<dyn Array> {
        Arc::new(MemoryArray::new(self.shared.clone(), name))
    }
}

fn check_spec(spec: &ArraySpec) -> Result<()> {
    spec.check()?;
    spec.refuse_strings()?;
    if !spec.filters.is_empty() {
        return Err(Error::unsupported("create", "plain memory has no filters"));
    }
    Ok(())
}

fn check_attribute(name: &str, value: &Attribute) -> Result<()> {
    if name.is_empty() || name.contains('\0') {
        return Err(Error::invalid("set attribute", format!("{name:?} cannot name an attribute")));
    }
    value.check()
}

impl Container for MemoryContainer {
    fn hierarchy(&self) -> Result<&dyn Hierarchy> {
        Ok(self)
    }

    fn array(&self, name: &str) -> Result<Arc<dyn Array>> {
        let found = self.shared.with("open array", |store| match store.arrays.contains_key(name) {
            true => Ok(()),
            false => Err(not_found("open array", name)),
        });
        agree(&*self.shared.comm, found)?;
        Ok(self.open_array(name))
    }

    fn write_back(&self) -> Result<()> {
        self.shared.with("write back", |_| Ok(()))
    }

    fn flush(&self, _how: Durability) -> Result<()> {
        agree(&*self.shared.comm, self.shared.with("flush", |_| Ok(())))
    }

    fn close(&self) -> Result<()> {
        if self.shared.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        agree(&*self.shared.comm, Ok(()))
    }
}

impl Hierarchy for MemoryContainer {
    fn arrays(&self) -> Result<Vec<String>> {
        self.shared.with("list arrays", |store| Ok(store.arrays.keys().cloned().collect()))
    }

    fn groups(&self) -> Result<Vec<String>> {
        self.shared.with("list groups", |store| Ok(store.groups.iter().cloned().collect()))
    }

    fn create_group(&self, name: &str) -> Result<()> {
        self.shared.first_acts("create group", check_name(name), |store| {
            if store.arrays.contains_key(name) {
                return Err(Error::new(ErrorKind::AlreadyExists, "create group", "an array has this name"));
            }
            store.create_parents(name)?;
            store.groups.insert(name.into());
            Ok(())
        })
    }

    fn create(&self, name: &str, spec: &ArraySpec) -> Result<Arc<dyn Array>> {
        self.shared.first_acts("create", check_name(name).and_then(|()| check_spec(spec)), |store| {
            if store.has(name) {
                return Err(Error::new(ErrorKind::AlreadyExists, "create", format!("{name:?} exists already")));
            }
            store.create_parents(name)?;
            store.arrays.insert(name.into(), Stored { spec: spec.clone(), elements: BTreeMap::new() });
            Ok(())
        })?;
        Ok(self.open_array(name))
    }

    fn set_attribute(&self, object: &str, name: &str, value: &Attribute) -> Result<()> {
        self.shared.first_acts("set attribute", check_attribute(name, value), |store| {
            if !store.has(object) {
                return Err(not_found("set attribute", object));
            }
            store.attributes.insert((object.into(), name.into()), value.clone());
            Ok(())
        })
    }

    fn attribute(&self, object: &str, name: &str) -> Result<Attribute> {
        self.shared.with("read attribute", |store| {
            let found = store.attributes.get(&(object.into(), name.into())).cloned();
            found.ok_or_else(|| not_found("read attribute", &format!("{object}@{name}")))
        })
    }

    fn attributes(&self, object: &str) -> Result<Vec<String>> {
        self.shared.with("list attributes", |store| {
            if !store.has(object) {
                return Err(not_found("list attributes", object));
            }
            Ok(store.attributes.keys().filter(|(of, _)| of == object).map(|(_, name)| name.clone()).collect())
        })
    }
}
