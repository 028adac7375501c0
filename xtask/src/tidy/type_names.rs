//! Names that several types have: an engineer who searches for one finds the others.

use std::collections::BTreeMap;

use super::Finding;

/// So many public types of a name are too many.
const TOO_MANY: usize = 3;
/// Conventional inside a module, which says of what they are.
const CONVENTIONAL: &[&str] = &["Options"];

/// Findings for names of public types outside tests that are there too often.
pub fn check<'a>(sources: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<Finding> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (place, text) in sources.filter(|(place, _)| is_product(place)) {
        let product = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
        for (number, line) in product.enumerate() {
            if let Some(name) = declared(line) {
                places.entry(name).or_default().push(format!("{place}:{}", number + 1));
            }
        }
    }
    places.retain(|name, places| places.len() >= TOO_MANY && !CONVENTIONAL.contains(name));
    let remedy = "give all but two a name that says of what they are; docs/glossary.md has the words";
    let finding = |(name, places): (&str, Vec<String>)| {
        let what = format!("{} public types are named {name}: {}", places.len(), places.join(", "));
        Finding::error(&places[0], what, remedy)
    };
    places.into_iter().map(finding).collect()
}

fn is_product(place: &str) -> bool {
    let apart = ["/tests/", "/benches/", "/examples/", "/tests.rs", "fuzz/"];
    place.ends_with(".rs") && !apart.iter().any(|part| place.contains(part))
}

/// The name of the public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
    let kind = words.find(|word| *word != "unsafe")?;
    ["struct", "enum", "union", "trait", "type"].contains(&kind).then_some(())?;
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_where_they_are_public() {
        let source = "pub struct Row<'a> {\n}\npub(crate) struct Row;\n  pub enum Row {\n    // pub struct Row\n";
        let found = |files: &[&str]| check(files.iter().map(|place| (*place, source)));
        assert_eq!(found(&["a.rs", "b.rs"]).len(), 1, "four of them");
        assert!(found(&["a.rs", "b/tests/c.rs", "c.md", "d/tests.rs"]).is_empty(), "two of them");
        let test = "pub struct A;\n#[cfg(test)]\npub struct A;\npub type A = B;";
        assert!(check([("a.rs", test), ("b.rs", test)].into_iter()).is_empty());
        assert!(check([("a.rs", "pub struct Options;"); 5].into_iter()).is_empty());
    }

    #[test]
    fn declarations_are_read() {
        for (line, name) in [
            ("pub struct Run {", Some("Run")),
            ("    pub type Run = u8;", Some("Run")),
            ("pub unsafe trait Run: Send {", Some("Run")),
            ("pub struct Run(u8);", Some("Run")),
            ("pub fn run() -> Run {", None),
            ("pub(crate) struct Run;", None),
            ("struct Run;", None),
            ("pub use a::Run;", None),
        ] {
            assert_eq!(declared(line), name, "{line}");
        }
    }
}
