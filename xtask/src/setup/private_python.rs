//! A Python environment of the project's own, in `target/python`: no package of the user or the system is touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{SetupOptions, apt, say};
use crate::shell;
use crate::workspace::Workspace;

/// Names tried, in this order; the first that is new enough and can make environments is taken. The last is where
/// apt puts one, should the PATH lead to another.
const INTERPRETERS: [&str; 7] =
    ["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python", "/usr/bin/python3"];
const OLDEST: (u32, u32) = (3, 9);
/// The version on which the pinned requirements are known good together.
const PINNED_ON: (u32, u32) = (3, 11);

const OFFLINE: &str = "check the network, or where pip finds its packages: pip config list\n\
    without network: on a machine that has one, run\n  \
    python3 -m pip download --dest WHEELS -r xtask/requirements-build.txt -r xtask/requirements-test.txt\n\
    copy the folder WHEELS here, and set PIP_NO_INDEX=1 and PIP_FIND_LINKS=WHEELS\n\
    or do without pip: CMAKE=path/of/cmake, HYPERSLAB_PYTHON=path/of/python (with numpy, h5py, hdf5plugin and zarr)";

/// The private environment, present and working.
pub struct PrivatePython<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
    version: (u32, u32),
}

impl<'a> PrivatePython<'a> {
    /// The environment, made now if it is missing, does not run, or was made for another folder.
    pub fn open(workspace: &'a Workspace, options: SetupOptions) -> Result<Self> {
        Self::open_in(workspace, options, workspace.python_environment())
    }

