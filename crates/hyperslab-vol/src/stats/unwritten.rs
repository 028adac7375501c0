//! Lost writes: acknowledged to the program, but not in its file.

use serde::Serialize;

/// The most datasets that are named.
const MOST: usize = 32;

/// Lost writes of one dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Unwritten {
    pub(crate) file: String,
    /// Empty where the error belongs to no single one.
    pub(crate) dataset: String,
    pub(crate) why: String,
    /// Whether a log still has them, so that a recovery brings them back.
    pub(crate) in_log: bool,
}

/// Adds one, unless the dataset is named already.
pub(super) fn note(all: &mut Vec<Unwritten>, mut lost: Unwritten) {
    let same =
        |known: &Unwritten| known.file == lost.file && (known.dataset == lost.dataset || lost.dataset.is_empty());
    if all.len() < MOST && !all.iter().any(same) {
        // One line.
        lost.why = lost.why.lines().next().unwrap_or_default().to_owned();
        all.push(lost);
    }
}

/// The first of them in a line, and how many more there are.
pub(super) fn in_words(all: &[Unwritten]) -> Option<String> {
    let first = all.first()?;
    let dataset = if first.dataset.is_empty() { String::new() } else { format!(", {}", first.dataset) };
    let more = if all.len() > 1 { format!(" (and of {} more)", all.len() - 1) } else { String::new() };
    Some(format!("DATA NOT WRITTEN: {}{dataset}, {}{more}", first.file, first.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(dataset: &str) -> Unwritten {
        Unwritten { file: "a.h5".into(), dataset: dataset.into(), why: "disk full\n  try: x".into(), in_log: false }
    }

    #[test]
    fn a_dataset_is_named_once_and_in_one_line() {
        let mut all = Vec::new();
        assert_eq!(in_words(&all), None);
        for dataset in ["x", "x", "", "y"] {
            note(&mut all, lost(dataset));
        }
        assert_eq!(in_words(&all).as_deref(), Some("DATA NOT WRITTEN: a.h5, x, disk full (and of 1 more)"));
    }
}
