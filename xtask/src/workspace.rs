//! Where the workspace is, and what cargo knows of it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

/// The workspace that this program belongs to.
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The folder above this package, as cargo said it when it started this program.
    pub fn find() -> Result<Self> {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&package).parent().context("the package xtask lies in no folder")?;
        Ok(Self { root: root.to_owned() })
    }

    /// The root folder of the workspace.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The private Python environment.
    pub fn python_environment(&self) -> PathBuf {
        self.root.join("target/python")
    }

    /// Logs, stamps and the environment file of the set-up.
    pub fn state(&self) -> PathBuf {
        self.root.join("target/xtask")
    }

    /// `path` as a person in the root folder would write it.
    pub fn display(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    /// A cargo command in the root folder.
    pub fn cargo(&self, words: &[&str]) -> Command {
        let mut command = Command::new(Self::cargo_program());
        command.args(words).current_dir(&self.root);
        Self::forget_package(&mut command);
        command
    }

    /// Cargo describes *this* package to the programs it runs. Handed on, that would make build scripts that watch these variables
    /// run again each time someone changes between `cargo xtask test` and `cargo test`.
    pub fn forget_package(command: &mut Command) {
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|p| name.starts_with(p)) {
                command.env_remove(name);
            }
        }
    }

    /// The program cargo.
    pub fn cargo_program() -> OsString {
        std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
    }

    /// What `cargo metadata` says of the workspace's own packages. Needs no network and no build.
    pub fn metadata(&self) -> Result<Value> {
        self.described(&["metadata", "--no-deps", "--format-version=1"])
    }

    /// The same of all packages that may be built in, where their sources are among it.
    pub fn metadata_of_all(&self) -> Result<Value> {
        self.described(&["metadata", "--format-version=1"])
    }

    fn described(&self, words: &[&str]) -> Result<Value> {
        let mut command = self.cargo(words);
        let text = shell::output(&mut command, "mend the manifest that cargo names above")?;
        serde_json::from_str(&text).context("cargo metadata did not print JSON")
    }
}
