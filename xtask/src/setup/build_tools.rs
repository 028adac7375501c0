//! The C compiler and the program that drives it.

use anyhow::{Result, bail};

use super::{Environment, SetupOptions, apt, private_python::PrivatePython, say};
use crate::shell;
use crate::workspace::Workspace;

/// Checks for a C compiler: libhdf5 and the compression libraries are C.
pub fn compiler(workspace: &Workspace, options: SetupOptions) -> Result<()> {
    if let Some(path) = find_compiler() {
        say("found", format!("C compiler {path}"));
        return Ok(());
    }
    if options.apt && apt::usable() {
        return apt::install(workspace, &["build-essential"], "there is no C compiler");
    }
    bail!(
        "there is no C compiler: neither the variable CC nor a program cc, gcc or clang\n  try: {}\n       \
         without root: load a compiler module, or set CC to a compiler of yours, such as one from conda-forge",
        apt::by_hand(&["build-essential"])
    )
}

fn find_compiler() -> Option<String> {
    // CC may hold arguments after the program, as in `ccache gcc`.
    let chosen = std::env::var("CC").ok().filter(|value| !value.trim().is_empty());
    let names = match &chosen {
        Some(value) => vec![value.split_whitespace().next().unwrap_or_default()],
        None => vec!["cc", "gcc", "clang"],
    };
    names.into_iter().find_map(shell::find_program).map(|path| path.display().to_string())
}

/// Checks for make or ninja, one of which CMake drives; a private ninja does when there is neither.
pub fn make(workspace: &Workspace, options: SetupOptions, environment: &mut Environment) -> Result<()> {
    if shell::find_program("make").is_some() {
        return Ok(());
    }
    if shell::find_program("ninja").is_none() {
        let python = PrivatePython::open(workspace, options)?;
        python.install("ninja", "there is neither make nor ninja")?;
        // CMake looks for programs in the folders of this variable.
        environment.set("CMAKE_PROGRAM_PATH", python.folder().join("bin"));
    }
    let generator = std::env::var_os("CMAKE_GENERATOR").filter(|value| !value.is_empty());
    environment.set("CMAKE_GENERATOR", generator.unwrap_or_else(|| "Ninja".into()));
    say("found", "ninja, in place of make");
    Ok(())
}
