//! The options of the layer.

use super::choice::Choice;
use hyperslab_core::{Error, OptionSpec, Result, StackElement, suggest};
use std::path::PathBuf;

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "choices",
        value: "sync+async+log",
        default: "sync+async, and log if dir is given",
        about: "what may be chosen: waiting, the layer async, the layer log",
    },
    OptionSpec {
        name: "memory",
        value: "SIZE",
        default: "a quarter of the available memory, shared among the ranks of a node",
        about: "bytes that a rank holds for transfers in the background",
    },
    OptionSpec {
        name: "dir",
        value: "PATH",
        default: "there is no log",
        about: "a directory for the log, on storage that is fast and survives a crash of the program",
    },
    OptionSpec {
        name: "state",
        value: "PATH|off",
        default: "$XDG_STATE_HOME/hyperslab or ~/.local/state/hyperslab",
        about: "where the history of earlier runs is kept",
    },
    OptionSpec {
        name: "explain",
        value: "PATH",
        default: "a summary in the results",
        about: "a file to which a line for each decision is appended: what was chosen, why, and what it took",
    },
    OptionSpec { name: "lag", value: "TIME", default: "no limit", about: "as of the layer async" },
];

#[derive(Debug, Clone)]
pub(super) struct Options {
    /// In the order of [`Choice::ALL`]; at least one.
    pub choices: Vec<Choice>,
    pub memory: Option<u64>,
    pub directory: Option<PathBuf>,
    pub state: Option<PathBuf>,
    pub explain: Option<PathBuf>,
    /// In the words of the layer async.
    pub lag: Option<String>,
}

impl Options {
    pub fn parse(element: &StackElement) -> Result<Self> {
        let refuse = |message: String| Error::invalid("parse stack", format!("auto: {message}"));
        let directory = element.get("dir").map(PathBuf::from);
        let mut choices = vec![Choice::Sync, Choice::Async];
        if directory.is_some() {
            choices.push(Choice::Log);
        }
        if let Some(text) = element.get("choices") {
            let words: Vec<&str> = text.split('+').collect();
            if let Some(word) = words.iter().find(|word| !Choice::ALL.iter().any(|choice| choice.name() == **word)) {
                let names = Choice::ALL.map(Choice::name);
                return Err(refuse(format!("{word:?} is no choice")).hint(suggest::hint(word, names)));
            }
            choices = Choice::ALL.into_iter().filter(|choice| words.contains(&choice.name())).collect();
        }
        if choices.contains(&Choice::Log) != directory.is_some() {
            return Err(match directory {
                None => refuse("log needs a directory".into()).hint("add dir=PATH, or leave log out of choices"),
                Some(_) => refuse("a directory is given, but log is no choice".into()).hint("leave dir out"),
            });
        }
        Ok(Self {
            choices,
            lag: crate::async_io::lag(element)?.and_then(|_| element.get("lag").map(str::to_owned)),
            // The layers check their own.
            memory: element.size("memory")?,
            directory,
            state: match element.get("state") {
                Some("off" | "no") => None,
                Some(path) => Some(path.into()),
                None => super::state::usual_folder(),
            },
            explain: element.get("explain").map(PathBuf::from),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::Stack;

    fn parse(text: &str) -> Result<Options> {
        Options::parse(&text.parse::<Stack>().unwrap().format)
    }

    #[test]
    fn options_are_checked() {
        assert_eq!(parse("auto(state=off)").unwrap().choices, [Choice::Sync, Choice::Async]);
        assert_eq!(parse("auto(dir=x)").unwrap().choices, Choice::ALL);
        let options = parse("auto(choices=log+sync,dir=x,state=y,explain=z,memory=1MiB)").unwrap();
        assert_eq!(options.choices, [Choice::Sync, Choice::Log]);
        assert_eq!((options.state, options.memory), (Some("y".into()), Some(1 << 20)));
        assert_eq!(parse("auto(state=off)").unwrap().state, None);
        for (text, said) in [
            ("auto(choices=sink)", "is no choice"),
            ("auto(choices=sync+log)", "log needs a directory"),
            ("auto(choices=sync,dir=x)", "log is no choice"),
            ("auto(memory=much)", "a size"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
