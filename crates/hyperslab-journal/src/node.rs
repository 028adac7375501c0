//! One file per node for the journals of all its ranks.
//!
//! The file consists of blocks. Rank i of n owns blocks i, i + n, i + 2n and so on, so that allocation needs no
//! coordination. A block header names the segment file whose bytes follow, and the block's index within it, so that
//! segments are found without a table. Heads of journals, which are locked and renamed, remain separate files. Specified in
//! docs/log-format.md.

pub(super) mod block;
mod blocks;
mod node_file;

use super::directory::Directory;
use super::file_names;
use super::header::Id;
use super::storage::{JournalStorage, LogFile};
use blocks::Blocks;
use hyperslab_core::Result;
use node_file::NodeFile;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const ENDING: &str = ".node";

/// [`JournalStorage`] whose segments may be stored in node files.
#[derive(Debug)]
pub struct NodeDirectory {
    directory: Arc<Directory>,
    /// The node file to which this process writes, if it does.
    own: Option<Arc<NodeFile>>,
    /// Segments in node files, by name.
    segments: Mutex<BTreeMap<String, Arc<Blocks>>>,
}

/// A rank's position on its node.
#[derive(Debug, Clone, Copy)]
pub struct NodePlace {
    /// The job.
    pub job: Id,
    /// Random identifier of the node, drawn by its first rank.
    pub node: Id,
    /// Index of the rank on the node.
    pub rank: usize,
    /// Number of ranks on the node.
    pub ranks: usize,
}

impl NodePlace {
    fn name(&self) -> String {
        format!("hyperslab-{}-{}{ENDING}", self.job, self.node)
    }
}

impl NodeDirectory {
    /// Opens a directory to find and read journals.
    pub fn open(path: &Path) -> Result<Self> {
        let directory = Arc::new(Directory::open(path)?);
        Ok(Self { directory, own: None, segments: Mutex::default() })
    }

    /// Opens a directory to write journals. The first rank of the node calls it first and creates the node file.
    pub fn join(path: &Path, place: &NodePlace) -> Result<Self> {
        let directory = Arc::new(Directory::open(path)?);
        let name = place.name();
        let file = match place.rank {
            0 => directory.create_private(&name),
            _ => directory.open_private(&name),
        };
        let own = file.and_then(|file| NodeFile::join(directory.clone(), file, &name, place.rank, place.ranks));
        let own = own.map_err(|cause| super::failed("create journal", format!("{}/{name}", path.display()), cause))?;
        Ok(Self { directory, own: Some(Arc::new(own)), segments: Mutex::default() })
    }

    /// Removes node files that are empty and have no writers.
    fn remove_empty_nodes(&self) -> io::Result<()> {
        for name in self.directory.list()?.iter().filter(|name| name.ends_with(ENDING)) {
            if let Ok(file) = self.directory.open_private(name) {
                NodeFile::look_into(self.directory.clone(), file, name).remove_if_empty();
            }
        }
        Ok(())
    }

    fn segments(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Blocks>>> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, name: &str) -> Option<Arc<Blocks>> {
        self.segments().get(name).cloned()
    }
}

impl JournalStorage for NodeDirectory {
    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let Some(own) = self.own.as_ref().filter(|_| file_names::is_segment(name)) else {
            return self.directory.create(name);
        };
        let blocks = Arc::new(Blocks::create(own.clone(), name)?);
        self.segments().insert(name.to_owned(), blocks.clone());
        Ok(blocks)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        match self.known(name) {
            Some(blocks) => Ok(blocks),
            None => self.directory.open(name),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        if let Some(blocks) = self.segments().remove(name) {
            return blocks.forget();
        }
        self.directory.remove(name)?;
        if self.own.is_none() {
            // A head is removed last: its node file may be empty now.
            self.remove_empty_nodes()?;
        }
        Ok(())
    }

    /// Scans the node files, unless this process writes one.
    fn list(&self) -> io::Result<Vec<String>> {
        let mut found = self.directory.list()?;
        if self.own.is_none() {
            let mut segments = BTreeMap::new();
            for name in found.iter().filter(|name| name.ends_with(ENDING)) {
                // Unreadable files are not ours.
                let Ok(file) = self.directory.open_private(name) else { continue };
                let shared = Arc::new(NodeFile::look_into(self.directory.clone(), file, name));
                for (segment, numbers) in shared.scan()? {
                    segments.entry(segment.clone()).or_insert_with(|| Arc::new(Blocks::found(shared.clone(), numbers)));
                }
            }
            found.extend(segments.keys().cloned());
            *self.segments() = segments;
        }
        Ok(found)
    }

    fn sync_directory(&self) -> io::Result<()> {
        if let Some(own) = &self.own {
            own.sync()?;
        }
        self.directory.sync_directory()
    }

    fn whole(&self) -> io::Result<Arc<dyn LogFile>> {
        self.directory.whole()
    }

    fn place(&self) -> String {
        self.directory.place()
    }
}

#[cfg(test)]
mod tests;
