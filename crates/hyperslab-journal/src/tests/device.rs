//! A device that keeps only what was synced; of the rest, anything may be there after a crash.

use crate::{JournalStorage, Lock, LogFile};
use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice, Result};
use std::sync::{Arc, Mutex};

/// Numbers that look random.
pub(super) struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

#[derive(Debug, Default)]
struct Content {
    now: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync.
    pending: Vec<(usize, Vec<u8>)>,
}

type File = Arc<Mutex<Content>>;
type Names = BTreeMap<String, File>;

#[derive(Debug, Default, Clone)]
pub(super) struct Device(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: Names,
    durable: Names,
    /// Changes of names since they were made durable.
    pending: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Create(String, File),
    Rename(String, String),
    Remove(String),
}

impl Change {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(name, file) => drop(names.insert(name.clone(), file.clone())),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
        }
    }
}

impl Device {
    /// What may be there if power is lost now. This one goes on.
    pub fn crash(&self, dice: &mut Dice) -> Self {
        let state = self.0.lock().unwrap();
        let mut names = state.durable.clone();
        // All changes up to some, or any of them.
        let (up_to, any) = (dice.below(state.pending.len() as u64 + 1) as usize, dice.below(2) == 0);
        for (n, change) in state.pending.iter().enumerate() {
            if if any { dice.below(2) == 0 } else { n < up_to } {
                change.apply(&mut names);
            }
        }
        let survivors = names.into_iter().map(|(name, file)| {
            let bytes = file.lock().unwrap().crash(dice);
            (name, Arc::new(Mutex::new(Content { now: bytes.clone(), durable: bytes, pending: Vec::new() })))
        });
        let now: Names = survivors.collect();
        Self(Arc::new(Mutex::new(State { durable: now.clone(), now, pending: Vec::new() })))
    }

    /// What is there if the process ends now.
    pub fn now(&self) -> Self {
        let state = self.0.lock().unwrap();
        let copy = |(name, file): (&String, &File)| {
            let bytes = file.lock().unwrap().now.clone();
            (name.clone(), Arc::new(Mutex::new(Content { now: bytes.clone(), durable: bytes, pending: Vec::new() })))
        };
        let now: Names = state.now.iter().map(copy).collect();
        Self(Arc::new(Mutex::new(State { durable: now.clone(), now, pending: Vec::new() })))
    }

    fn change(&self, change: Change) {
        let mut state = self.0.lock().unwrap();
        change.apply(&mut state.now);
        state.pending.push(change);
    }
}

impl Content {
    fn crash(&self, dice: &mut Dice) -> Vec<u8> {
        let mut out = self.durable.clone();
        for (offset, bytes) in &self.pending {
            let mut bytes = bytes.clone();
            match dice.below(6) {
                0 => continue,
                1 => bytes.truncate(dice.below(bytes.len() as u64 + 1) as usize),
                2 => {
                    let from = dice.below(bytes.len() as u64 + 1) as usize;
                    bytes[from..].fill(0);
                }
                3 if !bytes.is_empty() => {
                    let at = dice.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << dice.below(8);
                }
                _ => {}
            }
            let end = offset + bytes.len();
            if out.len() < end {
                out.resize(end, 0);
            }
            out[*offset..end].copy_from_slice(&bytes);
        }
        out
    }
}

impl JournalStorage for Device {
    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let file = File::default();
        self.change(Change::Create(name.into(), file.clone()));
        Ok(Arc::new(Opened(file)))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let file = self.0.lock().unwrap().now.get(name).cloned().ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(Opened(file)))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.change(Change::Rename(from.into(), to.into()));
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.change(Change::Remove(name.into()));
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.0.lock().unwrap().now.keys().cloned().collect())
    }

    fn sync_directory(&self) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        state.durable = state.now.clone();
        state.pending.clear();
        Ok(())
    }

    fn place(&self) -> String {
        "device".into()
    }
}

#[derive(Debug)]
struct Opened(File);

impl LogFile for Opened {
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()> {
        let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let mut content = self.0.lock().unwrap();
        let (from, end) = (offset as usize, offset as usize + all.len());
        if content.now.len() < end {
            content.now.resize(end, 0);
        }
        content.now[from..end].copy_from_slice(&all);
        content.pending.push((from, all));
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize> {
        let content = self.0.lock().unwrap();
        let there = content.now.get(offset as usize..).unwrap_or_default();
        let len = there.len().min(into.len());
        into[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }

    fn reserve(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        // Bytes written directly end with a block, of which the last may be longer than the file.
        assert!(self.len()? <= len, "only room behind the end is given back where nothing fails");
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn sync(&self) -> Result<()> {
        let mut content = self.0.lock().unwrap();
        content.durable = content.now.clone();
        content.pending.clear();
        Ok(())
    }

    fn lock(&self) -> Result<Lock> {
        Ok(Lock::Taken)
    }
}
