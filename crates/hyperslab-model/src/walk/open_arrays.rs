//! The arrays that are open during a walk, shared by the ranks that opened them.

use crate::configuration::Configuration;
use crate::counts::Counts;
use crate::paths::{Path, Request, path};
use hyperslab_core::{ArraySpec, Datatype, Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// File, rank if every rank has its own, and name.
pub(super) type Key = (u32, Option<usize>, Arc<str>);

/// An array that somebody has open, or had.
#[derive(Debug)]
pub(super) struct OpenArray {
    pub(super) dtype: Datatype,
    path: Box<dyn Path>,
    handles: usize,
}

/// Arrays by place, and the slots that stand for them.
#[derive(Debug, Default)]
pub(super) struct OpenArrays {
    numbers: HashMap<Key, usize>,
    arrays: Vec<OpenArray>,
    /// By place of the rank and slot.
    slots: HashMap<(usize, u32), usize>,
}

impl OpenArray {
    pub(super) fn transfer(&mut self, request: Request<'_>, counts: &mut Counts) -> Result<()> {
        self.path.transfer(request, counts)
    }

    pub(super) fn resize(&mut self, shape: &[u64], counts: &mut Counts) -> Result<()> {
        self.path.resize(shape, counts)
    }
}

impl OpenArrays {
    /// Opens or makes an array. What a rank made, the next one opens.
    pub(super) fn open(
        &mut self,
        slot: (usize, u32),
        key: Key,
        spec: &ArraySpec,
        configuration: &Configuration,
        makes: bool,
    ) -> Result<()> {
        let known = self.numbers.get(&key).copied();
        let number = match known {
            Some(number) => number,
            None => {
                let array =
                    OpenArray { dtype: spec.dtype.clone(), path: path(configuration, spec, makes)?, handles: 0 };
                self.arrays.push(array);
                self.numbers.insert(key, self.arrays.len() - 1);
                self.arrays.len() - 1
            }
        };
        self.arrays[number].handles += 1;
        match self.slots.insert(slot, number) {
            None => Ok(()),
            Some(_) => Err(Error::invalid("count workload", format!("slot {} is in use already", slot.1))),
        }
    }

    /// The array of a rank's slot.
    pub(super) fn get(&mut self, place: usize, slot: u32) -> Result<&mut OpenArray> {
        let number = self.slots.get(&(place, slot)).copied();
        number.and_then(|number| self.arrays.get_mut(number)).ok_or_else(|| no_array(slot))
    }

    /// Closes a handle; the last one stores what waits.
    pub(super) fn close(&mut self, place: usize, slot: u32, counts: &mut Counts) -> Result<()> {
        let number = self.slots.remove(&(place, slot)).ok_or_else(|| no_array(slot))?;
        let array = &mut self.arrays[number];
        array.handles -= 1;
        if array.handles == 0 {
            array.path.close(counts);
        }
        Ok(())
    }

    /// Stores what waits of the arrays of a file.
    pub(super) fn flush(&mut self, file: u32, rank: Option<usize>, counts: &mut Counts) {
        for (key, &number) in &self.numbers {
            if key.0 == file && key.1 == rank && self.arrays[number].handles > 0 {
                self.arrays[number].path.flush(counts);
            }
        }
    }

    /// Forgets the arrays of a file that is made anew, if nobody has them open.
    pub(super) fn forget(&mut self, file: u32, rank: usize, alone: bool) {
        let (rank, arrays) = (alone.then_some(rank), &self.arrays);
        self.numbers.retain(|key, number| key.0 != file || key.1 != rank || arrays[*number].handles > 0);
    }
}

fn no_array(slot: u32) -> Error {
    Error::invalid("count workload", format!("slot {slot} is used, but no array is open there"))
}
