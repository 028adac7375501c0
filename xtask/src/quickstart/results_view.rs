//! Finds the files that a benchmark left, and tells by their first bytes what they are.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::shell;

const HDF5_SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
const DEEPEST: usize = 4;

/// What something on disk is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A file that libhdf5 reads.
    Hdf5,
    /// A folder that zarr reads.
    Zarr,
    /// A folder of plain files.
    Plain,
}

/// A file or folder worth looking at.
#[derive(Debug, PartialEq)]
pub struct Written {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub path: PathBuf,
}

impl Kind {
    /// Its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hdf5 => "HDF5",
            Self::Zarr => "Zarr",
            Self::Plain => "POSIX",
        }
    }

    /// Commands that list what is in `path`; `python` is one that has h5py and zarr, if there is one.
    pub fn how_to_list(self, path: &str, python: Option<&str>) -> Vec<String> {
        let ask_python = |code: &str| python.map(|python| format!("{python} -c \"{code}\""));
        match self {
            Self::Hdf5 => {
                let h5dump = shell::find_program("h5dump").map(|_| format!("h5dump -H {path}"));
                let h5py = ask_python(&format!("import h5py; h5py.File('{path}').visit(print)"));
                h5dump.into_iter().chain(h5py).collect()
            }
            Self::Zarr => {
                let zarr = ask_python(&format!(
                    "import zarr; [print(*m) for m in zarr.open('{path}', mode='r').members(None)]"
                ));
                std::iter::once(format!("ls -R {path}")).chain(zarr).collect()
            }
            Self::Plain => vec![format!("ls -lR {path}")],
        }
    }
}

/// Everything below `folder`: HDF5 files, Zarr stores, and folders of raw arrays. Sorted by path.
pub fn find(folder: &Path) -> Vec<Written> {
    let mut found = Vec::new();
    look(folder, DEEPEST, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn look(folder: &Path, depth: usize, found: &mut Vec<Written>) {
    for (mark, kind) in [("zarr.json", Kind::Zarr), ("hyperslab.json", Kind::Plain)] {
        if folder.join(mark).is_file() {
            return found.push(Written { kind, path: folder.to_owned() });
        }
    }
    // A folder that cannot be listed is simply not shown: the benchmark itself has reported its errors already.
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            if depth > 0 {
                look(&path, depth - 1, found);
            }
        } else if is_hdf5(&path) {
            found.push(Written { kind: Kind::Hdf5, path });
        }
    }
}

fn is_hdf5(path: &Path) -> bool {
    let mut start = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == HDF5_SIGNATURE
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let root = std::env::temp_dir().join(format!("hyperslab-xtask-written-{}", std::process::id()));
        for folder in ["a", "b/x.zarr/c", "d/inside"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("a/x.h5"), [&HDF5_SIGNATURE[..], b"more"].concat()).unwrap();
        fs::write(root.join("b/x.zarr/zarr.json"), "{}").unwrap();
        fs::write(root.join("b/x.zarr/c/0"), "chunk").unwrap();
        fs::write(root.join("d/hyperslab.json"), "{}").unwrap();
        fs::write(root.join("d/inside/data"), "raw").unwrap();
        fs::create_dir(root.join("0123abcd")).unwrap();
        fs::write(root.join("0123abcd/stdout"), "a report, not data").unwrap();
        let found = find(&root);
        fs::remove_dir_all(&root).unwrap();
        let expected = [(Kind::Hdf5, "a/x.h5"), (Kind::Zarr, "b/x.zarr"), (Kind::Plain, "d")];
        assert_eq!(found, expected.map(|(kind, path)| Written { kind, path: root.join(path) }));
    }
}
