//! Files in memory, with a number of writes after which they fail.

use crate::{JournalStorage, Lock, LogFile};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug, Default, Clone)]
pub(super) struct Stored {
    files: Arc<Mutex<BTreeMap<String, Content>>>,
    pub fate: Arc<Fate>,
}

/// Which call fails, and how.
#[derive(Debug)]
pub(super) struct Fate {
    /// Calls that change something until one fails; negative for never.
    pub left: AtomicI64,
    pub error: Mutex<i32>,
    /// Whether a failing write writes half.
    pub short: AtomicBool,
    /// Whether all calls fail from then on.
    pub lasting: AtomicBool,
    /// Whether there is no space for any write.
    pub writes_fail: AtomicBool,
    /// Calls that made something durable.
    pub syncs: AtomicU64,
}

impl Default for Fate {
    fn default() -> Self {
        Self {
            left: AtomicI64::new(i64::MAX),
            error: Mutex::new(5),
            short: AtomicBool::new(true),
            lasting: AtomicBool::new(false),
            writes_fail: AtomicBool::new(false),
            syncs: AtomicU64::new(0),
        }
    }
}

impl Fate {
    fn meet(&self) -> Result<()> {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            left if left == 0 || (left < 0 && self.lasting.load(Ordering::SeqCst)) => {
                Err(Error::from_raw_os_error(*self.error.lock().unwrap()))
            }
            _ => Ok(()),
        }
    }

    /// From now on all calls fail so.
    pub fn strike(&self, error: i32) {
        *self.error.lock().unwrap() = error;
        self.lasting.store(true, Ordering::SeqCst);
        self.left.store(0, Ordering::SeqCst);
    }

    /// From now on all calls work.
    pub fn relent(&self) {
        self.left.store(i64::MAX, Ordering::SeqCst);
    }
}

type Bytes = Arc<Mutex<Vec<u8>>>;

#[derive(Debug, Clone, Default)]
struct Content {
    bytes: Bytes,
    locked: Arc<AtomicBool>,
}

impl Stored {
    /// A copy as it is now, of a time when nobody has it open.
    pub fn copy(&self) -> Self {
        let copy = Self::default();
        for (name, content) in self.files.lock().unwrap().iter() {
            copy.put(name, content.bytes.lock().unwrap().clone());
        }
        copy
    }

    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let content = Content { bytes: Arc::new(Mutex::new(bytes)), ..Content::default() };
        self.files.lock().unwrap().insert(name.into(), content);
    }

    pub fn get(&self, name: &str) -> Vec<u8> {
        self.files.lock().unwrap()[name].bytes.lock().unwrap().clone()
    }

    pub fn names(&self) -> Vec<String> {
        self.files.lock().unwrap().keys().cloned().collect()
    }

    pub fn bytes(&self) -> u64 {
        let files = self.files.lock().unwrap();
        let logs = files.iter().filter(|(name, _)| name.ends_with("meta") || name.ends_with("data"));
        logs.map(|(_, content)| content.bytes.lock().unwrap().len() as u64).sum()
    }
}

impl JournalStorage for Stored {
    fn create(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        self.fate.meet()?;
        let mut files = self.files.lock().unwrap();
        if files.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let content = files.entry(name.into()).or_default().clone();
        Ok(Arc::new(Opened { content, fate: self.fate.clone(), mine: AtomicBool::new(false) }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn LogFile>> {
        let content = self.files.lock().unwrap().get(name).cloned().ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(Opened { content, fate: self.fate.clone(), mine: AtomicBool::new(false) }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.fate.meet()?;
        let mut files = self.files.lock().unwrap();
        let content = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.into(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.fate.meet()?;
        self.files.lock().unwrap().remove(name).map(drop).ok_or(ErrorKind::NotFound.into())
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.names())
    }

    fn sync_directory(&self) -> Result<()> {
        self.fate.meet()
    }

    fn place(&self) -> String {
        "memory".into()
    }
}

#[derive(Debug)]
struct Opened {
    content: Content,
    fate: Arc<Fate>,
    mine: AtomicBool,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.mine.load(Ordering::SeqCst) {
            self.content.locked.store(false, Ordering::SeqCst);
        }
    }
}

impl LogFile for Opened {
    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> Result<()> {
        if self.fate.writes_fail.load(Ordering::SeqCst) {
            return Err(Error::from_raw_os_error(28));
        }
        let fate = self.fate.meet();
        let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let len = match &fate {
            Ok(()) => all.len(),
            Err(_) if self.fate.short.load(Ordering::SeqCst) => all.len() / 2,
            Err(_) => 0,
        };
        let mut bytes = self.content.bytes.lock().unwrap();
        let end = offset as usize + len;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(&all[..len]);
        fate
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = self.content.bytes.lock().unwrap();
        let there = bytes.get(offset as usize..).unwrap_or_default();
        let len = there.len().min(into.len());
        into[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.fate.meet()?;
        self.content.bytes.lock().unwrap().truncate(len as usize);
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.bytes.lock().unwrap().len() as u64)
    }

    fn sync(&self) -> Result<()> {
        self.fate.syncs.fetch_add(1, Ordering::SeqCst);
        self.fate.meet()
    }

    fn lock(&self) -> Result<Lock> {
        match self.content.locked.swap(true, Ordering::SeqCst) && !self.mine.load(Ordering::SeqCst) {
            true => Ok(Lock::Busy),
            false => {
                self.mine.store(true, Ordering::SeqCst);
                Ok(Lock::Taken)
            }
        }
    }
}
