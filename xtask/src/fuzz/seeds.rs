//! What a fuzz target begins with: the files of `fuzz/seeds`, and for journals those that tests keep.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Journals, one a folder.
const JOURNALS: &str = "crates/hyperslab-journal/tests/fixtures";

/// Puts the seeds of a target into its corpus.
pub fn put(workspace: &Workspace, target: &str, corpus: &Path) -> Result<()> {
    let kept = workspace.root().join("fuzz/seeds").join(target);
    for path in if kept.is_dir() { listed(&kept)? } else { Vec::new() } {
        let name = path.file_name().context("a seed without a name")?;
        fs::copy(&path, corpus.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
    }
    if target == "journal" {
        for folder in listed(&workspace.root().join(JOURNALS))?.iter().filter(|path| path.is_dir()) {
            let name = folder.file_name().context("a fixture without a name")?;
            let seed = corpus.join(name);
            fs::write(&seed, journal(folder)?).with_context(|| format!("cannot write {}", seed.display()))?;
        }
    }
    Ok(())
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// All files of a journal in the form that its target takes: a byte of choices, then kind, segment, length and bytes of each.
fn journal(folder: &Path) -> Result<Vec<u8>> {
    let mut seed = vec![0];
    for path in listed(folder)? {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.to_string_lossy();
        let kind = if name.ends_with(".meta") { 1 } else { u8::from(name.ends_with(".data")) * 2 };
        let segment = name.rsplit('.').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
        let length = u16::try_from(bytes.len()).context("a fixture longer than a seed can be")?;
        seed.extend([kind, segment]);
        seed.extend(length.to_le_bytes());
        seed.extend(bytes);
    }
    Ok(seed)
}
