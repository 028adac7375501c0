//! Pages of the manual, and completions where shells look for them, as the program itself writes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// Shells with the folder and the name of their completions.
const SHELLS: [(&str, &str, &str); 3] = [
    ("bash", "bash-completion/completions", "hyperslab"),
    ("zsh", "zsh/site-functions", "_hyperslab"),
    ("fish", "fish/vendor_completions.d", "hyperslab.fish"),
];

/// Writes them below `share`; gives back what to tell the user of.
pub fn write(program: &Path, share: &Path) -> Result<Vec<PathBuf>> {
    let said = |words: &[&str]| shell::output(Command::new(program).args(words), "cargo build -p hyperslab-cli");
    let pages = share.join("man/man1");
    said(&["manual", &pages.display().to_string()])?;
    let mut written = vec![pages.join("hyperslab*.1")];
    for (shell, folder, name) in SHELLS {
        let folder = share.join(folder);
        let path = folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&path, said(&["completions", shell])?).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}
