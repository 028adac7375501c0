//! Where recordings go. Processes write into a private folder beside the place, and what they leave there is then named
//! after the files that were used.

use super::recording::Recording;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const USUAL: &str = "hyperslab-trace";
/// How the parts of an unfinished recording end.
const FIRST_PART: &str = ".rank-0.part";

/// The user's choice, and the private folder.
pub struct Place {
    folder: PathBuf,
    /// The name that was asked for, if it was one file's.
    name: Option<PathBuf>,
    private: TempDir,
}

impl Place {
    /// Checks the choice and makes folders that are missing.
    pub fn new(out: Option<&Path>) -> Result<Self> {
        let out = out.unwrap_or(Path::new(USUAL));
        let as_folder = out == Path::new(USUAL) || out.is_dir() || out.as_os_str().as_encoded_bytes().ends_with(b"/");
        let (folder, name) = match (as_folder, out.file_name()) {
            (false, Some(name)) => (out.parent().unwrap_or(Path::new("")).to_owned(), Some(PathBuf::from(name))),
            _ => (out.to_owned(), None),
        };
        if name.is_some() && out.exists() {
            bail!("{} exists and is not replaced\n  try: another name, or remove it", out.display());
        }
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        if name.is_none() {
            fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let private = tempfile::Builder::new().prefix(".recording-").tempdir_in(&folder);
        let private = private.with_context(|| format!("cannot write to {}", folder.display()))?;
        Ok(Self { folder, name, private })
    }

    /// What the connector is told: `%p` and `%n` are the process and its file.
    pub fn pattern(&self) -> OsString {
        let path = std::path::absolute(self.private.path()).unwrap_or_else(|_| self.private.path().to_owned());
        path.join("%p-%n.jsonl").into()
    }

    /// Gives the recordings their names. If that fails, they stay where they are, and the error says where.
    pub fn gather(self) -> Result<Vec<Recording>> {
        match self.name_all() {
            Ok(recordings) => {
                // A folder that holds nothing is not left behind.
                let (folder, named) = (self.folder, self.name.is_some());
                drop(self.private);
                if !named {
                    let _ = fs::remove_dir(folder);
                }
                Ok(recordings)
            }
            Err(error) => {
                let kept = self.private.keep();
                Err(error.context(format!("what was recorded is kept in {}", kept.display())))
            }
        }
    }

    fn name_all(&self) -> Result<Vec<Recording>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.private.path()).context("cannot list what was recorded")? {
            let path = entry?.path();
            let name = path.to_string_lossy().into_owned();
            if let Some(whole) = name.strip_suffix(FIRST_PART) {
                // The program ended before it closed the file. If it did so before its first transfer, there is nothing.
                let whole = PathBuf::from(whole);
                if hyperslab_layers::trace_parts(&whole).is_some_and(|parts| parts.merge().is_ok()) {
                    found.push(whole);
                }
            } else if name.ends_with(".jsonl") && path.metadata().is_ok_and(|metadata| metadata.len() > 0) {
                found.push(path);
            }
        }
        found.sort_by_key(|path| order(path));
        found.dedup();
        let mut recordings: Vec<Recording> = found.iter().map(|path| Recording::of(path)).collect();
        for recording in &mut recordings {
            let wanted = match &self.name {
                Some(name) => name.clone(),
                None => PathBuf::from(format!("{}.jsonl", recording.subject)),
            };
            recording.path = self.settle(&recording.path, &wanted)?;
        }
        Ok(recordings)
    }

    /// Moves a file to the first free name: `run.jsonl`, `run-2.jsonl`, ...
    fn settle(&self, from: &Path, wanted: &Path) -> Result<PathBuf> {
        let stem = wanted.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let end = wanted.extension().map(|end| format!(".{}", end.to_string_lossy())).unwrap_or_default();
        for number in 1u64.. {
            let name = if number == 1 { format!("{stem}{end}") } else { format!("{stem}-{number}{end}") };
            let to = if self.folder == Path::new(".") { PathBuf::from(name) } else { self.folder.join(name) };
            // Taking the name first makes sure that nothing is replaced.
            match File::create_new(&to) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made.with_context(|| format!("cannot create {}", to.display()))?,
            };
            fs::rename(from, &to).with_context(|| format!("cannot move a recording to {}", to.display()))?;
            return Ok(to);
        }
        bail!("there is no free name for {}", wanted.display())
    }
}

/// By process and then by file, as numbers.
fn order(path: &Path) -> (u64, u64, PathBuf) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (process, file) = stem.split_once('-').unwrap_or((&stem, ""));
    (process.parse().unwrap_or(0), file.parse().unwrap_or(0), path.to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = folder.path().join("run.jsonl");
        let place = Place::new(Some(&wanted)).unwrap();
        for name in ["7-1.jsonl", "7-10.jsonl", "7-2.jsonl"] {
            fs::write(place.private.path().join(name), name).unwrap();
        }
        fs::write(folder.path().join("run-2.jsonl"), "there before").unwrap();
        let names: Vec<_> = place.gather().unwrap().into_iter().map(|recording| recording.path).collect();
        let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(names, ["run.jsonl", "run-3.jsonl", "run-4.jsonl"].map(|name| folder.path().join(name)));
        assert_eq!(
            [text("run.jsonl"), text("run-2.jsonl"), text("run-3.jsonl"), text("run-4.jsonl")],
            ["7-1.jsonl", "there before", "7-2.jsonl", "7-10.jsonl"]
        );
        assert!(Place::new(Some(&wanted)).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }
}
