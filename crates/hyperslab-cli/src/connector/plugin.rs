//! Where the plugin is.
//!
//! libhdf5 opens every library of a plugin folder, so the plugin lies alone in its own: `lib/hyperslab` where it is installed,
//! `plugin` beside the program in a build.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};

const FILE: &str = "libhyperslab_vol.so";

/// The folder that libhdf5 has to search, which holds the plugin and nothing else.
pub fn find() -> Result<PathBuf> {
    let program = std::env::current_exe().and_then(fs::canonicalize).context("cannot tell where this program is")?;
    let beside = program.parent().context("this program lies in no folder")?;
    let folder = find_near(beside)?;
    ensure!(
        !folder.as_os_str().as_encoded_bytes().contains(&b':'),
        "{} has a colon in its name, which HDF5_PLUGIN_PATH cannot hold\n  try: install it elsewhere",
        folder.display()
    );
    Ok(folder)
}

fn find_near(beside: &Path) -> Result<PathBuf> {
    let installed = beside.parent().map(|prefix| prefix.join("lib/hyperslab"));
    let built = beside.join("plugin");
    if let Some(folder) = installed.into_iter().chain([built.clone()]).find(|folder| folder.join(FILE).exists()) {
        return Ok(folder);
    }
    if !beside.join(FILE).exists() {
        bail!(
            "the HDF5 connector {FILE} is neither in {} nor beside this program in {}\n  try: cargo xtask install, or \
             in a checkout: cargo xtask build",
            beside.parent().unwrap_or(beside).join("lib/hyperslab").display(),
            beside.display()
        );
    }
    link(&built).with_context(|| {
        format!("cannot put {FILE} alone into {}, as HDF5 wants it\n  try: cargo xtask build", built.display())
    })?;
    Ok(built)
}

/// A link, so that a plugin that is built anew is the one that is used.
fn link(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let link = folder.join(FILE);
    if link.is_symlink() {
        fs::remove_file(&link)?;
    }
    match std::os::unix::fs::symlink(Path::new("..").join(FILE), &link) {
        // Another process was quicker.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_plugin_comes_first() {
        let prefix = tempfile::tempdir().unwrap();
        let (bin, lib) = (prefix.path().join("bin"), prefix.path().join("lib/hyperslab"));
        fs::create_dir_all(&bin).unwrap();
        assert!(find_near(&bin).unwrap_err().to_string().contains("cargo xtask install"));
        fs::write(bin.join(FILE), "").unwrap();
        assert_eq!(find_near(&bin).unwrap(), bin.join("plugin"));
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join(FILE), "").unwrap();
        assert_eq!(find_near(&bin).unwrap(), lib);
    }

    #[test]
    fn a_built_plugin_is_linked_into_a_folder_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE), "built").unwrap();
        for _ in 0..2 {
            let found = find_near(folder.path()).unwrap();
            assert_eq!(fs::read_to_string(found.join(FILE)).unwrap(), "built");
            assert_eq!(fs::read_dir(found).unwrap().count(), 1);
        }
    }
}
