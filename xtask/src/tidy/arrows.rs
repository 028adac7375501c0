//! Which crate may depend on which.

use std::path::Path;

use super::{Finding, Package};

/// What each crate may use, besides crates from outside. `ARCHITECTURE.md` says why.
const ALLOWED: &[(&str, &[&str])] = &[
    ("hyperslab-core", &[]),
    ("hyperslab-comm", &["hyperslab-core"]),
    ("hyperslab-filters", &["hyperslab-core"]),
    ("hyperslab-h5direct", &["hyperslab-core", "hyperslab-filters"]),
    ("hyperslab-rollback", &["hyperslab-core"]),
    ("hyperslab-formats", &["hyperslab-core", "hyperslab-filters", "hyperslab-h5direct", "hyperslab-rollback"]),
    ("hyperslab-kernels", &["hyperslab-core"]),
    ("hyperslab-journal", &["hyperslab-core", "hyperslab-rollback"]),
    ("hyperslab-layers", &["hyperslab-core", "hyperslab-comm", "hyperslab-rollback", "hyperslab-journal"]),
    (
        "hyperslab-run",
        &["hyperslab-core", "hyperslab-comm", "hyperslab-formats", "hyperslab-journal", "hyperslab-layers"],
    ),
    ("hyperslab-ior", &["hyperslab-core", "hyperslab-formats", "hyperslab-kernels", "hyperslab-run"]),
    ("hyperslab-h5bench", &["hyperslab-core", "hyperslab-kernels", "hyperslab-report", "hyperslab-run"]),
    (
        "hyperslab-bench",
        &[
            "hyperslab-core",
            "hyperslab-comm",
            "hyperslab-formats",
            "hyperslab-h5bench",
            "hyperslab-kernels",
            "hyperslab-layers",
            "hyperslab-report",
            "hyperslab-run",
        ],
    ),
    (
        "hyperslab-advisor",
        &[
            "hyperslab",
            "hyperslab-core",
            "hyperslab-bench",
            "hyperslab-filters",
            "hyperslab-formats",
            "hyperslab-layers",
            "hyperslab-model",
            "hyperslab-report",
            "hyperslab-run",
        ],
    ),
    ("hyperslab-model", &["hyperslab-core"]),
    ("hyperslab-sim", &["hyperslab-core", "hyperslab-kernels"]),
    ("hyperslab-report", &["hyperslab-core"]),
    (
        "hyperslab-vol",
        &[
            "hyperslab-core",
            "hyperslab-comm",
            "hyperslab-journal",
            "hyperslab-layers",
            "hyperslab-filters",
            "hyperslab-h5direct",
            "hyperslab-rollback",
        ],
    ),
    ("hyperslab-testkit", &["hyperslab-core", "hyperslab-comm"]),
    ("hyperslab-faultshim", &[]),
    ("hyperslab-crashlab", &[]),
    ("hyperslab-interleavings", &[]),
    ("xtask", &[]),
    (
        "hyperslab",
        &[
            "hyperslab-core",
            "hyperslab-comm",
            "hyperslab-formats",
            "hyperslab-journal",
            "hyperslab-layers",
            "hyperslab-model",
            "hyperslab-rollback",
            "hyperslab-run",
        ],
    ),
    ("hyperslab-python", &["hyperslab", "hyperslab-core"]),
    (
        "hyperslab-cli",
        &[
            "hyperslab",
            "hyperslab-core",
            "hyperslab-advisor",
            "hyperslab-bench",
            "hyperslab-comm",
            "hyperslab-formats",
            "hyperslab-h5bench",
            "hyperslab-kernels",
            "hyperslab-journal",
            "hyperslab-ior",
            "hyperslab-layers",
            "hyperslab-rollback",
            "hyperslab-run",
            "hyperslab-model",
            "hyperslab-sim",
            "hyperslab-report",
        ],
    ),
];

/// Findings for each dependency between crates of the workspace that points the wrong way. Development dependencies
/// may point anywhere, since they cannot leak into a product.
pub fn check(packages: &[Package], display: impl Fn(&Path) -> String) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let place = display(&package.manifest);
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package.name) else {
            let what = format!("nothing says what the crate {} may depend on", package.name);
            findings.push(Finding::error(place, what, "add it to ALLOWED in xtask/src/tidy/arrows.rs"));
            continue;
        };
        for (used, development) in &package.dependencies {
            let ours = packages.iter().any(|other| other.name == *used);
            if ours && !development && !allowed.contains(&used.as_str()) {
                let may = if allowed.is_empty() { "no other crate".to_owned() } else { allowed.join(", ") };
                let what = format!("{} must not depend on {used}; it may use {may}", package.name);
                let remedy = "move what is needed to a crate below both, pass it in through a trait of \
                              hyperslab-core, or use dev-dependencies if only tests need it";
                findings.push(Finding::error(place.clone(), what, remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependencies = dependencies.iter().map(|(name, dev)| ((*name).to_owned(), *dev)).collect();
        Package { name: name.to_owned(), manifest: format!("{name}/Cargo.toml").into(), dependencies, roots: vec![] }
    }

    fn wrong(packages: &[Package]) -> Vec<String> {
        check(packages, |path| path.display().to_string()).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn arrows_in_the_right_direction_pass() {
        let packages = [
            package("hyperslab-core", &[("serde", false)]),
            package("hyperslab-comm", &[("hyperslab-core", false)]),
            package("hyperslab-formats", &[("hyperslab-core", false), ("hyperslab-comm", true)]),
        ];
        assert_eq!(wrong(&packages), Vec::<String>::new());
    }

    #[test]
    fn arrows_in_the_wrong_direction_are_found() {
        let packages = [
            package("hyperslab-core", &[("hyperslab-comm", false)]),
            package("hyperslab-comm", &[]),
            package("hyperslab-testkit", &[]),
            package("hyperslab", &[("hyperslab-testkit", false)]),
            package("stranger", &[]),
        ];
        let wrong = wrong(&packages);
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(wrong[0].starts_with("hyperslab-core must not depend on hyperslab-comm; it may use no other crate"));
        assert!(wrong[1].starts_with("hyperslab must not depend on hyperslab-testkit"));
        assert!(wrong[2].contains("stranger"));
    }

    #[test]
    fn no_product_may_use_what_is_only_for_tests() {
        for (name, allowed) in ALLOWED {
            for test_only in ["hyperslab-testkit", "hyperslab-faultshim", "hyperslab-crashlab", "xtask"] {
                assert!(!allowed.contains(&test_only), "{name} may use {test_only}");
            }
        }
    }
}
