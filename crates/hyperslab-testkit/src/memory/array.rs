//! An open array of a [`super::Memory`] container.

use super::container::Shared;
use super::coordinates::{coordinates, inside};
use super::elements::places;
use super::store::{Stored, not_found};
use hyperslab_core::{
    Array, ArraySpec, Error, MemoryView, MemoryViewMut, Result, Selection, TransferMode, agree, dims::byte_count,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug)]
pub(crate) struct MemoryArray {
    shared: Arc<Shared>,
    name: String,
    closed: AtomicBool,
}

impl MemoryArray {
    pub(crate) fn new(shared: Arc<Shared>, name: &str) -> Self {
        Self { shared, name: name.into(), closed: AtomicBool::new(false) }
    }

    fn with<T>(&self, operation: &'static str, act: impl FnOnce(&mut Stored) -> Result<T>) -> Result<T> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(Error::invalid(operation, "the array is closed").backend("memory").target(&self.name));
        }
        self.shared.with(operation, |store| {
            let stored = store.arrays.get_mut(&self.name).ok_or_else(|| not_found(operation, &self.name))?;
            act(stored)
        })
    }

    fn write_here(&self, selection: &Selection, memory: MemoryView<'_>) -> Result<()> {
        self.shared.check_writable("write")?;
        self.with("write", |stored| {
            let wanted = coordinates(selection);
            check_inside(&wanted, selection, stored)?;
            memory.check(&stored.spec.dtype, wanted.len() as u64)?;
            let places = places(memory.layout, &stored.spec.dtype, wanted.len());
            for (coordinate, members) in wanted.into_iter().zip(places) {
                let mut element = stored.elements.get(&coordinate).cloned().unwrap_or_else(|| stored.fill());
                for member in members {
                    for byte in 0..member.len {
                        element[member.element + byte] = memory.data[member.memory + byte];
                    }
                }
                stored.elements.insert(coordinate, element);
            }
            Ok(())
        })
    }

    fn read_here(&self, selection: &Selection, memory: MemoryViewMut<'_>) -> Result<()> {
        self.with("read", |stored| {
            let wanted = coordinates(selection);
            check_inside(&wanted, selection, stored)?;
            memory.check(&stored.spec.dtype, wanted.len() as u64)?;
            let places = places(memory.layout, &stored.spec.dtype, wanted.len());
            for (coordinate, members) in wanted.into_iter().zip(places) {
                let element = stored.elements.get(&coordinate).cloned().unwrap_or_else(|| stored.fill());
                for member in members {
                    for byte in 0..member.len {
                        memory.data[member.memory + byte] = element[member.element + byte];
                    }
                }
            }
            Ok(())
        })
    }

    fn resize_here(&self, shape: &[u64]) -> Result<()> {
        self.shared.check_writable("resize")?;
        self.with("resize", |stored| {
            let Some(max) = &stored.spec.max_shape else {
                return Err(Error::invalid("resize", "the array has a fixed shape"));
            };
            if shape.len() != max.len() || shape.iter().zip(max).any(|(n, max)| max.is_some_and(|max| *n > max)) {
                return Err(Error::invalid("resize", "the shape exceeds the maximum shape or differs in rank"));
            }
            byte_count(shape, stored.spec.dtype.size())?;
            stored.spec.shape = shape.into();
            stored.elements.retain(|coordinate, _| inside(coordinate, shape));
            Ok(())
        })
    }

    fn together(&self, transfer: TransferMode, result: Result<()>) -> Result<()> {
        match transfer {
            TransferMode::Independent => result,
            TransferMode::Collective => agree(&*self.shared.comm, result),
        }
    }
}

fn check_inside(wanted: &std::collections::BTreeSet<Vec<u64>>, selection: &Selection, stored: &Stored) -> Result<()> {
    let shape = &stored.spec.shape;
    if selection.rank() != shape.len() || wanted.iter().any(|coordinate| !inside(coordinate, shape)) {
        return Err(Error::invalid("check selection", "the selection does not lie inside the array"));
    }
    Ok(())
}

impl Array for MemoryArray {
    fn spec(&self) -> Result<ArraySpec> {
        self.with("describe", |stored| Ok(stored.spec.clone()))
    }

    fn write(&self, selection: &Selection, memory: MemoryView<'_>, transfer: TransferMode) -> Result<()> {
        self.together(transfer, self.write_here(selection, memory))
    }

    fn read(&self, selection: &Selection, memory: MemoryViewMut<'_>, transfer: TransferMode) -> Result<()> {
        self.together(transfer, self.read_here(selection, memory))
    }

    fn resize(&self, shape: &[u64]) -> Result<()> {
        // Nobody reads or writes with the old shape once anybody returns.
        agree(&*self.shared.comm, Ok(()))?;
        agree(&*self.shared.comm, self.resize_here(shape))
    }

    fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::SeqCst);
        Ok(())
    }
}
