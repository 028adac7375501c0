//! "Did you mean": the valid name most similar to a wrong one.

/// The candidate most similar to `wrong` (Jaro-Winkler, ignoring case), if any is similar enough.
pub fn closest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = wrong.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::jaro_winkler(&lower, &c.to_lowercase()), c))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// An error hint: names the closest candidate, or lists all if none is close.
pub fn hint<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match closest(wrong, candidates.clone()) {
        Some(best) => format!("did you mean {best:?}?"),
        None => format!("use one of: {}", candidates.into_iter().collect::<Vec<_>>().join(", ")),
    }
}
