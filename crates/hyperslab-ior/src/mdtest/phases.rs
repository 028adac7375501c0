//! The phases of an iteration, as every rank goes through them.

use super::items::{Files, data};
use super::options::Options;
use super::tree::Tree;
use hyperslab_core::{Communicator, Error, Reduce, Result, agree};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A phase, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum ItemKind {
    DirectoryCreation,
    DirectoryStat,
    DirectoryRename,
    DirectoryRemoval,
    FileCreation,
    FileStat,
    FileRead,
    FileRemoval,
    TreeCreation,
    TreeRemoval,
}

/// What a phase took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// Which.
    pub kind: ItemKind,
    /// Items of all ranks.
    pub items: u64,
    /// Seconds from the first start to the last end.
    pub seconds: f64,
}

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Iteration {
    /// Its phases.
    pub phases: Vec<Phase>,
    /// Bytes that were not what they should be.
    pub wrong: u64,
}

/// One rank in one iteration.
struct Rank<'a> {
    options: &'a Options,
    tree: &'a Tree,
    comm: &'a Arc<dyn Communicator>,
    files: &'a Files,
    top: PathBuf,
    /// Items of each rank that are there.
    items: u64,
    done: Iteration,
}

/// All iterations. Collective; every rank gets the same figures.
pub fn run(options: &Options, tree: &Tree, comm: &Arc<dyn Communicator>) -> Result<Vec<Iteration>> {
    let files = agree(&**comm, Files::of(options))?;
    let mut all = Vec::new();
    for iteration in 0..options.iterations {
        std::thread::sleep(Duration::from_secs(options.pre_delay));
        let directory = &options.directories[comm.rank() % options.directories.len()];
        let top = Path::new(directory).join(format!("test-dir.{iteration}-0"));
        let items = options.items(tree);
        let rank = Rank { options, tree, comm, files: &files, top, items, done: Iteration::default() };
        all.push(rank.go_through()?);
    }
    Ok(all)
}

