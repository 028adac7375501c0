//! `cargo xtask install`: the program and the HDF5 connector in a place of the user's.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::arguments::{Arguments, take_value};
use crate::build::{self, PLUGIN};
use crate::setup::{self, SetupOptions};
use crate::shell;
use crate::workspace::Workspace;

/// The command `install`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    let (prefix, words) = take_value(words, "--prefix", "a folder, such as --prefix $HOME/.local")?;
    let arguments = Arguments::parse(&words, &["--mpi", "--no-apt"], false)?;
    let prefix = prefix_of(prefix)?;
    let options = SetupOptions {
        tests: false,
        clients: false,
        long: false,
        mpi: arguments.has("--mpi"),
        apt: !arguments.has("--no-apt"),
    };
    let environment = setup::prepare(workspace, options)?;
    let built = build::release(workspace, &environment, options.mpi)?;
    let (bin, lib) = (prefix.join("bin"), prefix.join("lib/hyperslab"));
    println!("\ninstall");
    put(&built.plugin, &lib, PLUGIN)?;
    put(&built.program, &bin, "hyperslab")?;
    describe(&bin.join("hyperslab"), &prefix.join("share"))?;
    println!("\nwhat next");
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&folders).any(|folder| folder == bin) {
        println!("  export PATH=\"{}:$PATH\"    in your shell's start-up file", bin.display());
    }
    println!("  hyperslab doctor                  which of your programs can use it");
    println!("  hyperslab run -- python SCRIPT    a program with its HDF5 calls accelerated");
    println!(
        "  rm -r {0}/bin/hyperslab {0}/lib/hyperslab {0}/share/man/man1/hyperslab*    to remove it",
        prefix.display()
    );
    Ok(())
}

/// Man pages, and completions where shells look for them, as the program itself writes them.
fn describe(program: &Path, share: &Path) -> Result<()> {
    let said = |words: &[&str]| shell::output(Command::new(program).args(words), "cargo build -p hyperslab-cli");
    let pages = share.join("man/man1");
    said(&["manual", &pages.display().to_string()])?;
    println!("  {}/hyperslab*.1", pages.display());
    for (shell, folder, name) in [
        ("bash", "bash-completion/completions", "hyperslab"),
        ("zsh", "zsh/site-functions", "_hyperslab"),
        ("fish", "fish/vendor_completions.d", "hyperslab.fish"),
    ] {
        let folder = share.join(folder);
        let path = folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&path, said(&["completions", shell])?).with_context(|| format!("cannot write {}", path.display()))?;
        println!("  {}", path.display());
    }
    Ok(())
}

/// The folder above `bin` and `lib`, whole.
fn prefix_of(said: Option<String>) -> Result<PathBuf> {
    let prefix = match said {
        Some(text) if text.starts_with('~') => bail!("the shell left {text} as it is\n  try: $HOME instead of ~"),
        Some(text) => PathBuf::from(text),
        None => match std::env::var_os("HOME").filter(|home| !home.is_empty()) {
            Some(home) => Path::new(&home).join(".local"),
            None => bail!("HOME is not set\n  try: --prefix DIR"),
        },
    };
    // Whole, so that it can be copied from the screen.
    let here = std::env::current_dir().context("the current folder is gone")?;
    Ok(here.join(prefix))
}

/// Copies a file beside its place and then renames it: programs that run keep what they have, and a failure changes
/// nothing. The passing name begins with a dot, so that libhdf5 does not take it for a plugin.
fn put(from: &Path, folder: &Path, name: &str) -> Result<()> {
    let to = folder.join(name);
    let cannot = || format!("cannot install {}", to.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    let passing = folder.join(format!(".{name}.{}", std::process::id()));
    let copied = copy(from, &passing).and_then(|()| fs::rename(&passing, &to));
    if copied.is_err() {
        let _ = fs::remove_file(&passing);
    }
    copied.with_context(cannot)?;
    println!("  {}", to.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::copy(from, to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    File::open(to)?.sync_all()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_are_replaced_whole_or_not_at_all() {
        let root = std::env::temp_dir().join(format!("hyperslab-xtask-install-{}", std::process::id()));
        let (source, folder) = (root.join("new"), root.join("lib"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("x"), "old").unwrap();
        assert!(put(&source, &folder, "x").is_err());
        assert_eq!(fs::read_to_string(folder.join("x")).unwrap(), "old");
        fs::write(&source, "new").unwrap();
        put(&source, &folder, "x").unwrap();
        let left = fs::read_dir(&folder).unwrap().count();
        let (text, mode) = (fs::read_to_string(folder.join("x")).unwrap(), folder.join("x").metadata().unwrap());
        fs::remove_dir_all(&root).unwrap();
        assert_eq!((text.as_str(), left, mode.permissions().mode() & 0o777), ("new", 1, 0o755));
    }

    #[test]
    fn a_tilde_that_the_shell_left_is_refused() {
        assert!(prefix_of(Some("~/here".into())).unwrap_err().to_string().contains("$HOME"));
        assert!(prefix_of(Some("here".into())).unwrap().is_absolute());
    }
}
