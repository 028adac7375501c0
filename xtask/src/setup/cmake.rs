//! A CMake that is new enough for the bundled libhdf5.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Environment, SetupOptions, private_python::PrivatePython, say};
use crate::shell;
use crate::workspace::Workspace;

/// The oldest version that configures the bundled libhdf5.
const NEEDED: (u32, u32) = (3, 26);

/// Finds a CMake by the variable `CMAKE` or on the PATH, else installs one privately, and makes `CMAKE` name it.
pub fn provide(workspace: &Workspace, options: SetupOptions, environment: &mut Environment) -> Result<()> {
    let private = workspace.python_environment();
    let chosen = std::env::var_os("CMAKE")
        .map(PathBuf::from)
        .filter(|path| !path.as_os_str().is_empty() && !path.starts_with(&private));
    let on_path = shell::find_program("cmake").filter(|path| !path.starts_with(&private));
    let mut why = "there is no CMake on the PATH".to_owned();
    for path in chosen.iter().chain(&on_path) {
        match version(path) {
            Ok(version) if version >= NEEDED => {
                say("found", format!("CMake {}.{} ({})", version.0, version.1, path.display()));
                environment.set("CMAKE", path);
                return Ok(());
            }
            Ok((major, minor)) => {
                why = format!("{} is {major}.{minor}, older than {}.{}", path.display(), NEEDED.0, NEEDED.1);
            }
            Err(_) => why = format!("{} does not run", path.display()),
        }
        say("note", format!("CMake: {why}"));
    }
    let python = PrivatePython::open(workspace, options).context(
        "building libhdf5 needs CMake 3.26 or newer; set the variable CMAKE to one, or let one be installed",
    )?;
    python.install("build", &why)?;
    let path = python.folder().join("bin/cmake");
    let version = version(&path)?;
    if version < NEEDED {
        bail!(
            "pip gave CMake {}.{}, which is too old\n  try: set the variable CMAKE to a newer one",
            version.0,
            version.1
        );
    }
    say("found", format!("CMake {}.{} ({})", version.0, version.1, workspace.display(&path)));
    environment.set("CMAKE", path);
    Ok(())
}

fn version(program: &Path) -> Result<(u32, u32)> {
    let text = shell::output(Command::new(program).arg("--version"), "another CMake, named by the variable CMAKE")?;
    parse_version(&text).with_context(|| format!("{} --version printed {text:?}", program.display()))
}

fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.lines().next()?.strip_prefix("cmake version ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        assert_eq!(parse_version("cmake version 3.25.1\n\nCMake suite"), Some((3, 25)));
        assert_eq!(parse_version("cmake version 4.4.4"), Some((4, 4)));
        assert_eq!(parse_version("something else"), None);
        for (version, enough) in [((4, 0), true), ((3, 26), true), ((3, 25), false), ((2, 99), false)] {
            assert_eq!(version >= NEEDED, enough, "{version:?}");
        }
    }
}
