//! Programs and libraries that take part.

use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// Where they are.
#[derive(Debug, Clone)]
pub struct Tools {
    pub python: PathBuf,
    /// The folder with the Python modules of the laboratory.
    pub modules: PathBuf,
    pub hyperslab: PathBuf,
    /// The connector, alone in a folder below `scratch`.
    pub plugin: PathBuf,
    /// The preloaded recorder.
    pub recorder: PathBuf,
}

impl Tools {
    /// Finds them in the folder of built things, and puts a copy of the connector below `scratch`.
    pub fn find(built: &Path, scratch: &Path) -> Result<Self> {
        let there = |name: &str| newest(built, name);
        let connector = there("libhyperslab_vol.so")?;
        let plugin = scratch.join("plugin");
        std::fs::create_dir_all(&plugin)?;
        std::fs::copy(&connector, plugin.join("libhyperslab_vol.so")).context("cannot copy the connector")?;
        Ok(Self {
            python: python(built)?,
            modules: Path::new(env!("CARGO_MANIFEST_DIR")).join("python"),
            hyperslab: there("hyperslab")?,
            plugin,
            recorder: there("libhyperslab_faultshim.so").or_else(|_| beside("libhyperslab_faultshim.so"))?,
        })
    }
}

/// The file of this name beside this program: it was built with it, whatever is looked at.
fn beside(name: &str) -> Result<PathBuf> {
    newest(std::env::current_exe()?.parent().context("where is this program?")?, name)
}

/// The file of this name that was built last: `cargo build` leaves it in the folder, `cargo test` may leave it below.
fn newest(built: &Path, name: &str) -> Result<PathBuf> {
    let modified = |path: &PathBuf| path.metadata().and_then(|data| data.modified()).ok();
    let found = [built.join(name), built.join("deps").join(name)].into_iter().filter(|path| modified(path).is_some());
    found
        .max_by_key(modified)
        .with_context(|| format!("{name} is not in {}\n  try: cargo xtask crashlab, which builds it", built.display()))
}

/// The Python of the tests, which has h5py.
fn python(built: &Path) -> Result<PathBuf> {
    let named = std::env::var_os("HYPERSLAB_PYTHON").map(PathBuf::from);
    let usual = built.parent().map(|target| target.join("python/bin/python"));
    let found = named.into_iter().chain(usual).find(|path| path.is_file());
    found.context("there is no Python with h5py\n  try: cargo xtask setup --tests")
}
