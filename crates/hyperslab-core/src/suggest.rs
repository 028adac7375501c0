//! "Did you mean": the nearest valid name to a wrong one.

/// The candidate most like `wrong`, if any is like it at all.
pub fn closest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::jaro_winkler(&lower, &c.to_lowercase()), c))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// A hint that names the nearest candidate, or lists all.
pub fn hint<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match closest(wrong, candidates.clone()) {
        Some(best) => format!("did you mean {best:?}?"),
        None => format!("use one of: {}", candidates.into_iter().collect::<Vec<_>>().join(", ")),
    }
}