impl Rank<'_> {
    fn go_through(mut self) -> Result<Iteration> {
        let options = self.options;
        if options.create {
            self.create_tree()?;
        }
        if options.on_directories {
            self.directories()?;
        }
        if options.on_files {
            self.all_files()?;
        }
        if options.remove {
            self.remove_tree()?;
        }
        let mut wrong = [self.done.wrong];
        self.comm.all_reduce(&mut wrong, Reduce::Sum)?;
        self.done.wrong = wrong[0];
        Ok(self.done)
    }

    /// Whether this rank looks after a tree.
    fn has_tree(&self) -> bool {
        self.options.unique || self.comm.rank() == 0
    }

    fn create_tree(&mut self) -> Result<()> {
        let prepared = if self.has_tree() { make_all(&self.top) } else { Ok(()) };
        agree(&**self.comm, prepared)?;
        let directories = self.tree.directories();
        self.timed(ItemKind::TreeCreation, directories, |rank| {
            if !rank.has_tree() {
                return Ok(());
            }
            (0..directories).try_for_each(|number| {
                let path = rank.tree.path(&rank.top, rank.owner(0), number);
                fs::create_dir(&path).map_err(|e| Error::io("create directory", e).target(path.display()))
            })
        })
    }

    fn remove_tree(&mut self) -> Result<()> {
        let directories = self.tree.directories();
        self.timed(ItemKind::TreeRemoval, directories, |rank| {
            if !rank.has_tree() {
                return Ok(());
            }
            (0..directories)
                .rev()
                .try_for_each(|number| remove_directory(&rank.tree.path(&rank.top, rank.owner(0), number)))
        })?;
        // Several ranks may share what is above their trees.
        let removed =
            if self.comm.rank() < self.options.directories.len() { remove_directory(&self.top) } else { Ok(()) };
        agree(&**self.comm, removed)
    }

    fn directories(&mut self) -> Result<()> {
        let (options, items) = (self.options, self.items);
        if options.create {
            self.timed(ItemKind::DirectoryCreation, items, |rank| {
                (0..items).try_for_each(|item| {
                    let path = rank.path("dir", 0, item);
                    fs::create_dir(&path).map_err(|e| Error::io("create directory", e).target(path.display()))
                })
            })?;
        }
        if options.stat {
            self.timed(ItemKind::DirectoryStat, items, |rank| {
                rank.order().try_for_each(|item| {
                    let path = rank.path("dir", 1, item);
                    fs::metadata(&path).map(|_| ()).map_err(|e| Error::io("stat", e).target(path.display()))
                })
            })?;
        }
        if options.rename && options.create {
            self.timed(ItemKind::DirectoryRename, items, |rank| {
                (0..items).try_for_each(|item| {
                    let (from, to) = (rank.path("dir", 0, item), rank.path("renamed", 0, item));
                    fs::rename(&from, &to).map_err(|e| Error::io("rename", e).target(from.display()))
                })
            })?;
            // Back again, so that later phases find them by their names; not measured.
            let back = (0..items).try_for_each(|item| {
                let (from, to) = (self.path("renamed", 0, item), self.path("dir", 0, item));
                fs::rename(&from, &to).map_err(|e| Error::io("rename", e).target(from.display()))
            });
            agree(&**self.comm, back)?;
        }
        if options.remove {
            self.timed(ItemKind::DirectoryRemoval, items, |rank| {
                (0..items).try_for_each(|item| remove_directory(&rank.path("dir", 3, item)))
            })?;
        }
        Ok(())
    }

    fn all_files(&mut self) -> Result<()> {
        let options = self.options;
        let own = data(self.comm.rank(), options.signature, options.write_bytes);
        if options.create {
            self.create_files(&own)?;
        }
        let items = self.items;
        if options.stat {
            self.timed(ItemKind::FileStat, items, |rank| {
                rank.order().try_for_each(|item| rank.files.stat(&rank.path("file", 1, item)))
            })?;
        }
        if options.read {
            let compared = options.verify && self.files.stores();
            let expected = data(self.owner_of(2), options.signature, options.write_bytes.max(options.read_bytes));
            let expected = &expected[..options.read_bytes as usize];
            let mut wrong = 0;
            self.timed(ItemKind::FileRead, items, |rank| {
                let mut found = vec![0; expected.len()];
                (0..items).try_for_each(|item| {
                    rank.files.read(&rank.path("file", 2, item), &mut found)?;
                    if compared && found != expected {
                        wrong += expected.iter().zip(&found).filter(|(one, other)| one != other).count() as u64;
                    }
                    Ok(())
                })
            })?;
            self.done.wrong += wrong;
        }
        if options.remove {
            self.timed(ItemKind::FileRemoval, items, |rank| {
                (0..items).try_for_each(|item| rank.files.remove(&rank.path("file", 3, item)))
            })?;
        }
        Ok(())
    }

    /// Until all are there, or the time is over and all ranks have made as many as the fastest.
    fn create_files(&mut self, bytes: &[u8]) -> Result<()> {
        let deadline = (self.options.stonewall > 0).then(|| Duration::from_secs(self.options.stonewall));
        let items = self.items;
        let mut made = 0;
        self.timed(ItemKind::FileCreation, items, |rank| {
            let began = Instant::now();
            let create = |from: u64, to: u64, deadline: Option<Duration>| -> Result<u64> {
                for item in from..to {
                    if deadline.is_some_and(|deadline| began.elapsed() >= deadline) {
                        return Ok(item);
                    }
                    rank.files.create(&rank.path("file", 0, item), bytes)?;
                }
                Ok(to)
            };
            made = create(0, items, deadline)?;
            if deadline.is_some() {
                let mut most = [made];
                rank.comm.all_reduce(&mut most, Reduce::Max)?;
                made = create(made, most[0], None)?;
            }
            Ok(())
        })?;
        self.items = made;
        if let Some(phase) = self.done.phases.last_mut() {
            phase.items = made * self.comm.size() as u64;
        }
        Ok(())
    }

    /// Does and measures a phase of which each rank does `items`. An error of a rank ends all.
    fn timed(&mut self, kind: ItemKind, items: u64, mut work: impl FnMut(&Self) -> Result<()>) -> Result<()> {
        self.comm.barrier()?;
        let began = Instant::now();
        let done = work(self);
        let mut seconds = [began.elapsed().as_secs_f64()];
        if self.options.barriers {
            agree(&**self.comm, done)?;
        } else {
            done?;
        }
        self.comm.all_reduce_f64(&mut seconds, Reduce::Max)?;
        let ranks = match kind {
            ItemKind::TreeCreation | ItemKind::TreeRemoval if !self.options.unique => 1,
            _ => self.comm.size() as u64,
        };
        self.done.phases.push(Phase { kind, items: items * ranks, seconds: seconds[0] });
        Ok(())
    }

    /// The rank whose items this one takes, so many strides away.
    fn owner_of(&self, strides: usize) -> usize {
        (self.comm.rank() + strides * (self.options.stride % self.comm.size())) % self.comm.size()
    }

    /// Whose tree they lie in.
    fn owner(&self, strides: usize) -> usize {
        if self.options.unique { self.owner_of(strides) } else { 0 }
    }

    fn path(&self, kind: &str, strides: usize, item: u64) -> PathBuf {
        let each = self.options.items_per_directory(self.tree);
        let directory = self.tree.holder(item / each);
        let directory = self.tree.path(&self.top, self.owner(strides), directory);
        directory.join(format!("{kind}.mdtest.{}.{item}", self.owner_of(strides)))
    }

    /// Items in order, or shuffled.
    fn order(&self) -> Box<dyn Iterator<Item = u64>> {
        if !self.options.random {
            return Box::new(0..self.items);
        }
        let mut items: Vec<u64> = (0..self.items).collect();
        let mut state = self.options.random_seed ^ 0x9e37_79b9_7f4a_7c15;
        for at in (1..items.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            items.swap(at, (state >> 33) as usize % (at + 1));
        }
        Box::new(items.into_iter())
    }
}

fn make_all(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| Error::io("create directory", e).target(path.display()))
}

fn remove_directory(path: &Path) -> Result<()> {
    fs::remove_dir(path).map_err(|e| Error::io("remove directory", e).target(path.display()))
}
