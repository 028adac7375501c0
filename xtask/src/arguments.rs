//! The words after a command's name: flags, names, and what follows `--`.

use anyhow::{Result, bail};

/// The words of one command, sorted by what they are.
#[derive(Debug, Default, PartialEq)]
pub struct Arguments {
    flags: Vec<String>,
    /// Words that are no flags.
    pub names: Vec<String>,
    /// Everything after `--`, untouched.
    pub passed_on: Vec<String>,
}

impl Arguments {
    /// Sorts `words`; refuses a flag that is not in `known`, and names when `names_allowed` is false.
    pub fn parse(words: &[String], known: &[&str], names_allowed: bool) -> Result<Self> {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if word == "--" {
                arguments.passed_on = words.cloned().collect();
                break;
            }
            if word.starts_with('-') {
                if !known.contains(&word.as_str()) {
                    bail!("unknown flag {word}; {}", did_you_mean(word, known));
                }
                arguments.flags.push(word.clone());
            } else if names_allowed {
                arguments.names.push(word.clone());
            } else {
                bail!("unexpected word {word:?}; words for the program underneath go after --");
            }
        }
        Ok(arguments)
    }

    /// Whether `flag` was given.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }
}

/// `did you mean "test"?`, or the whole list when nothing is near.
pub fn did_you_mean(wrong: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|name| (distance(wrong, name), *name)).min();
    match nearest {
        Some((edits, name)) if edits <= 1 + name.len() / 3 => format!("did you mean {name:?}?"),
        Some(_) => format!("there are: {}", known.join(", ")),
        None => "it takes none".to_owned(),
    }
}

/// How many letters must be put in, taken out or changed to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_are_sorted() {
        let parsed = Arguments::parse(&words("copy --check -- --fast x"), &["--check"], true).unwrap();
        assert!(parsed.has("--check"));
        assert!(!parsed.has("--fast"));
        assert_eq!(parsed.names, ["copy"]);
        assert_eq!(parsed.passed_on, ["--fast", "x"]);
    }

    #[test]
    fn unknown_words_are_refused() {
        let error = Arguments::parse(&words("--fats"), &["--fast", "--no-apt"], false).unwrap_err();
        assert!(error.to_string().contains("did you mean \"--fast\"?"), "{error}");
        assert!(Arguments::parse(&words("fast"), &["--fast"], false).is_err());
        assert!(Arguments::parse(&words("--fast"), &[], false).unwrap_err().to_string().contains("it takes none"));
    }

    #[test]
    fn nearest_names() {
        let names = ["quickstart", "test", "tidy"];
        assert_eq!(did_you_mean("quikstart", &names), "did you mean \"quickstart\"?");
        assert_eq!(did_you_mean("tset", &names), "did you mean \"test\"?");
        assert_eq!(did_you_mean("frobnicate", &names), "there are: quickstart, test, tidy");
    }
}
