//! An image of a directory, built from the changes that were recorded.

use crate::trace::{Action, Event};
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// `fallocate` with this bit leaves the length as it is.
const KEEP_SIZE: i64 = 1;
/// `fallocate` with this bit makes zeros of the range.
const PUNCH_HOLE: i64 = 2;

#[derive(Debug, Clone, Default)]
struct Node {
    data: Vec<u8>,
    attributes: BTreeMap<String, Vec<u8>>,
    modified: i64,
    permissions: u32,
}

/// Files and directories, by inode, so that links and open files that were renamed stay what they are.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    nodes: Vec<Node>,
    files: BTreeMap<PathBuf, usize>,
    directories: BTreeSet<PathBuf>,
    /// Whether changes of files that were not created are left out.
    lossy: bool,
}

impl Disk {
    /// A disk that may lack the creation of a file whose changes it is told.
    pub fn lossy() -> Self {
        Self { lossy: true, ..Self::default() }
    }

    /// The inode of a path.
    pub fn node(&self, path: &Path) -> Option<usize> {
        self.files.get(path).copied()
    }

    /// Applies a change.
    pub fn apply(&mut self, event: &Event) -> Result<()> {
        let path = &event.path;
        match &event.action {
            Action::Open { truncate, permissions } => {
                let node = self.open(path);
                self.nodes[node].modified = event.modified;
                self.nodes[node].permissions = *permissions;
                if *truncate {
                    self.nodes[node].data.clear();
                }
            }
            Action::Sync { .. } => {}
            Action::MakeDirectory => drop(self.directories.insert(path.clone())),
            Action::RemoveDirectory => drop(self.directories.remove(path)),
            Action::Unlink => drop(self.files.remove(path)),
            Action::Rename { to } => self.rename(path, to),
            Action::Link { to } => {
                if let Some(node) = self.node(path) {
                    self.files.insert(to.clone(), node);
                }
            }
            _ => self.change(event)?,
        }
        Ok(())
    }

    /// A directory that was there before.
    pub fn make_directory(&mut self, path: &Path) {
        self.directories.insert(path.to_owned());
    }

    /// Whether the change can be seen in an image at all.
    pub fn sees(event: &Event) -> bool {
        !matches!(event.action, Action::Sync { .. })
    }

    fn open(&mut self, path: &Path) -> usize {
        if let Some(node) = self.files.get(path) {
            return *node;
        }
        self.nodes.push(Node::default());
        self.files.insert(path.to_owned(), self.nodes.len() - 1);
        self.nodes.len() - 1
    }

    fn rename(&mut self, path: &Path, to: &Path) {
        if let Some(node) = self.files.remove(path) {
            self.files.insert(to.to_owned(), node);
        } else if self.directories.remove(path) {
            self.directories.insert(to.to_owned());
            let inside: Vec<PathBuf> = self.files.keys().filter(|file| file.starts_with(path)).cloned().collect();
            for file in inside {
                if let (Some(node), Ok(rest)) = (self.files.remove(&file), file.strip_prefix(path)) {
                    self.files.insert(to.join(rest), node);
                }
            }
        }
    }

    /// A change of a file that is there. Files without a name are of no more interest.
    fn change(&mut self, event: &Event) -> Result<()> {
        let Some(node) = self.files.get(&event.path) else {
            let gone = event.path.to_string_lossy().ends_with(" (deleted)") || self.directories.contains(&event.path);
            ensure!(gone || self.lossy, "{} was changed, but nothing created it", event.path.display());
            return Ok(());
        };
        let node = &mut self.nodes[*node];
        match &event.action {
            Action::Write { offset, data } => {
                let (start, end) = (*offset as usize, *offset as usize + data.len());
                node.data.resize(node.data.len().max(end), 0);
                node.data[start..end].copy_from_slice(data);
            }
            Action::Truncate { len } => node.data.resize(*len as usize, 0),
            Action::Allocate { offset, len, mode } => {
                let (start, end) = (*offset as usize, (*offset + *len) as usize);
                if mode & KEEP_SIZE == 0 {
                    node.data.resize(node.data.len().max(end), 0);
                }
                if mode & PUNCH_HOLE != 0 {
                    let end = end.min(node.data.len());
                    node.data[start.min(end)..end].fill(0);
                }
            }
            Action::SetAttribute { name, value } => drop(node.attributes.insert(name.clone(), value.clone())),
            Action::RemoveAttribute { name } => drop(node.attributes.remove(name)),
            _ => {}
        }
        node.modified = event.modified;
        Ok(())
    }

    /// Makes `directory` hold exactly this image. Files keep their inodes, by which logs know them.
    pub fn place(&self, directory: &Path) -> Result<()> {
        self.remove_others(directory)?;
        for path in &self.directories {
            std::fs::create_dir_all(path)?;
        }
        let mut placed: BTreeMap<usize, &Path> = BTreeMap::new();
        for (path, node) in &self.files {
            match placed.get(node) {
                Some(first) => {
                    let _ = std::fs::remove_file(path);
                    std::fs::hard_link(first, path)?;
                }
                None => {
                    place(&self.nodes[*node], path).with_context(|| format!("cannot make {}", path.display()))?;
                    placed.insert(*node, path);
                }
            }
        }
        Ok(())
    }

    fn remove_others(&self, directory: &Path) -> Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                match self.directories.contains(&path) {
                    true => self.remove_others(&path)?,
                    false => std::fs::remove_dir_all(&path)?,
                }
            } else if !self.files.contains_key(&path) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}

fn place(node: &Node, path: &Path) -> Result<()> {
    let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
    file.set_len(node.data.len() as u64)?;
    file.write_all_at(&node.data, 0)?;
    file.set_permissions(Permissions::from_mode(node.permissions))?;
    place_attributes(node, &file)?;
    let modified = UNIX_EPOCH + Duration::from_nanos(node.modified.max(0) as u64);
    file.set_modified(modified)?;
    Ok(())
}

fn place_attributes(node: &Node, file: &File) -> Result<()> {
    let mut names = vec![0; 4096];
    let len = rustix::fs::flistxattr(file, &mut names[..]).unwrap_or(0);
    for name in names[..len].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user.")) {
        let name = String::from_utf8_lossy(name).into_owned();
        if !node.attributes.contains_key(&name) {
            rustix::fs::fremovexattr(file, &name)?;
        }
    }
    for (name, value) in &node.attributes {
        rustix::fs::fsetxattr(file, name, value, rustix::fs::XattrFlags::empty())?;
    }
    Ok(())
}
