//! Licences and sources of everything that is built in, against `deny.toml`: what cargo-deny checks, as far as no network is
//! needed for it.

mod licence;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Finding;
use crate::fuzz;
use crate::shell;
use crate::workspace::Workspace;

/// The rules, and the registry that packages may come from.
const RULES: &str = "deny.toml";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What `deny.toml` allows.
struct Rules {
    licences: BTreeSet<String>,
    /// Packages without a licence's name that were looked at.
    clarified: BTreeSet<String>,
    banned: BTreeSet<String>,
}

/// Findings for each package that the rules do not allow. Where cargo cannot tell the packages, a warning.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let path = workspace.root().join(RULES);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let host = fuzz::host()?;
    let words = ["metadata", "--format-version=1", "--locked", "--filter-platform", &host];
    let said = match shell::output(&mut workspace.cargo(&words), "cargo fetch") {
        Ok(said) => said,
        Err(_) => {
            let what = "licences were not checked: cargo metadata does not know all packages here";
            return Ok(vec![Finding::warning("Cargo.lock", what, "cargo fetch, where there is a network")]);
        }
    };
    let metadata: Value = serde_json::from_str(&said).context("cargo metadata did not print JSON")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let rules = Rules::read(&text);
    Ok(packages.iter().flat_map(|package| rules.judge(package)).collect())
}

impl Rules {
    fn read(text: &str) -> Self {
        let clarified = text.split("[[licenses.clarify]]\n").skip(1).map(section).collect::<String>();
        Self {
            licences: quoted_after(&list(text, "[licenses]", "allow"), ""),
            clarified: quoted_after(&clarified, "crate = "),
            banned: quoted_after(&list(text, "[bans]", "deny"), "crate = "),
        }
    }

    fn judge(&self, package: &Value) -> Vec<Finding> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, licence) = (text("name"), text("license"));
        let place = format!("{name} {}", text("version"));
        let mut findings = Vec::new();
        let known = if licence.is_empty() {
            self.clarified.contains(name)
        } else {
            licence::is_allowed(licence, &|name| self.licences.contains(name))
        };
        if !known {
            let what = format!("its licence {licence:?} is not allowed by {RULES}");
            findings.push(Finding::error(
                &place,
                what,
                "do without it, or allow the licence if it fits MIT and Apache-2.0",
            ));
        }
        if !package["source"].is_null() && text("source") != REGISTRY {
            let what = format!("it comes from {}, not from crates.io", text("source"));
            findings.push(Finding::error(&place, what, "use a published version"));
        }
        if self.banned.contains(name) {
            findings.push(Finding::error(&place, format!("{RULES} bans it"), "do without it"));
        }
        findings
    }
}

/// The text up to the next section.
fn section(after: &str) -> &str {
    after.split("\n[").next().unwrap_or_default()
}

/// The text between the brackets of `key = [...]` in a section.
fn list(text: &str, header: &str, key: &str) -> String {
    let inside = text.split_once(&format!("{header}\n")).map_or("", |(_, after)| section(after));
    let list = inside.split_once(&format!("{key} = [")).and_then(|(_, list)| list.split_once(']'));
    list.map_or_else(String::new, |(list, _)| list.to_owned())
}

/// The words in quotation marks that follow `before` at once.
fn quoted_after(text: &str, before: &str) -> BTreeSet<String> {
    let mark = format!("{before}\"");
    let mut found = BTreeSet::new();
    let mut rest = text;
    while let Some((word, after)) = rest.split_once(&mark).and_then(|(_, after)| after.split_once('"')) {
        found.insert(word.to_owned());
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str = r#"
[licenses]
allow = [
    "MIT",
    "Zlib",
]

[[licenses.clarify]]
crate = "own-words"
expression = "BSD-3-Clause"

[bans]
deny = [
    { crate = "heavy", use-instead = "light" },
]
"#;

    fn judged(name: &str, licence: Option<&str>, source: Option<&str>) -> usize {
        let package = json!({"name": name, "version": "1.0.0", "license": licence, "source": source});
        Rules::read(TEXT).judge(&package).len()
    }

    #[test]
    fn rules_are_read_and_kept() {
        let rules = Rules::read(TEXT);
        assert_eq!(rules.licences, ["MIT", "Zlib"].map(str::to_owned).into());
        assert_eq!(rules.clarified, ["own-words".to_owned()].into());
        assert_eq!(rules.banned, ["heavy".to_owned()].into());
        assert_eq!(judged("a", Some("MIT OR GPL-3.0"), Some(REGISTRY)), 0);
        assert_eq!(judged("a", Some("GPL-3.0"), Some(REGISTRY)), 1);
        assert_eq!(judged("a", None, None), 1);
        assert_eq!(judged("own-words", None, None), 0);
        assert_eq!(judged("a", Some("MIT"), Some("git+https://example.org/a")), 1);
        assert_eq!(judged("heavy", Some("MIT"), None), 1);
    }
}
