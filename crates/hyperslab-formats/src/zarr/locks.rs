//! One lock per chunk file, for all ranks of this process.
//!
//! A file holds a whole chunk or shard, so a writer of a part of it reads, changes and replaces the file. Without a
//! lock two ranks would each keep only their own part. The locks are a fixed table shared by every open store of the
//! process; two chunks may share a lock, which costs waiting but never order: a thread holds at most one at a time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

const STRIPES: usize = 1024;

static TABLE: [RwLock<()>; STRIPES] = [const { RwLock::new(()) }; STRIPES];

/// Names an array of a store within this process.
#[derive(Debug, Clone, Copy)]
pub struct ArrayIdentity(u64);

impl ArrayIdentity {
    /// The array `name` of the store at the canonical path `store`.
    pub fn new(store: &Path, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (store, name).hash(&mut hasher);
        Self(hasher.finish())
    }

    fn stripe(self, chunk: &[u64]) -> &'static RwLock<()> {
        let mut hasher = DefaultHasher::new();
        (self.0, chunk).hash(&mut hasher);
        &TABLE[hasher.finish() as usize % STRIPES]
    }

    /// Keeps writers of the chunk file away.
    pub fn reading(self, chunk: &[u64]) -> RwLockReadGuard<'static, ()> {
        self.stripe(chunk).read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps everyone else away from the chunk file.
    pub fn writing(self, chunk: &[u64]) -> RwLockWriteGuard<'static, ()> {
        self.stripe(chunk).write().unwrap_or_else(PoisonError::into_inner)
    }
}
