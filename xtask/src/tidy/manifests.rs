//! What every crate must have: the workspace's licence and lints, and a description at its root.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Finding, Package};

/// Findings for each crate whose manifest or root file lacks something.
pub fn check(packages: &[Package], display: impl Fn(&Path) -> String) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in packages {
        let manifest = read(&package.manifest)?;
        let place = display(&package.manifest);
        if !has(&manifest, "package", "license.workspace", "true") {
            let what = "the licence is not that of the workspace";
            findings.push(Finding::error(&place, what, "put `license.workspace = true` below [package]"));
        }
        if !has(&manifest, "lints", "workspace", "true") {
            let what = "the lints are not those of the workspace";
            findings.push(Finding::error(&place, what, "add a section [lints] with `workspace = true`"));
        }
        for root in &package.roots {
            if !documented(&read(root)?) {
                let what = "the crate does not say what it is";
                findings.push(Finding::error(display(root), what, "begin the file with a `//!` comment"));
            }
        }
    }
    Ok(findings)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Whether the manifest has `key = value` in `[section]`.
fn has(manifest: &str, section: &str, key: &str, value: &str) -> bool {
    let mut inside = String::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            inside = header.trim_end_matches(']').to_owned();
        } else if inside == section
            && line.split_once('=').is_some_and(|(left, right)| left.trim() == key && right.trim() == value)
        {
            return true;
        }
    }
    false
}

fn documented(source: &str) -> bool {
    source.lines().any(|line| line.starts_with("//! ") || line.starts_with("#![doc = include_str!"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_their_section_only() {
        let manifest =
            "[package]\nlicense.workspace = true\n[dependencies]\nserde.workspace = true\n[lints]\nworkspace=true\n";
        assert!(has(manifest, "package", "license.workspace", "true"));
        assert!(has(manifest, "lints", "workspace", "true"));
        assert!(!has(manifest, "lints", "license.workspace", "true"));
        assert!(!has("[lints]\nworkspace = false\n", "lints", "workspace", "true"));
    }

    #[test]
    fn descriptions_are_found() {
        assert!(documented("//! What it is.\nfn main() {}"));
        assert!(!documented("/// An item.\nfn main() {}"));
    }
}
