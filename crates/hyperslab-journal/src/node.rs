//! One file for the logs of all ranks of a node.
//!
//! The file consists of blocks. Rank i of n has blocks i, i + n, i + 2n and so on, so that nobody has to ask for one. A block
//! begins with a head that names the segment file whose bytes follow, and its place among the blocks of that file: so the
//! segments of every rank are found again without a table. Heads of journals, which are locked and renamed, stay files of
//! their own. docs/log-format.md has every byte.

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

/// A directory whose segments may lie in files of nodes.
#[derive(Debug)]
pub struct NodeDirectory {
    directory: Arc<Directory>,
    /// Where this process puts its segments, if it writes.
    own: Option<Arc<NodeFile>>,
    /// Segments in files of nodes, by name.
    segments: Mutex<BTreeMap<String, Arc<Blocks>>>,
}

/// A rank's place on its node.
#[derive(Debug, Clone, Copy)]
pub struct NodePlace {
    /// The job, and the node within it.
    pub job: Id,
    /// Drawn by the first rank of the node.
    pub node: Id,
    /// Among the ranks of the node.
    pub rank: usize,
    /// Of the node.
    pub ranks: usize,
}

impl NodePlace {
    fn name(&self) -> String {
        format!("hyperslab-{}-{}{ENDING}", self.job, self.node)
    }
}

impl NodeDirectory {
    /// To find and read journals.
    pub fn open(path: &Path) -> Result<Self> {
        let directory = Arc::new(Directory::open(path)?);
        Ok(Self { directory, own: None, segments: Mutex::default() })
    }

    /// To write journals. The first rank of the node comes first, and makes the file; the others follow.
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

    /// Removes files of nodes in which nothing is and whose ranks are gone.
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
            // A head, which goes last: perhaps nothing is left of its node.
            self.remove_empty_nodes()?;
        }
        Ok(())
    }

    /// Looks into the files of nodes, unless this process writes one.
    fn list(&self) -> io::Result<Vec<String>> {
        let mut found = self.directory.list()?;
        if self.own.is_none() {
            let mut segments = BTreeMap::new();
            for name in found.iter().filter(|name| name.ends_with(ENDING)) {
                // What cannot be read is not ours.
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
