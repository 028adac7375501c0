//! Decisions by the name of a format outside the formats: what others need to know of one is in its registry entry.

use std::collections::BTreeSet;

use super::Finding;

/// Where formats are, and may compare their own names.
const FORMATS: &str = "crates/hyperslab-formats/";
/// Written in two halves, so that this file does not find itself.
const ENTRY: &str = concat!("FormatEntry = Format", "Entry {");

/// The names of all entries among sources of formats.
pub fn names<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, text) in sources.filter(|(place, _)| place.starts_with(FORMATS)) {
        for entry in text.split(ENTRY).skip(1) {
            let quoted = entry.split_once("name: \"").and_then(|(_, rest)| rest.split_once('"'));
            names.extend(quoted.map(|(name, _)| name.to_owned()).filter(|name| !name.is_empty()));
        }
    }
    names
}

/// Findings in one source file.
pub fn check(place: &str, text: &str, names: &BTreeSet<String>) -> Vec<Finding> {
    let test = ["/tests/", "/benches/", "/examples/", "/tests.rs", "/fuzz/"].iter().any(|part| place.contains(part));
    if !place.ends_with(".rs") || place.starts_with(FORMATS) || test {
        return Vec::new();
    }
    // Tests come last in a file.
    let product = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    let mut findings = Vec::new();
    for (number, line) in product.enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if let Some(name) = names.iter().find(|name| decides_by(code, name)) {
            let remedy = "put what differs into the format's entry (FormatEntry), or ask its Caps";
            findings.push(Finding::error(
                format!("{place}:{}", number + 1),
                format!("a decision by the name of the format {name}"),
                remedy,
            ));
        }
    }
    findings
}

/// Whether `code` compares something with the name, or matches on it.
fn decides_by(code: &str, name: &str) -> bool {
    let literal = format!("\"{name}\"");
    code.match_indices(&literal).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + literal.len()..]);
        let (left, right) = (before.trim_end(), after.trim_start());
        let compared = ["==", "!=", "|"].iter().any(|sign| left.ends_with(sign) || right.starts_with(sign));
        compared || right.contains("=>") || before.contains("matches!(") || after.contains("].contains(")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_found_and_data_are_not() {
        let entry = format!("const A: {ENTRY}\n    name: \"raw\",\n    about: \"x\",\n}}");
        let names =
            names([("crates/hyperslab-formats/src/a.rs", entry.as_str()), ("b.rs", entry.as_str())].into_iter());
        assert_eq!(names.iter().collect::<Vec<_>>(), ["raw"]);
        for line in [
            "match name { \"raw\" => 1, _ => 2 }",
            "match x { (\"raw\", _) if y => 1 }",
            "if name == \"raw\" {",
            "if \"raw\" != name {",
            "matches!(name, \"raw\" | \"b\")",
            "[\"raw\", \"b\"].contains(&name)",
            "| \"raw\"",
        ] {
            assert_eq!(check("crates/a/src/b.rs", line, &names).len(), 1, "{line}");
            assert!(check("crates/a/tests/b.rs", line, &names).is_empty(), "{line}");
            assert!(check("crates/hyperslab-formats/src/b.rs", line, &names).is_empty(), "{line}");
            assert!(check("crates/a/src/b.rs", &format!("// {line}"), &names).is_empty(), "{line}");
            assert!(check("crates/a/src/b.rs", &format!("#[cfg(test)]\n{line}"), &names).is_empty(), "{line}");
        }
        for line in ["let stacks = [\"raw\", \"rawer\"];", "parse(\"raw\")", "name == \"rawer\"", "a => parse(\"raw\")"]
        {
            assert!(check("crates/a/src/b.rs", line, &names).is_empty(), "{line}");
        }
    }
}
