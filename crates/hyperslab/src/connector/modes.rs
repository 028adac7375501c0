//! What the connector is to do, in the words of the command line.

use anyhow::{Result, bail};
use hyperslab_core::suggest;
use std::fmt;

const NAMES: [&str; 8] = ["codec", "async", "log", "cache", "trace", "auto", "safe", "off"];

/// Modes that go together, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes(Vec<&'static str>);

impl Modes {
    /// Reads `codec+async`; refuses what the connector would refuse, before anything runs.
    pub fn parse(text: &str) -> Result<Self> {
        let mut modes = Vec::new();
        for word in text.split(['+', ',']).map(str::trim) {
            match NAMES.iter().find(|name| **name == word) {
                Some(name) if modes.contains(name) => {}
                Some(name) => modes.push(*name),
                None if word.is_empty() => bail!("a mode is missing in {text:?}\n  try: one of {}", NAMES.join(", ")),
                None => bail!("there is no mode {word:?}\n  try: {}", suggest::hint(word, NAMES)),
            }
        }
        if modes.contains(&"off") && modes.len() > 1 {
            bail!("{text}: off does nothing, so it stands alone\n  try: leave off out");
        }
        let other = ["log", "cache"].into_iter().find(|other| modes.contains(other));
        if let (true, Some(other)) = (modes.contains(&"async"), other) {
            bail!("{text}: {other} moves writes in the background by itself\n  try: leave async out");
        }
        let other = ["async", "log", "cache"].into_iter().find(|other| modes.contains(other));
        if let (true, Some(other)) = (modes.contains(&"auto"), other) {
            bail!("{text}: auto chooses between waiting and async by itself\n  try: leave {other} out");
        }
        Ok(Self(modes))
    }

    /// Whether `name` is among them.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(&name)
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("+"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_joined_by_plus_or_comma() {
        assert_eq!(Modes::parse("codec,async+codec").unwrap().to_string(), "codec+async");
        assert!(Modes::parse("log").unwrap().has("log"));
        assert!(Modes::parse("codec+auto").unwrap().has("auto"));
        assert_eq!(Modes::parse("off").unwrap().to_string(), "off");
    }

    #[test]
    fn wrong_modes_are_refused_with_the_nearest() {
        for (text, said) in [
            ("asynk", "did you mean \"async\"?"),
            ("xyz", "use one of: codec"),
            ("codec+", "a mode is missing"),
            ("off+codec", "off does nothing"),
            ("async+log", "leave async out"),
            ("cache+async", "leave async out"),
            ("auto+async", "leave async out"),
            ("codec+auto+log", "leave log out"),
        ] {
            let error = Modes::parse(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