    /// The same in another folder, for packages that exclude those of the first.
    pub fn open_in(workspace: &'a Workspace, options: SetupOptions, folder: PathBuf) -> Result<Self> {
        if let Some(ready) = Self::existing_in(workspace, folder.clone()) {
            return Ok(ready);
        }
        if folder.exists() {
            say("remove", format!("{}: it does not work any more", workspace.display(&folder)));
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        create(workspace, options, &folder)?;
        fs::write(marker(&folder), place(&folder))?;
        Self::existing_in(workspace, folder.clone()).with_context(|| {
            format!("{} was made but does not run\n  try: another python3 on the PATH", folder.display())
        })
    }

    /// The environment if it is there and works. Its programs hold its own path, so a moved one does not count.
    pub fn existing(workspace: &'a Workspace) -> Option<Self> {
        Self::existing_in(workspace, workspace.python_environment())
    }

    fn existing_in(workspace: &'a Workspace, folder: PathBuf) -> Option<Self> {
        if fs::read_to_string(marker(&folder)).ok()? != place(&folder) {
            return None;
        }
        let version = version(&interpreter(&folder))?;
        Some(Self { workspace, folder, version })
    }

    /// Where it lies.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its Python.
    pub fn interpreter(&self) -> PathBuf {
        interpreter(&self.folder)
    }

    /// Whether the requirements `set` are installed as the file asks for them now.
    pub fn has(&self, set: &str) -> bool {
        let wanted = self.requirements(set).map(|(_, text)| self.stamp_text(&text));
        wanted.is_ok_and(|wanted| fs::read_to_string(self.stamp(set)).is_ok_and(|stamp| stamp == wanted))
    }

    /// Installs what `xtask/requirements-SET.txt` lists, unless it is there already.
    pub fn install(&self, set: &str, why: &str) -> Result<()> {
        if self.has(set) {
            return Ok(());
        }
        let (file, text) = self.requirements(set)?;
        let pinned = requirements(&text);
        let place = self.workspace.display(&self.folder);
        say("install", format!("{} with pip into {place}: {why}", pinned.join(" ")));
        let log = self.workspace.state().join(format!("log/pip-{set}.txt"));
        let mut exact = self.pip();
        exact.arg("--requirement").arg(&file);
        if self.version == PINNED_ON {
            shell::fetch_quietly(&mut exact, &log, OFFLINE)?;
        } else if shell::run_quietly(&mut exact, &log, OFFLINE).is_err() {
            let free: Vec<&str> = pinned.iter().map(|line| name(line)).collect();
            let (major, minor) = self.version;
            say("note", format!("not to be had for Python {major}.{minor}; trying any version of {}", free.join(" ")));
            shell::fetch_quietly(self.pip().args(free), &log, OFFLINE)?;
        }
        fs::write(self.stamp(set), self.stamp_text(&text))
            .with_context(|| format!("cannot write {}", self.stamp(set).display()))
    }

    fn pip(&self) -> Command {
        let mut command = Command::new(self.interpreter());
        command.args(["-m", "pip", "install", "--disable-pip-version-check", "--prefer-binary"]);
        command
    }

    fn requirements(&self, set: &str) -> Result<(PathBuf, String)> {
        let file = self.workspace.root().join(format!("xtask/requirements-{set}.txt"));
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok((file, text))
    }

    fn stamp(&self, set: &str) -> PathBuf {
        self.folder.join(format!("hyperslab-{set}.stamp"))
    }

    fn stamp_text(&self, requirements: &str) -> String {
        format!("python {}.{}\n{requirements}", self.version.0, self.version.1)
    }
}

fn marker(folder: &Path) -> PathBuf {
    folder.join("hyperslab-environment.stamp")
}

fn place(folder: &Path) -> String {
    format!("made for {}\n", folder.display())
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}

/// The lines that ask for something.
fn requirements(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

/// `numpy` of `numpy==2.4.6`.
fn name(requirement: &str) -> &str {
    let end = requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
    &requirement[..end.unwrap_or(requirement.len())]
}

fn version(python: &Path) -> Option<(u32, u32)> {
    let mut command = Command::new(python);
    command.args(["-c", "import sys; print(sys.version_info[0], sys.version_info[1])"]);
    let text = shell::output(&mut command, "").ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn has_modules(python: &Path, modules: &str) -> bool {
    shell::output(Command::new(python).args(["-c", &format!("import {modules}")]), "").is_ok()
}

fn pythons() -> impl Iterator<Item = PathBuf> {
    let found = INTERPRETERS.iter().filter_map(|name| shell::find_program(name));
    found.filter(|path| version(path).is_some_and(|version| version >= OLDEST))
}

/// Makes an environment with the first Python that can; where none can, after installing one that does.
fn create(workspace: &Workspace, options: SetupOptions, folder: &Path) -> Result<()> {
    let able = || pythons().find_map(|python| Some((maker(&python)?, python)));
    let (mut command, python) = match able() {
        Some(found) => found,
        None if options.apt && apt::usable() => {
            apt::install(workspace, &["python3", "python3-venv"], "no Python here can make environments")?;
            able().with_context(no_python)?
        }
        None => bail!("{}", no_python()),
    };
    say("create", format!("{}: a private environment of {}", workspace.display(folder), python.display()));
    let log = workspace.state().join("log/python-environment.txt");
    shell::run_quietly(command.arg(folder), &log, "another python3, first on the PATH")
}

/// The command that makes an environment in the folder given as its last word: venv, else virtualenv, else uv.
fn maker(python: &Path) -> Option<Command> {
    let mut command = Command::new(python);
    if has_modules(python, "venv, ensurepip") {
        command.args(["-m", "venv"]);
    } else if has_modules(python, "virtualenv") {
        command.args(["-m", "virtualenv"]);
    } else {
        command = Command::new(shell::find_program("uv")?);
        command.args(["venv", "--seed", "--python"]).arg(python);
    }
    Some(command)
}

fn no_python() -> String {
    let found = match pythons().next() {
        Some(python) => {
            format!("{} has neither venv with ensurepip nor virtualenv, and there is no uv", python.display())
        }
        None => "there is no Python 3.9 or newer on the PATH".to_owned(),
    };
    format!(
        "a private Python environment cannot be made: {found}\n  \
         try: {}\n       without root: put uv, or a Python from conda-forge or pyenv, first on the PATH\n       \
         or do without: CMAKE=path/of/cmake, HYPERSLAB_PYTHON=path/of/python (with numpy, h5py, hdf5plugin and zarr)",
        apt::by_hand(&["python3", "python3-venv"])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read() {
        assert_eq!(requirements("# why\nnumpy==2.4.6\n\n h5py \n"), ["numpy==2.4.6", "h5py"]);
        assert_eq!(name("numpy==2.4.6"), "numpy");
        assert_eq!(name("google-crc32c>=1"), "google-crc32c");
        assert_eq!(name("ninja"), "ninja");
    }
}
