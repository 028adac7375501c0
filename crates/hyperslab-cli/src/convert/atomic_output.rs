//! Where the result grows, and how it takes its place.

use anyhow::{Result, bail};
use hyperslab_core::{Error, Format};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The place of a result.
pub struct Place {
    output: PathBuf,
    unfinished: PathBuf,
    format: Arc<dyn Format>,
}

/// `path` with something before and after its name, in the same directory.
pub fn beside(path: &Path, suffix: &str) -> Option<PathBuf> {
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}.{suffix}", std::process::id()));
    Some(path.with_file_name(name))
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Removes a container and nothing else.
fn remove(path: &Path) -> Result<()> {
    match path.is_symlink() {
        true => Ok(std::fs::remove_file(path)?),
        false => Ok(hyperslab_run::open_stack(&hyperslab::detect_stack(path)?)?.remove(path)?),
    }
}

impl Place {
    /// Refuses an output that must not be replaced, or is nothing that this program writes.
    pub fn find(output: &Path, overwrite: bool, format: Arc<dyn Format>) -> Result<Self> {
        let Some(unfinished) = beside(output, "unfinished") else {
            bail!("{} is no name for a file", output.display())
        };
        if exists(output) && !overwrite {
            bail!("{} exists already\n  try: another name, or --overwrite", output.display());
        }
        if exists(output) && hyperslab::detect_stack(output).is_err() {
            bail!("{} is none of the formats that this program writes, and is left alone", output.display());
        }
        if exists(&unfinished) {
            bail!("{} is in the way\n  try: remove it", unfinished.display());
        }
        Ok(Self { output: output.into(), unfinished, format })
    }

    /// Where to write.
    pub fn unfinished(&self) -> &Path {
        &self.unfinished
    }

    /// The result is complete: it takes the place of what was there.
    pub fn finish(&self) -> hyperslab_core::Result<()> {
        let fail = |cause| Error::io("rename", cause).target(self.output.display());
        let elsewhere = |file: &PathBuf| !file.starts_with(&self.unfinished);
        if let Some(file) = self.format.files(&self.unfinished)?.into_iter().find(elsewhere) {
            return Err(Error::unsupported("convert", format!("{} would not be renamed with it", file.display()))
                .target(self.output.display())
                .hint("use --to with options that keep everything in one file or directory"));
        }
        if !exists(&self.output) {
            return std::fs::rename(&self.unfinished, &self.output).map_err(fail);
        }
        let old = beside(&self.output, "replaced").ok_or_else(|| Error::invalid("convert", "no name for a file"))?;
        std::fs::rename(&self.output, &old).map_err(fail)?;
        if let Err(cause) = std::fs::rename(&self.unfinished, &self.output) {
            // What was there comes back.
            let _ = std::fs::rename(&old, &self.output);
            return Err(fail(cause));
        }
        if let Err(error) = remove(&old) {
            eprintln!("hyperslab: what was there before is left as {}: {error}", old.display());
        }
        Ok(())
    }

    /// Nothing is left of a result that failed.
    pub fn give_up(&self) {
        if exists(&self.unfinished)
            && let Err(error) = self.format.remove(&self.unfinished)
        {
            eprintln!("hyperslab: {} is left and could not be removed: {error}", self.unfinished.display());
        }
    }
}
