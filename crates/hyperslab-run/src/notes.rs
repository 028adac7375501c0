//! What layers and formats say of a run, with who says it: all ranks, or one; of all runs, or one.

use std::collections::{BTreeMap, BTreeSet};

/// Remarks of all runs of a case.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    runs: usize,
    /// The runs and ranks in which each was made.
    said: BTreeMap<String, BTreeMap<usize, BTreeSet<usize>>>,
    ranks: usize,
}

impl Notes {
    /// Adds those of the ranks of one more run.
    pub(crate) fn add<'a>(&mut self, ranks: impl Iterator<Item = &'a [String]>) {
        self.runs += 1;
        let run = self.runs;
        let mut count = 0;
        for (rank, remarks) in ranks.enumerate() {
            count += 1;
            for remark in remarks {
                self.said.entry(remark.clone()).or_default().entry(run).or_default().insert(rank);
            }
        }
        self.ranks = self.ranks.max(count);
    }

    /// In words: who is named where not all say it.
    pub(crate) fn into_words(self) -> Vec<String> {
        let (runs, ranks) = (self.runs, self.ranks);
        let words = |(text, by_run): (String, BTreeMap<usize, BTreeSet<usize>>)| {
            let who: BTreeSet<usize> = by_run.values().flatten().copied().collect();
            let mut of = Vec::new();
            if by_run.len() < runs {
                of.push(numbered("run", &by_run.keys().copied().collect()));
            }
            if who.len() < ranks {
                of.push(numbered("rank", &who));
            }
            if of.is_empty() { text } else { format!("{}: {text}", of.join(", ")) }
        };
        self.said.into_iter().map(words).collect()
    }
}

/// `rank 1`, `ranks 1 and 3`, `ranks 0, 2 and 5`, of many only how many.
fn numbered(what: &str, numbers: &BTreeSet<usize>) -> String {
    const MOST: usize = 8;
    let words: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match &words[..] {
        [one] => format!("{what} {one}"),
        [first @ .., last] if words.len() <= MOST => format!("{what}s {} and {last}", first.join(", ")),
        _ => format!("{} {what}s", words.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_named_where_not_all_say_it() {
        let of = |ranks: &[&[&str]]| -> Vec<Vec<String>> {
            ranks.iter().map(|texts| texts.iter().map(|text| (*text).to_owned()).collect()).collect()
        };
        let mut notes = Notes::default();
        for ranks in
            [of(&[&["all"], &["all", "one"], &["all"]]), of(&[&["all", "then"], &["all", "one"], &["all", "then"]])]
        {
            notes.add(ranks.iter().map(Vec::as_slice));
        }
        assert_eq!(notes.into_words(), ["all", "rank 1: one", "run 2, ranks 0 and 2: then"]);
        let mut alone = Notes::default();
        alone.add(of(&[&["said"]]).iter().map(Vec::as_slice));
        assert_eq!(alone.into_words(), ["said"]);
    }
}
