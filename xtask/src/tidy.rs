//! `cargo xtask tidy`: what the compiler does not check. Dependency arrows between crates, licences, manifests, sources.

mod arrows;
mod dependencies;
mod format_names;
mod manifests;
mod sources;
mod type_names;
mod walks;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::arguments::Arguments;
use crate::workspace::Workspace;

/// Something that is not as it should be.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// A warning does not fail the check.
    pub warning: bool,
    /// A file, with its line where there is one.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl Finding {
    fn error(place: impl Into<String>, what: impl Into<String>, remedy: &'static str) -> Self {
        Self { warning: false, place: place.into(), what: what.into(), remedy }
    }

    fn warning(place: impl Into<String>, what: impl Into<String>, remedy: &'static str) -> Self {
        Self { warning: true, ..Self::error(place, what, remedy) }
    }
}

/// One crate of the workspace, as cargo describes it.
pub struct Package {
    name: String,
    manifest: PathBuf,
    /// Dependencies on other crates, with whether they are for development only.
    dependencies: Vec<(String, bool)>,
    /// The root files of its libraries and programs.
    roots: Vec<PathBuf>,
}

/// The command `tidy`.
pub fn run(workspace: &Workspace, words: &[String]) -> Result<()> {
    Arguments::parse(words, &[], false)?;
    let warnings = check(workspace)?;
    println!("tidy: nothing wrong, {warnings} warnings");
    Ok(())
}

/// Prints what is found; fails unless those are only warnings, and returns how many.
pub fn check(workspace: &Workspace) -> Result<usize> {
    let packages = packages(&workspace.metadata()?)?;
    let mut findings = arrows::check(&packages, |path| workspace.display(path));
    findings.extend(manifests::check(&packages, |path| workspace.display(path))?);
    findings.extend(dependencies::check(workspace)?);
    findings.extend(sources::check(workspace)?);
    for finding in &findings {
        let label = if finding.warning { "warning" } else { "error" };
        println!("{label}: {}: {}\n    try: {}", finding.place, finding.what, finding.remedy);
    }
    let warnings = findings.iter().filter(|finding| finding.warning).count();
    match findings.len() - warnings {
        0 => Ok(warnings),
        errors => bail!("tidy: {errors} wrong, {warnings} warnings; each is listed above with what to do"),
    }
}

fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    packages.iter().map(package).collect()
}

fn package(value: &Value) -> Result<Package> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo metadata: a name is missing");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut dependencies = Vec::new();
    for dependency in list(&value["dependencies"]) {
        dependencies.push((text(&dependency["name"])?, dependency["kind"] == "dev"));
    }
    let mut roots = Vec::new();
    for target in list(&value["targets"]) {
        let product = |kind: &Value| matches!(kind.as_str(), Some("lib" | "rlib" | "cdylib" | "bin" | "proc-macro"));
        if list(&target["kind"]).iter().any(product) {
            roots.push(PathBuf::from(text(&target["src_path"])?));
        }
    }
    let manifest = Path::new(&text(&value["manifest_path"])?).to_owned();
    Ok(Package { name: text(&value["name"])?, manifest, dependencies, roots })
}
