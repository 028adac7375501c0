//! Program, connector and reader of arrays for every Linux of an old enough glibc.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::build::PLUGIN;
use crate::setup::{Environment, PrivatePython, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// The oldest glibc that they run on: that of RHEL 8, as (major, minor).
pub const GLIBC: (u32, u32) = (2, 28);
/// What they are built from.
pub const PACKAGES: [&str; 3] = ["--package=hyperslab-cli", "--package=hyperslab-vol", "--package=hyperslab-python"];
/// The reader of arrays that the Python package loads.
pub const READER: &str = "libhyperslab_reader.so";

/// Where the three are.
pub struct Portable {
    folder: PathBuf,
}

impl Portable {
    /// Builds them with zig as compiler of C and linker, which knows every glibc; zig comes with `tools`.
    pub fn build(workspace: &Workspace, environment: &Environment, tools: &PrivatePython<'_>) -> Result<Self> {
        println!("\nbuild");
        let target = workspace.root().join("target/wheel/cargo");
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let mut command = workspace.cargo(&["zigbuild", "--release"]);
        command.args(PACKAGES);
        environment.apply(&mut command);
        command
            .args(["--target", &format!("{triple}.{}.{}", GLIBC.0, GLIBC.1)])
            .env("CARGO_TARGET_DIR", &target)
            // Debug information would be most of the package.
            .env("CARGO_PROFILE_RELEASE_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
            .env("PATH", path_with(&tools.folder().join("bin"))?);
        shell::run_visibly(&mut command, "read the first error above; docs/python.md says what the build needs")?;
        Ok(Self { folder: target.join(triple).join("release") })
    }

    /// What was built before, in a folder of cargo's: for this machine only.
    pub fn existing(folder: PathBuf) -> Result<Self> {
        for name in ["hyperslab", PLUGIN, READER] {
            let path = folder.join(name);
            fs::metadata(&path).with_context(|| format!("there is no {}", path.display()))?;
        }
        Ok(Self { folder })
    }

    /// The folder of the private Python with the tools for [`Self::build`] and for wheels.
    pub fn tools<'a>(workspace: &'a Workspace, options: SetupOptions) -> Result<PrivatePython<'a>> {
        let python = PrivatePython::open_in(workspace, options, workspace.root().join("target/wheel/python"))?;
        python.install("wheel", "programs are linked for older systems, and checked, with them")?;
        Ok(python)
    }

    /// The program, as it was built.
    pub fn program(&self) -> PathBuf {
        self.folder.join("hyperslab")
    }

    /// Copies them to `bin` and `lib` of a folder, where they find each other.
    pub fn put_into(&self, prefix: &Path) -> Result<()> {
        put(&self.program(), &prefix.join("bin/hyperslab"))?;
        put(&self.folder.join(READER), &prefix.join("lib").join(READER))?;
        put(&self.folder.join(PLUGIN), &prefix.join("lib/hyperslab").join(PLUGIN))
    }
}

fn path_with(first: &Path) -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [first.to_owned()].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("a folder on the PATH has a colon in its name")
}

fn put(from: &Path, to: &Path) -> Result<()> {
    let cannot = || format!("cannot copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to.parent().unwrap_or(to)).with_context(cannot)?;
    fs::copy(from, to).with_context(cannot)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).with_context(cannot)
}

/// Copies a folder without what Python and its tests leave there, and without binaries of an earlier package.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if name == "__pycache__" || name == "_data" || name == "build" || name.to_string_lossy().ends_with(".egg-info")
        {
            continue;
        }
        if path.is_dir() {
            copy_tree(&path, &to.join(name))?;
        } else {
            fs::copy(&path, to.join(name)).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

/// Removes a folder that may be there.
pub fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
