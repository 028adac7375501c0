//! Where the logs are that a user asks for by directories and files.

use super::escape::escaped;
use anyhow::{Result, bail};
use hyperslab_journal::marker;
use hyperslab_journal::recover::OrphanedJournal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A directory with logs, and the files whose logs are wanted: all, if none is named.
#[derive(Debug)]
pub struct RecoveryPlace {
    pub directory: PathBuf,
    files: Vec<PathBuf>,
}

impl RecoveryPlace {
    /// Whether a log is wanted. Those whose file is unknown are where a whole directory is asked for.
    pub fn takes(&self, left: &OrphanedJournal) -> bool {
        let is_named = |container: &Path| self.files.iter().any(|file| file == container);
        self.files.is_empty() || left.header.as_ref().is_some_and(|header| is_named(&header.container))
    }

    /// Whether a file that is asked for has a rollback journal, of which more is said.
    pub fn has_rollbacks(&self) -> bool {
        let found = hyperslab_rollback::find_in(&self.directory).unwrap_or_default();
        found.iter().any(|file| self.files.is_empty() || self.files.contains(file))
    }

    /// Whether a file that is asked for says itself that logs of it wait, of which more is said.
    pub fn has_marks(&self) -> bool {
        self.files.iter().any(|file| !marker::waiting(file).is_empty())
    }

    /// Of what, for people.
    pub fn of_files(&self) -> String {
        let names: Vec<String> = self.files.iter().map(|file| escaped(file.display())).collect();
        if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) }
    }
}

/// Says which logs a file still lacks after everything that was found is recovered: they name another path than the file has
/// now. Returns whether there are any.
pub fn say_what_waits(path: &Path) -> bool {
    let waiting = marker::waiting(path);
    for (folder, is_there) in &waiting {
        let (name, folder) = (escaped(path.display()), escaped(folder.display()));
        match is_there {
            true => {
                complain!("hyperslab: {name}: writes of it wait in logs in {folder}, which name another path");
                complain!(
                    "  try: hyperslab recover {folder} --list, and move the file back to the path that is named there"
                );
            }
            false => {
                complain!("hyperslab: {name}: writes of it were in logs in {folder}, and this directory is gone");
                complain!(
                    "  try: move the file and its logs back to where they were; or recover --discard, if nothing is missing"
                );
            }
        }
    }
    !waiting.is_empty()
}

/// The directories of what a user names. A directory that has a marker beside it is a container (Zarr, POSIX), any other holds
/// logs. Of a file, its own folder is looked at too, where logs lie unless the user says otherwise.
pub fn places(paths: &[PathBuf]) -> Result<Vec<RecoveryPlace>> {
    let mut wanted: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    let mut whole = Vec::new();
    for path in paths {
        let real = path.canonicalize().unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
        let markers = marker::markers(&real);
        let folders: Vec<PathBuf> = markers.into_iter().map(|marker| marker.directory).collect();
        if real.is_dir() && folders.is_empty() {
            whole.push(path.clone());
            continue;
        }
        let beside = real.parent().map(Path::to_path_buf);
        if folders.is_empty() && !real.exists() {
            bail!("{}: no such file or directory, and no logs of it are known", escaped(path.display()));
        }
        for folder in folders.into_iter().chain(beside).filter(|folder| folder.is_dir()) {
            let files = wanted.entry(folder).or_default();
            if !files.contains(&real) {
                files.push(real.clone());
            }
        }
    }
    let each = wanted.into_iter().map(|(directory, files)| RecoveryPlace { directory, files });
    Ok(whole.into_iter().map(|directory| RecoveryPlace { directory, files: Vec::new() }).chain(each).collect())
}
