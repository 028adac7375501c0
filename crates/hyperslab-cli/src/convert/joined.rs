//! Inputs that a driver has spread over several files, joined to one beside the output.

use super::atomic_output::beside;
use anyhow::{Context, Result, bail};
use hyperslab_core::Stack;
use std::path::{Path, PathBuf};

/// A file that goes when this is dropped.
pub struct Joined(PathBuf);

impl Joined {
    /// `None` if the input is not spread, or `from` says how to read it as it is.
    pub fn of(input: &Path, output: &Path, from: Option<&Stack>) -> Result<Option<Self>> {
        let Some(path) = beside(output, "joined") else { bail!("{} is no name for a file", output.display()) };
        for entry in hyperslab_formats::formats() {
            let Some(join) = entry.join_parts.filter(|_| from.is_none_or(|stack| stack.format.name == entry.name))
            else {
                continue;
            };
            if from.is_some_and(|stack| stack.format.get("driver").is_some()) {
                continue;
            }
            // Also what an error leaves behind goes.
            let joined = Self(path.clone());
            if join(input, &joined.0).with_context(|| input.display().to_string())? {
                return Ok(Some(joined));
            }
        }
        Ok(None)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
