//! `cargo xtask setup`: finds or installs what a build and the tests need. Private things go to `target/python`;
//! packages of the system are installed only as root, where apt is, and are announced. Quick when all is there.

mod apt;
mod build_tools;
mod cmake;
mod components;
mod hdf5_tools;
mod mpi;
mod parallel_hdf5;
mod private_python;
mod test_clients;

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::arguments::Arguments;
use crate::workspace::Workspace;

pub use mpi::Mpi;
pub use private_python::PrivatePython;

/// What the set-up is for, and what it may do.
#[derive(Clone, Copy)]
pub struct SetupOptions {
    /// Also what the tests need: rustfmt, clippy, h5dump.
    pub tests: bool,
    /// The Python clients that check files written by Hyperslab, and that benchmarks are held against.
    pub clients: bool,
    /// With `clients`: also what only long tests need.
    pub long: bool,
    /// Also an MPI library with a parallel libhdf5; with `tests`, MPICH beside it.
    pub mpi: bool,
    /// Install packages of the system where that is possible.
    pub apt: bool,
}

/// What was found: variables for the programs started next, and what is missing without being vital.
#[derive(Default)]
pub struct Environment {
    variables: Vec<(&'static str, OsString)>,
    removed: Vec<&'static str>,
    /// Optional things that are not there, each with how to get it.
    pub missing: Vec<String>,
    /// The MPI libraries, the usual one first.
    pub mpi: Vec<Mpi>,
}

impl Environment {
    /// Sets the variables for `command`.
    pub fn apply<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for name in &self.removed {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)))
    }

    /// A Python with h5py and zarr, if an earlier or this set-up found one.
    pub fn python(&self) -> Option<&Path> {
        self.variables.iter().find(|(name, _)| *name == test_clients::VARIABLE).map(|(_, path)| Path::new(path))
    }

    /// Hides the Python with the clients from the programs started next.
    pub fn without_python(&mut self) {
        self.variables.retain(|(name, _)| *name != test_clients::VARIABLE);
        self.removed.push(test_clients::VARIABLE);
    }

    fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.push((name, value.into()));
    }
}

/// The command `setup`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let arguments = Arguments::parse(words, &["--tests", "--mpi", "--no-apt"], false)?;
    let options = SetupOptions {
        tests: arguments.has("--tests"),
        clients: arguments.has("--tests"),
        long: false,
        mpi: arguments.has("--mpi"),
        apt: !arguments.has("--no-apt"),
    };
    let environment = prepare(workspace, options)?;
    for missing in &environment.missing {
        println!("  missing  {missing}");
    }
    println!("ready: cargo build, cargo test and cargo xtask find all of this by themselves");
    Ok(())
}

/// Finds or installs everything that `options` asks for. Optional things that cannot be had are listed in the result;
/// anything else that is missing is an error that says how to provide it.
pub fn prepare(workspace: &Workspace, options: SetupOptions) -> Result<Environment> {
    begin(workspace, options)?.finish(workspace)
}

/// A set-up that has all that builds need, but not yet what the tests need besides.
pub struct Begun {
    options: SetupOptions,
    environment: Environment,
    _one_at_a_time: File,
}

/// The first half of [`prepare`]: what builds without MPI need.
pub fn begin(workspace: &Workspace, options: SetupOptions) -> Result<Begun> {
    println!("set-up");
    let one_at_a_time = lock(workspace)?;
    // A libhdf5 of the machine would take the place of the bundled one; builds with MPI are told theirs.
    let mut environment = Environment { removed: vec![parallel_hdf5::VARIABLE], ..Environment::default() };
    build_tools::compiler(workspace, options)?;
    cmake::provide(workspace, options, &mut environment)?;
    build_tools::make(workspace, options, &mut environment)?;
    if options.tests {
        components::provide(workspace, &mut environment);
    }
    Ok(Begun { options, environment, _one_at_a_time: one_at_a_time })
}

impl Begun {
    /// What builds need.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The second half of [`prepare`]: mostly downloads, during which a build may run.
    pub fn finish(self, workspace: &Workspace) -> Result<Environment> {
        let Self { options, mut environment, _one_at_a_time } = self;
        if options.tests {
            test_clients::tools(workspace, options, &mut environment);
            hdf5_tools::provide(workspace, options, &mut environment);
        }
        match (options.clients, options.tests) {
            (true, _) => test_clients::python(workspace, options, &mut environment)?,
            (false, true) => test_clients::leave_out_python(&mut environment),
            (false, false) => test_clients::recall(workspace, &mut environment),
        }
        if options.clients && options.long {
            test_clients::older_python(workspace, options, &mut environment);
        }
        if options.mpi {
            let usual = mpi::provide(workspace, options, &mut environment)?;
            environment.mpi.extend(usual);
            if options.tests && options.long && !environment.mpi.is_empty() {
                let second = mpi::provide_mpich(workspace, options, &mut environment)?;
                environment.mpi.extend(second);
            }
        }
        write_environment_file(workspace, &environment)?;
        Ok(environment)
    }
}

/// Whether this Rust has `cargo SUBCOMMAND`.
pub fn has_subcommand(workspace: &Workspace, subcommand: &str) -> bool {
    components::available(workspace, subcommand)
}

/// One line of what the set-up found or does.
fn say(what: &str, text: impl Display) {
    println!("  {what:<8} {text}");
}

/// Writes down that something cannot be had here.
fn remember(marker: &Path) {
    if let Err(error) = fs::write(marker, "Remove this file to let cargo xtask try again.\n") {
        say("note", format!("cannot write {}: {error}", marker.display()));
    }
}

/// Two set-ups at once would install into each other's environment; the second waits for the first.
fn lock(workspace: &Workspace) -> Result<File> {
    let folder = workspace.state();
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join("lock");
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    if file.try_lock().is_err() {
        say("waiting", "for another cargo xtask that is doing its set-up");
        file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// Makes plain cargo commands find what lies in the private environment: `.cargo/config.toml` includes this file.
fn write_environment_file(workspace: &Workspace, environment: &Environment) -> Result<()> {
    let private = workspace.python_environment();
    let mut text = String::from("# Written by cargo xtask setup; included by .cargo/config.toml.\n[env]\n");
    for (name, value) in &environment.variables {
        // What the user's own environment says is the user's to keep.
        if Path::new(value).starts_with(&private) || *name == "CMAKE_GENERATOR" {
            text.push_str(&format!("{name} = {}\n", serde_json::to_string(&value.to_string_lossy())?));
        }
    }
    let path = environment_file(workspace);
    if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn environment_file(workspace: &Workspace) -> PathBuf {
    workspace.state().join("environment.toml")
}
