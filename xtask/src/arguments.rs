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

/// Takes `FLAG VALUE` or `FLAG=VALUE` out of the words before `--`; `what` says what the value is.
pub fn take_value(words: &[String], flag: &str, what: &str) -> Result<(Option<String>, Vec<String>)> {
    let mut rest = words.to_vec();
    let joined = format!("{flag}=");
    let ours = |word: &String| word == flag || word.starts_with(&joined);
    let Some(at) = words.iter().take_while(|word| *word != "--").position(ours) else {
        return Ok((None, rest));
    };
    let word = rest.remove(at);
    let value = match word.strip_prefix(&joined) {
        Some(value) => value.to_owned(),
        None if at < rest.len() && !rest[at].starts_with('-') => rest.remove(at),
        None => String::new(),
    };
    if value.is_empty() {
        bail!("{flag} needs {what}");
    }
    Ok((Some(value), rest))
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
    fn values_are_taken_out() {
        for text in ["a --prefix DIR --check", "a --prefix=DIR --check"] {
            let (value, rest) = take_value(&words(text), "--prefix", "a folder").unwrap();
            assert_eq!((value.as_deref(), rest.join(" ").as_str()), (Some("DIR"), "a --check"));
        }
        assert_eq!(take_value(&words("a -- --prefix b"), "--prefix", "").unwrap().0, None);
        for text in ["--prefix", "--prefix=", "--prefix --check"] {
            assert!(take_value(&words(text), "--prefix", "a folder").unwrap_err().to_string().contains("a folder"));
        }
    }

    #[test]
    fn nearest_names() {
        let names = ["quickstart", "test", "tidy"];
        assert_eq!(did_you_mean("quikstart", &names), "did you mean \"quickstart\"?");
        assert_eq!(did_you_mean("tset", &names), "did you mean \"test\"?");
        assert_eq!(did_you_mean("frobnicate", &names), "there are: quickstart, test, tidy");
    }
}
