//! Storing and loading the index.

use super::array_state::ArrayState;
use super::container::Shared;
use super::entry::{IndexUpdate, corrupt, encode};
use super::generation::{HEAD, Head, join, split};
use super::names::{self, Hidden};
use super::volumes::Volume;
use hyperslab_core::{
    Array, ArraySpec, Datatype, Durability, Error, MemoryView, MemoryViewMut, Result, Selection, TransferMode, agree,
};
use hyperslab_journal::wire::Encoder;
use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};

/// Generation numbers, the same on all ranks.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Generations {
    /// The last finished generation.
    finished: u64,
    /// The last generation begun.
    begun: u64,
}

impl Shared {
    /// Publishes the writes of all ranks, and flushes the container. With `clear`, discards the index of that array.
    /// Collective.
    pub fn publish(&self, how: Durability, clear: Option<&str>) -> Result<()> {
        let (mine, taken) = self.encode_pending(clear);
        let parts = self.comm.all_gather(&mine)?;
        if parts.iter().all(Vec::is_empty) {
            return self.inner.flush(how);
        }
        let body = join(&parts);
        let said = agree(&*self.comm, split(&body))?;
        let generations = {
            let mut generations = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
            generations.begun += 1;
            *generations
        };
        self.store(&body, generations, how)?;
        self.generations.lock().unwrap_or_else(PoisonError::into_inner).finished = generations.begun;
        for (named, count) in taken {
            let mut state = named.lock();
            if let Some(spec) = state.spec.clone() {
                state.index.no_longer_waiting(count, &spec.shape);
            }
        }
        self.apply(said);
        Ok(())
    }

    /// Encodes this rank's unpublished entries; returns their number by array.
    fn encode_pending(&self, clear: Option<&str>) -> (Vec<u8>, Vec<(Arc<ArrayState>, usize)>) {
        let (mut out, mut taken) = (Encoder::default(), Vec::new());
        if let Some(array) = clear.filter(|_| self.rank() == 0) {
            encode(&mut out, array, true, [].iter());
        }
        for named in self.all_named() {
            let state = named.lock();
            let waiting = state.index.waiting();
            if !waiting.is_empty() {
                let entries: Vec<_> = waiting.iter().map(|entry| &**entry).collect();
                encode(&mut out, &named.name, false, entries.iter().copied());
                taken.push((named.clone(), waiting.len()));
            }
        }
        (out.0, taken)
    }

    /// Stores a generation: first its body, and once that and all data are flushed, its head.
    fn store(&self, body: &[u8], generations: Generations, how: Durability) -> Result<()> {
        let name = names::index(generations.begun);
        let array = self.inner.create(&name, &ArraySpec::new(Datatype::U8, &[(HEAD + body.len()) as u64]))?;
        let write = |offset: usize, bytes: &[u8]| {
            let (selection, data) = match self.rank() {
                0 => (Selection::dense(&[offset as u64], &[bytes.len() as u64])?, bytes),
                _ => (Selection::empty(1), &[][..]),
            };
            array.write(&selection, MemoryView::packed(data), TransferMode::Collective)
        };
        agree(&*self.comm, write(HEAD, body))?;
        self.inner.flush(how)?;
        let head = Head::new(generations.begun, generations.finished, body);
        agree(&*self.comm, write(0, &head.encode()))?;
        array.close()?;
        self.inner.flush(how)
    }

    /// Applies the updates of all ranks.
    fn apply(&self, all: Vec<IndexUpdate>) {
        for said in all {
            self.named(&said.array).lock().store(said);
        }
    }

    /// Loads the index of an existing container. Collective.
    pub fn load(&self) -> Result<()> {
        let arrays = agree(&*self.comm, self.inner.arrays())?;
        let mut numbers = BTreeSet::new();
        for name in &arrays {
            match names::parse(name)? {
                None => {}
                Some(Hidden::Index(number)) => {
                    numbers.insert(number);
                }
                Some(Hidden::Volume { number, regions, array }) => {
                    self.named(array).lock().log.volumes.push(Volume { number, regions, open: None });
                }
            }
        }
        let (mut generations, mut finished) = (Generations::default(), BTreeSet::from([0]));
        for number in numbers {
            generations.begun = number;
            if let Some(head) = self.load_generation(number).map_err(|error| error.target(names::index(number)))? {
                if !finished.contains(&head.previous) {
                    let lost = format!("generation {} of the index is lost", head.previous);
                    return Err(corrupt(lost).target(names::index(number)));
                }
                finished.insert(number);
                generations.finished = number;
            }
        }
        *self.generations.lock().unwrap_or_else(PoisonError::into_inner) = generations;
        Ok(())
    }

    /// Loads a generation; `None` if it is unfinished. Collective.
    fn load_generation(&self, number: u64) -> Result<Option<Head>> {
        let array = self.inner.array(&names::index(number))?;
        let read = if self.rank() == 0 { read_generation(&*array, number) } else { Ok(None) };
        let read = agree(&*self.comm, read)?;
        array.close()?;
        let mut message = Vec::new();
        if let Some((head, body)) = read {
            message = head.encode();
            message.extend(body);
        }
        self.comm.broadcast(0, &mut message)?;
        let Some((head, body)) = message.split_at_checked(HEAD) else { return Ok(None) };
        self.apply(split(body).map_err(|error| corrupt(error.to_string()))?);
        Head::decode(head)
    }
}

/// Reads and verifies a generation. Allocates at most the length of its array.
fn read_generation(array: &dyn Array, number: u64) -> Result<Option<(Head, Vec<u8>)>> {
    let spec = array.spec()?;
    let len = match (spec.dtype == Datatype::U8, spec.shape.as_slice()) {
        (true, [len]) if *len >= HEAD as u64 => *len,
        _ => return Err(corrupt("it is no array of bytes, or too short")),
    };
    let read = |offset: u64, into: &mut [u8]| {
        let selection = Selection::dense(&[offset], &[into.len() as u64])?;
        array.read(&selection, MemoryViewMut::packed(into), TransferMode::Independent)
    };
    let mut head = [0; HEAD];
    read(0, &mut head)?;
    let Some(head) = Head::decode(&head).map_err(|error| relay(&error))? else { return Ok(None) };
    if head.generation != number || head.len != len - HEAD as u64 {
        return Err(corrupt("its head is that of another generation"));
    }
    let mut body = Vec::new();
    let bytes = usize::try_from(head.len).ok().filter(|bytes| body.try_reserve_exact(*bytes).is_ok());
    let bytes = bytes.ok_or_else(|| Error::invalid("read index", format!("no memory for {} bytes", head.len)))?;
    body.resize(bytes, 0);
    read(HEAD as u64, &mut body)?;
    head.check(&body)?;
    Ok(Some((head, body)))
}

/// Rewords a decoder's error, without mention of a journal.
fn relay(error: &Error) -> Error {
    match error.operation() {
        "read index" => error.copied(),
        _ => corrupt(error.to_string()),
    }
}
