//! The tree of directories that items lie in.

use hyperslab_core::{Error, Result};
use std::path::{Path, PathBuf};

/// The most directories of a tree.
const MOST: u64 = 1 << 24;

/// Directories, each with as many branches, numbered level by level from the root, which is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tree {
    branches: u64,
    directories: u64,
    first_holder: u64,
}

impl Tree {
    /// A tree of that depth; with `leaf_only` items lie in its last level alone.
    pub fn new(branches: u64, depth: u32, leaf_only: bool) -> Result<Self> {
        if branches == 0 && depth > 0 {
            return Err(Error::invalid("plan mdtest", "a tree of some depth has at least one branch").hint("give -b"));
        }
        let too_large = || {
            Error::invalid("plan mdtest", format!("the tree has more than {MOST} directories"))
                .hint("use smaller -b or -z")
        };
        let (mut directories, mut level) = (1_u64, 1_u64);
        for _ in 0..depth {
            level = level.checked_mul(branches).ok_or_else(too_large)?;
            directories = directories.checked_add(level).filter(|all| *all <= MOST).ok_or_else(too_large)?;
        }
        let first_holder = if leaf_only { directories - level } else { 0 };
        Ok(Self { branches, directories, first_holder })
    }

    /// How many there are.
    pub fn directories(&self) -> u64 {
        self.directories
    }

    /// How many of them hold items.
    pub fn holders(&self) -> u64 {
        self.directories - self.first_holder
    }

    /// The directory that holds the items of this number of holders.
    pub fn holder(&self, number: u64) -> u64 {
        self.first_holder + number
    }

    /// The path of a directory of the tree of `owner`, below `top`.
    pub fn path(&self, top: &Path, owner: usize, directory: u64) -> PathBuf {
        let mut numbers = vec![directory];
        let mut above = directory;
        while above > 0 {
            above = (above - 1) / self.branches;
            numbers.push(above);
        }
        numbers.iter().rev().fold(top.to_owned(), |path, number| path.join(format!("mdtest_tree.{owner}.{number}")))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn directories_lie_below_their_parents() {
        let tree = Tree::new(2, 2, true).unwrap();
        assert_eq!((tree.directories(), tree.holders(), tree.holder(0)), (7, 4, 3));
        let path = tree.path(Path::new("top"), 1, 6);
        assert_eq!(path, Path::new("top/mdtest_tree.1.0/mdtest_tree.1.2/mdtest_tree.1.6"));
        assert_eq!(Tree::new(5, 0, false).unwrap().holders(), 1);
        assert_eq!(Tree::new(1, 3, false).unwrap().directories(), 4);
        assert!(Tree::new(1000, 9, false).is_err());
    }
}
