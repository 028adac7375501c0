//! A directory in memory, for journals.

use hyperslab_journal::{JournalStorage, Lock, LogFile};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::sync::Arc;

/// Files by their names. They can be read, and nothing else.
#[derive(Debug, Default)]
pub struct MemoryFiles(pub BTreeMap<String, Arc<Content>>);

/// The bytes of a file.
#[derive(Debug)]
pub struct Content(pub Vec<u8>);

fn refused<T>() -> Result<T> {
    Err(Error::from(ErrorKind::Unsupported))
}

impl JournalStorage for MemoryFiles {
    fn create(&self, _name: &str) -> Result<Arc<dyn LogFile>> {
        refused()
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let file = self.0.get(name).cloned().ok_or_else(|| Error::from(ErrorKind::NotFound))?;
        Ok(file)
    }

    fn rename(&self, _from: &str, _to: &str) -> Result<()> {
        refused()
    }

    fn remove(&self, _name: &str) -> Result<()> {
        refused()
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn sync_directory(&self) -> Result<()> {
        Ok(())
    }

    fn place(&self) -> String {
        "memory".into()
    }
}

impl LogFile for Content {
    fn write_at(&self, _parts: &[IoSlice<'_>], _offset: u64) -> Result<()> {
        refused()
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize> {
        let there = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let len = there.len().min(into.len());
        into[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }

    fn truncate(&self, _len: u64) -> Result<()> {
        refused()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Lock> {
        Ok(Lock::Taken)
    }
}
