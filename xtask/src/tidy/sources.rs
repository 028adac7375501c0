//! What must not be in a file: stubs, paths of somebody's machine, a second concept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Finding, format_names, type_names, walks};
use crate::shell;
use crate::workspace::Workspace;

/// Longer source files are probably about two things.
const LONG: usize = 600;
/// Written in two halves, so that this file does not find itself.
const STUBS: [&str; 2] = [concat!("to", "do!"), concat!("unimple", "mented!")];
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/tmp/", "venv")];

/// Findings in all files that git knows or would add; without git, in all files outside `target`.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    // Files that are no text hold nothing that this looks for; a listed file may be deleted but not yet committed.
    let read = |path: PathBuf| Some((workspace.display(&path), fs::read_to_string(&path).ok()?));
    let files: Vec<(String, String)> = files(workspace)?.into_iter().filter_map(read).collect();
    let names = format_names::names(files.iter().map(|(place, text)| (place.as_str(), text.as_str())));
    let mut findings = type_names::check(files.iter().map(|(place, text)| (place.as_str(), text.as_str())));
    let sources = files.iter().filter(|(place, _)| place.ends_with(".rs") && place.contains("/src/"));
    if let Some((_, document)) = files.iter().find(|(place, _)| place == "ARCHITECTURE.md") {
        findings.extend(walks::check(document, sources.map(|(_, text)| text.as_str())));
    }
    for (place, text) in &files {
        findings.extend(check_file(place, text));
        findings.extend(format_names::check(place, text, &names));
    }
    Ok(findings)
}

fn check_file(place: &str, text: &str) -> Vec<Finding> {
    let rust = place.ends_with(".rs");
    let mut findings = Vec::new();
    if place == "mod.rs" || place.ends_with("/mod.rs") {
        let remedy = "name the file for its module: foo.rs next to the folder foo";
        findings.push(Finding::error(place, "a file mod.rs says nothing by its name", remedy));
    }
    let lines = text.lines().count();
    if rust && lines > LONG {
        let remedy = "ask which second concept moved in, and give it a file of its own";
        findings.push(Finding::warning(place, format!("{lines} lines; up to {LONG} are usual"), remedy));
    }
    for (number, line) in text.lines().enumerate() {
        let here = || format!("{place}:{}", number + 1);
        if let Some(stub) = STUBS.iter().find(|stub| rust && has_stub(line, stub)) {
            let remedy = "write it, or refuse the case with an error of kind Unsupported";
            findings.push(Finding::error(here(), format!("a stub: {stub}"), remedy));
        }
        if let Some(path) = MACHINE_PATHS.iter().find(|path| has_path(line, path)) {
            let remedy = "use a path relative to the workspace, a temporary folder, or a placeholder such as DIR";
            findings.push(Finding::error(here(), format!("a path of one machine: {path}..."), remedy));
        }
    }
    findings
}

/// Whether `line` calls the macro, other than in a comment.
fn has_stub(line: &str, stub: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    starts(code, stub).any(|at| !ends_in_name(&code[..at]))
}

/// Whether `line` holds a path that begins with `path`: the end of another path is none.
fn has_path(line: &str, path: &str) -> bool {
    starts(line, path).any(|at| !ends_in_name(&line[..at]))
}

fn starts<'a>(text: &'a str, part: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(part).map(|(at, _)| at)
}

fn ends_in_name(before: &str) -> bool {
    before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || "_-.~*)}>]/".contains(c))
}

fn files(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(workspace.root());
    if workspace.root().join(".git").exists()
        && let Ok(list) = shell::output(&mut command, "")
    {
        return Ok(list.split_terminator('\0').map(|path| workspace.root().join(path)).collect());
    }
    let mut found = Vec::new();
    walk(workspace.root(), &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_symlink() {
            continue;
        }
        let skipped = path.file_name().is_some_and(|name| name == "target" || name == ".git");
        if path.is_dir() && !skipped {
            walk(&path, found)?;
        } else if path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_are_found_in_code_only() {
        let source = format!("fn f() {{ {}() }}\n// not {}()\nlet my_{} = 1;", STUBS[0], STUBS[1], STUBS[0]);
        let findings = check_file("a.rs", &source);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].place, "a.rs:1");
        assert!(check_file("a.md", &source).is_empty());
    }

    #[test]
    fn machine_paths_are_found_at_their_beginning_only() {
        for path in MACHINE_PATHS {
            assert_eq!(check_file("a.md", &format!("open(\"{path}x\")")).len(), 1, "{path}");
            assert_eq!(check_file("a.md", &format!("cd {path}x")).len(), 1, "{path}");
            assert!(check_file("a.md", &format!("$HOME{path}x ./a{path}x")).is_empty(), "{path}");
        }
    }

    #[test]
    fn names_and_lengths() {
        assert_eq!(check_file("src/foo/mod.rs", "").len(), 1);
        assert!(check_file("src/my_mod.rs", "").is_empty());
        let long = "\n".repeat(LONG + 1);
        assert!(check_file("a.rs", &long)[0].warning);
        assert!(check_file("a.json", &long).is_empty());
    }
}
