//! The test programs of the workspace: built together, so that shared crates are built once, whichever of them run then.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::setup::Environment;
use crate::shell;
use crate::workspace::Workspace;

/// Which targets are built.
#[derive(Clone, Copy, PartialEq)]
pub enum Targets {
    /// Libraries and programs with the tests within them, and the programs of `tests` folders.
    All,
    /// Libraries and programs with the tests within them.
    Units,
}

impl Targets {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::All => &["test", "--workspace", "--no-run"],
            Self::Units => &["test", "--workspace", "--no-run", "--lib", "--bins"],
        }
    }
}

/// A built test program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The crate that it belongs to.
    pub package: String,
    /// Its name within the crate.
    pub name: String,
    /// Whether it holds the tests within a library or program, not those of the folder `tests`.
    pub unit: bool,
    /// The file.
    pub path: PathBuf,
    /// The crate's folder, in which cargo runs it.
    pub folder: PathBuf,
}

impl Program {
    /// `hyperslab-layers log`, `hyperslab-core (unit tests)`.
    pub fn title(&self) -> String {
        if !self.unit {
            return format!("{} {}", self.package, self.name);
        }
        match self.name.replace('_', "-") == self.package {
            true => format!("{} (unit tests)", self.package),
            false => format!("{} {} (unit tests)", self.package, self.name),
        }
    }
}

/// Builds the test programs, with cargo's own progress on the screen.
pub fn build(workspace: &Workspace, environment: &Environment, targets: Targets) -> Result<Vec<Program>> {
    let mut command = workspace.cargo(targets.words());
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    println!("$ {}", shell::display(environment.apply(&mut command)));
    let mut child = command.spawn().context("cannot start cargo")?;
    let mut programs = Vec::new();
    for line in BufReader::new(child.stdout.take().context("cargo has no output")?).lines() {
        programs.extend(program(&line?));
    }
    if !child.wait()?.success() {
        bail!("the tests do not build\n  try: mend what the compiler says above");
    }
    Ok(programs)
}

/// The same in the background, while a set-up waits for downloads. Its words go to a log; what it fails at, [`build`] meets again.
/// Dropped, it is ended.
pub struct Meanwhile(Child);

impl Meanwhile {
    /// Begins to build. The build takes nothing from what the rest of the set-up finds.
    pub fn begin(workspace: &Workspace, environment: &Environment, targets: Targets) -> Result<Self> {
        let log = workspace.state().join("log/build.txt");
        fs::create_dir_all(workspace.state().join("log"))?;
        let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = workspace.cargo(targets.words());
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        Ok(Self(environment.apply(&mut command).spawn().context("cannot start cargo")?))
    }

    /// Returns when it is done, well or not.
    pub fn wait(mut self) -> Result<()> {
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Meanwhile {
    fn drop(&mut self) {
        // One that has ended takes no harm.
        if self.0.kill().is_ok() {
            let _ = self.0.wait();
        }
    }
}

/// The test program that a line of cargo tells of.
fn program(line: &str) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = folder.file_name()?.to_str()?.to_owned();
    let name = message["target"]["name"].as_str()?.to_owned();
    let unit = message["target"]["kind"].as_array()?.iter().all(|kind| kind != "test");
    Some(Program { package, name, unit, path, folder })
}

/// The command that runs `program` where cargo would run it.
pub fn command(environment: &Environment, program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    Workspace::forget_package(&mut command);
    // Some tests build a library that is preloaded.
    command.current_dir(&program.folder).env("CARGO", Workspace::cargo_program());
    environment.apply(&mut command);
    command
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LINE: &str = r#"{"reason":"compiler-artifact","package_id":"path+file:///x/crates/hyperslab-layers#0.1.0","manifest_path":"/x/crates/hyperslab-layers/Cargo.toml","target":{"kind":["KIND"],"name":"NAME"},"profile":{"test":TEST},"executable":"/x/target/debug/deps/log-1"}"#;

    fn line(kind: &str, name: &str, test: &str) -> Option<Program> {
        program(&LINE.replace("KIND", kind).replace("NAME", name).replace("TEST", test))
    }

    #[test]
    fn programs_are_told_from_other_artifacts() {
        let log = line("test", "log", "true").unwrap();
        assert_eq!((log.title().as_str(), log.unit), ("hyperslab-layers log", false));
        assert_eq!(log.folder, Path::new("/x/crates/hyperslab-layers"));
        assert_eq!(line("lib", "hyperslab_layers", "true").unwrap().title(), "hyperslab-layers (unit tests)");
        assert_eq!(line("bin", "other", "true").unwrap().title(), "hyperslab-layers other (unit tests)");
        assert_eq!(line("bin", "other", "false"), None);
        assert_eq!(program("   Compiling hyperslab"), None);
    }
}
