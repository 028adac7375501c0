//! The arrays that are open during a walk, shared by the ranks that opened them.

use crate::configuration::Configuration;
use crate::cost_models::{CostModel, Request, path};
use crate::counts::{Count, Counts};
use hyperslab_core::{ArraySpec, Datatype, Error, Result};
use std::collections::HashMap;
use std::sync::Arc;

/// Codecs that leave so much store the bytes as they are.
const SAVES_NOTHING: f64 = 0.98;

/// File, rank if every rank has its own, and name.
pub(super) type Key = (u32, Option<usize>, Arc<str>);

/// An array that somebody has open, or had.
#[derive(Debug)]
pub(super) struct OpenArray {
    pub(super) dtype: Datatype,
    path: Box<dyn CostModel>,
    handles: usize,
    /// Part of the bytes that is left when chunks are coded, if it is known.
    share: Option<f64>,
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
        let before = *counts;
        self.path.transfer(request, counts)?;
        coded(self.share, &before, counts);
        Ok(())
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
        (array, spec): (u32, &ArraySpec),
        configuration: &Configuration,
        makes: bool,
    ) -> Result<()> {
        let known = self.numbers.get(&key).copied();
        let number = match known {
            Some(number) => number,
            None => {
                let storage = configuration.storage(spec)?;
                let share = configuration.share(array, &storage);
                let path = path(configuration, spec, makes)?;
                self.arrays.push(OpenArray { dtype: spec.dtype.clone(), path, handles: 0, share });
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

    /// The number of the array of a rank's slot.
    pub(super) fn number(&self, place: usize, slot: u32) -> Result<usize> {
        self.slots.get(&(place, slot)).copied().ok_or_else(|| no_array(slot))
    }

    /// An array by its number.
    pub(super) fn by_number(&mut self, number: usize) -> &mut OpenArray {
        &mut self.arrays[number]
    }

    /// The array of a rank's slot.
    pub(super) fn get(&mut self, place: usize, slot: u32) -> Result<&mut OpenArray> {
        let number = self.number(place, slot)?;
        Ok(self.by_number(number))
    }

    /// The numbers of a file's arrays.
    pub(super) fn of_file(&self, file: u32, rank: Option<usize>) -> Vec<usize> {
        let mut numbers: Vec<usize> =
            self.numbers.iter().filter(|(key, _)| key.0 == file && key.1 == rank).map(|(_, &number)| number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Whether this is the last handle of an array.
    pub(super) fn is_last(&self, number: usize) -> bool {
        self.arrays[number].handles == 1
    }

    /// Closes a handle; the last one stores what waits.
    pub(super) fn close(&mut self, place: usize, slot: u32, counts: &mut Counts) -> Result<()> {
        let number = self.slots.remove(&(place, slot)).ok_or_else(|| no_array(slot))?;
        let array = &mut self.arrays[number];
        array.handles -= 1;
        if array.handles == 0 {
            let before = *counts;
            array.path.close(counts);
            coded(array.share, &before, counts);
        }
        Ok(())
    }

    /// Stores what waits of the arrays of a file.
    pub(super) fn flush(&mut self, file: u32, rank: Option<usize>, counts: &mut Counts) {
        for (key, &number) in &self.numbers {
            let array = &mut self.arrays[number];
            if key.0 == file && key.1 == rank && array.handles > 0 {
                let before = *counts;
                array.path.flush(counts);
                coded(array.share, &before, counts);
            }
        }
    }

    /// Forgets the arrays of a file that is made anew, if nobody has them open.
    pub(super) fn forget(&mut self, file: u32, rank: usize, alone: bool) {
        let (rank, arrays) = (alone.then_some(rank), &self.arrays);
        self.numbers.retain(|key, number| key.0 != file || key.1 != rank || arrays[*number].handles > 0);
    }
}

/// Paths count chunks in the size they have in memory; what was counted since `before` moves this part of the bytes.
fn coded(share: Option<f64>, before: &Counts, counts: &mut Counts) {
    let saves_nothing = share.is_some_and(|share| share >= SAVES_NOTHING);
    let share = share.unwrap_or(1.0);
    let part = |more: u64| (more as f64 * share) as u64;
    for (encoded, decoded, stored) in [
        (Count::DeflateEncoded, Count::DeflateDecoded, Count::DeflateStored),
        (Count::ZstdEncoded, Count::ZstdDecoded, Count::ZstdStored),
        (Count::FastEncoded, Count::FastDecoded, Count::FastStored),
    ] {
        let more = counts.since(before);
        counts.add(stored, part(more[encoded].saturating_add(more[decoded])));
        if saves_nothing {
            // What could not be made smaller is only copied out again.
            counts[decoded] = before[decoded];
            counts.add(Count::CopiedBytes, more[decoded]);
        }
    }
    if share == 1.0 {
        return;
    }
    for count in [Count::ReadBytes, Count::WriteBytes, Count::NewBytes, Count::DeviceBytes] {
        let more = counts[count].saturating_sub(before[count]);
        counts[count] = before[count].saturating_add(part(more));
    }
}

fn no_array(slot: u32) -> Error {
    Error::invalid("count workload", format!("slot {slot} is used, but no array is open there"))
}
