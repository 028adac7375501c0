//! The walks of data in `ARCHITECTURE.md`: short, and of functions and types that are there.

use std::collections::BTreeSet;

use super::Finding;

const PLACE: &str = "ARCHITECTURE.md";
/// Where the walks begin and end.
const HEADINGS: [&str; 2] = ["## Three walks of data", "## Decisions"];
/// More steps than this are no straight line.
const MOST_STEPS: usize = 15;
/// What declares a name that a walk may use.
const DECLARES: [&str; 6] = ["fn ", "struct ", "enum ", "trait ", "mod ", "type "];

/// Findings in the walks of `document`, whose names should be declared in one of `sources`.
pub fn check<'a>(document: &str, sources: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let walks = document.split_once(HEADINGS[0]).and_then(|(_, rest)| rest.split_once(HEADINGS[1]));
    let Some((walks, _)) = walks else {
        return vec![Finding::error(PLACE, "the walks of data are not there", "keep their headings")];
    };
    let declared: BTreeSet<&str> = sources.flat_map(str::lines).filter_map(declared).collect();
    let mut findings = Vec::new();
    // Text between the walks is about them.
    for line in walks.lines().filter(|line| line.starts_with(|c: char| c.is_numeric() || c == ' ')) {
        let step = line.split_once(". ").and_then(|(number, _)| number.parse::<usize>().ok());
        if step.is_some_and(|step| step > MOST_STEPS) {
            findings.push(Finding::error(
                PLACE,
                format!("a walk of {} steps", step.unwrap_or(0)),
                "leave out translations",
            ));
        }
        // Every second part is between backticks.
        for name in line.split('`').skip(1).step_by(2).flat_map(names) {
            if !declared.contains(name) {
                findings.push(Finding::error(PLACE, format!("a walk names {name}, which is nowhere"), "walk it again"));
            }
        }
    }
    findings
}

/// The names of functions and types in code such as `Type::function -> other`; none in a command line.
fn names(code: &str) -> Vec<&str> {
    let is_command = code.contains("--") || code.contains(".json") || code.contains('(');
    let path = |path: &'_ str| path.split("::").any(|part| part.starts_with("H5"));
    let words = code.split(" -> ").flat_map(|call| call.split(['/', ',', ' ']));
    let words = words.filter(|word| !is_command && !path(word)).flat_map(|word| word.split("::"));
    let is_name = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    words.filter(is_name).filter(|word| !word.starts_with("hyperslab")).collect()
}

fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let after = DECLARES.iter().find_map(|word| {
        let at = line.find(word)?;
        let begins = at == 0 || line[..at].ends_with([' ', ')']);
        begins.then(|| &line[at + word.len()..])
    })?;
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
    Some(&after[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nowhere_and_long_walks_are_found() {
        let source = "pub(crate) fn write_all() {}\n    pub struct Plan<'a> {\nasync fn read() {}\n";
        let found = |walk: &str| {
            let document = format!("{}\n{walk}\n{}", HEADINGS[0], HEADINGS[1]);
            check(&document, [source].into_iter()).into_iter().map(|finding| finding.what).collect::<Vec<_>>()
        };
        assert!(found("1. `Plan::write_all` -> `read`, `H5Dwrite`, `hyperslab_core::read`, `--mode log`").is_empty());
        assert_eq!(found("1. `Plan::write_some`"), ["a walk names write_some, which is nowhere"]);
        assert_eq!(found("15. `read`\n16. `read`"), ["a walk of 16 steps"]);
        assert_eq!(check("", [source].into_iter()).len(), 1);
    }
}
