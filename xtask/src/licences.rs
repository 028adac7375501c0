//! The licence texts of everything that is built into the program and the connector.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::portable::PACKAGES;
use crate::shell;
use crate::workspace::Workspace;

/// All of it.
pub struct Collected {
    /// Names, versions and licences, then each text once.
    pub text: String,
    /// Packages.
    pub packages: usize,
    /// Those that name a licence and bring no text of it.
    pub without_text: usize,
}

impl Collected {
    /// Writes the texts into a folder, with those of Hyperslab itself; gives back a line that says so.
    pub fn write_into(&self, workspace: &Workspace, folder: &Path) -> Result<String> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(folder.join("third-party.txt"), &self.text)?;
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            fs::copy(workspace.root().join(name), folder.join(name)).with_context(|| format!("cannot copy {name}"))?;
        }
        Ok(format!("licences of {} packages, {} without a text of their own", self.packages, self.without_text))
    }
}

/// Reads the texts beside the sources of each package that `cargo tree` says is built in, those of C libraries in them too.
pub fn collect(workspace: &Workspace) -> Result<Collected> {
    let mut command = workspace.cargo(&["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}|{l}"]);
    command.args(PACKAGES);
    let tree = shell::output(&mut command, "cargo tree")?;
    let built_in: BTreeSet<&str> = tree.lines().filter_map(|line| line.split('|').next()).map(short).collect();
    let metadata = workspace.metadata_of_all()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut list, mut count, mut without_text) = (String::new(), 0, 0);
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{} v{}", text("name"), text("version"));
        // What has a source is not of this workspace.
        if package["source"].is_null() || !built_in.contains(name.as_str()) {
            continue;
        }
        count += 1;
        let _ = writeln!(list, "{name}: {}", text("license"));
        let folder = Path::new(text("manifest_path")).parent().context("a manifest lies in a folder")?;
        let mut found = Vec::new();
        find(folder, 0, &mut found);
        without_text += usize::from(found.is_empty());
        for file in found {
            texts.entry(file).or_default().push(name.clone());
        }
    }
    ensure!(count > 0, "cargo tree and cargo metadata agree on no package: their forms have changed");
    let mut whole = format!("What is built into Hyperslab, with its licences.\n\n{list}");
    for (text, names) in texts {
        let _ = write!(whole, "\n{:=<80}\n{}\n\n{}\n", "", names.join(", "), text.trim_end());
    }
    Ok(Collected { text: whole, packages: count, without_text })
}

/// `name v1.2.3` of `name v1.2.3 (proc-macro) (*)`.
fn short(package: &str) -> &str {
    package.split(" (").next().unwrap_or(package).trim()
}

/// Licence files of a package, and of the libraries in folders below it.
fn find(folder: &Path, depth: usize, found: &mut Vec<String>) {
    const DEEPEST: usize = 3;
    const LONGEST: u64 = 256 << 10;
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase();
        if path.is_dir() {
            if depth < DEEPEST {
                find(&path, depth + 1, found);
            }
        } else if ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"].iter().any(|start| name.starts_with(start))
            && !name.ends_with(".RS")
            && path.metadata().is_ok_and(|metadata| metadata.len() <= LONGEST)
            && let Ok(text) = fs::read_to_string(&path)
            && !found.contains(&text)
        {
            found.push(text);
        }
    }
}
