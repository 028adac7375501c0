//! What the handles of a container share on one rank.

use crate::posix::buffer_pool::BufferPool;
use crate::posix::data_file::DataFile;
use hyperslab_core::{Communicator, Error, Result, agree, lock};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};

#[derive(Debug)]
pub(super) struct Shared {
    pub path: PathBuf,
    /// The container is one file, which is its array.
    pub single: bool,
    pub comm: Arc<dyn Communicator>,
    pub writable: bool,
    pub staging: Arc<BufferPool>,
    closed: AtomicBool,
    open: Mutex<Vec<Weak<DataFile>>>,
    /// What has to be synced besides open files: those that were closed, and directories, which come last.
    changed: Mutex<[BTreeSet<PathBuf>; 2]>,
}

impl Shared {
    pub fn new(path: &Path, single: bool, comm: &Arc<dyn Communicator>, writable: bool, buffer: usize) -> Self {
        Self {
            path: path.into(),
            single,
            comm: comm.clone(),
            writable,
            staging: Arc::new(BufferPool::new(buffer, 64)),
            closed: AtomicBool::new(false),
            open: Mutex::default(),
            changed: Mutex::default(),
        }
    }

    pub fn check_open(&self, operation: &'static str) -> Result<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(Error::invalid(operation, "the container is closed"));
        }
        Ok(())
    }

    pub fn check_writable(&self, operation: &'static str) -> Result<()> {
        self.check_open(operation)?;
        if !self.writable {
            return Err(Error::invalid(operation, "the container is open for reading only"));
        }
        Ok(())
    }

    /// The same for new objects and attributes: a single file has room for its array only.
    pub fn check_extendable(&self, operation: &'static str) -> Result<()> {
        self.check_writable(operation)?;
        if self.single {
            return Err(Error::unsupported(operation, "a single .npy file holds one array and nothing else")
                .hint("use a directory of .npy files"));
        }
        Ok(())
    }

    /// Runs `work` on rank 0; all ranks succeed or fail alike. Collective.
    pub fn on_root(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        agree(&*self.comm, if self.comm.rank() == 0 { work() } else { Ok(()) })
    }

    /// Notes a file that was opened.
    pub fn opened(&self, file: &Arc<DataFile>) {
        let mut open = lock(&self.open);
        open.retain(|file| file.strong_count() > 0);
        open.push(Arc::downgrade(file));
    }

    /// Notes a file whose handle goes away.
    pub fn released(&self, file: &DataFile) {
        if file.is_dirty() {
            lock(&self.changed)[0].insert(file.path().into());
        }
    }

    /// Notes a new or changed file and the directories that lead to it.
    pub fn changed(&self, file: &Path) {
        let mut changed = lock(&self.changed);
        changed[0].insert(file.into());
        let above = file.ancestors().skip(1).take_while(|above| above.starts_with(&self.path));
        changed[1].extend(above.map(Path::to_path_buf));
    }

    /// Makes everything that this rank wrote durable.
    pub fn sync(&self) -> Result<()> {
        let open: Vec<Arc<DataFile>> = lock(&self.open).iter().filter_map(Weak::upgrade).collect();
        open.iter().try_for_each(|file| file.sync())?;
        let waiting = lock(&self.changed).clone();
        for path in waiting.iter().flatten() {
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced.map_err(|cause| Error::io("flush", cause).target(path.display()))?;
        }
        let mut changed = lock(&self.changed);
        for (all, done) in changed.iter_mut().zip(&waiting) {
            all.retain(|path| !done.contains(path));
        }
        Ok(())
    }

    /// Whether this call closed it.
    pub fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }
}
