//! Keys of a kernel as they were given, with the defaults of the others.

use hyperslab_core::{Dims, Error, OptionSpec, Result, TransferMode, suggest, units};
use std::time::Duration;

/// The longest text of a key and its value.
const MAX_TEXT: usize = 4096;

/// The values of all keys of a kernel.
#[derive(Debug, Clone)]
pub struct Values {
    kernel: &'static str,
    known: &'static [OptionSpec],
    given: Vec<(&'static str, String)>,
}

impl Values {
    /// Reads `KEY=VALUE` words. Unknown keys and keys given twice are refused.
    pub fn parse<T: AsRef<str>>(kernel: &'static str, known: &'static [OptionSpec], words: &[T]) -> Result<Self> {
        let mut given: Vec<(&'static str, String)> = Vec::new();
        for word in words.iter().map(AsRef::as_ref) {
            let Some((name, value)) = word.split_once('=').filter(|_| word.len() <= MAX_TEXT) else {
                return Err(refuse(format!("{kernel}: {word:?} is not KEY=VALUE")));
            };
            let Some(spec) = known.iter().find(|spec| spec.name == name.trim()) else {
                let names = known.iter().map(|spec| spec.name);
                return Err(refuse(format!("{kernel} has no key {name:?}")).hint(suggest::hint(name.trim(), names)));
            };
            if given.iter().any(|(known, _)| *known == spec.name) {
                return Err(refuse(format!("{kernel}: {name} is given twice")));
            }
            given.push((spec.name, value.trim().to_owned()));
        }
        Ok(Self { kernel, known, given })
    }

    /// Whether the key was given.
    pub fn is_given(&self, key: &str) -> bool {
        self.given.iter().any(|(name, _)| *name == key)
    }

    /// The text of a key, or of its default.
    pub fn text(&self, key: &str) -> &str {
        let given = self.given.iter().find(|(name, _)| *name == key).map(|(_, value)| value.as_str());
        given.or_else(|| self.known.iter().find(|spec| spec.name == key).map(|spec| spec.default)).unwrap_or_default()
    }

    /// A whole number, perhaps with a binary unit.
    pub fn number(&self, key: &str) -> Result<u64> {
        units::parse_size(self.text(key)).map_err(|_| self.bad(key, "a whole number such as 64 or 2M"))
    }

    /// A whole number of at least 1.
    pub fn positive(&self, key: &str) -> Result<u64> {
        match self.number(key)? {
            0 => Err(self.bad(key, "at least 1")),
            number => Ok(number),
        }
    }

    /// A small number of at least 1.
    pub fn count(&self, key: &str) -> Result<usize> {
        usize::try_from(self.positive(key)?).ok().filter(|n| *n <= 1 << 20).ok_or_else(|| self.bad(key, "at most 2^20"))
    }

    /// Extents such as `64x64x64`, all of them at least 1.
    pub fn extents(&self, key: &str) -> Result<Dims> {
        let parts: Option<Dims> = self.text(key).split('x').map(|part| units::parse_size(part).ok()).collect();
        parts.filter(|dims| !dims.contains(&0)).ok_or_else(|| self.bad(key, "extents such as 64x64x64"))
    }

    /// So many extents.
    pub fn extents_of<const N: usize>(&self, key: &str) -> Result<[u64; N]> {
        self.extents(key)?.as_slice().try_into().map_err(|_| self.bad(key, &format!("{N} extents such as 64x64")))
    }

    /// A decimal number of at least 0.
    pub fn decimal(&self, key: &str) -> Result<f64> {
        let number = self.text(key).parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        number.ok_or_else(|| self.bad(key, "a number such as 2 or 0.5"))
    }

    /// `yes` or `no`.
    pub fn flag(&self, key: &str) -> Result<bool> {
        self.word(key, &[("yes", true), ("no", false)])
    }

    /// One of several words.
    pub fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<T> {
        let text = self.text(key);
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        found.ok_or_else(|| {
            let names = words.iter().map(|(word, _)| *word);
            refuse(format!("{}: {key}={text} is not understood", self.kernel)).hint(suggest::hint(text, names))
        })
    }

    /// A time such as `2s`, `10ms` or `0`.
    pub fn time(&self, key: &str) -> Result<Duration> {
        let text = self.text(key);
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let unit = match text[digits..].trim() {
            "us" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" | "" => Some(1_000_000_000),
            _ => None,
        };
        let total = text[..digits].parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
        total.map(Duration::from_nanos).ok_or_else(|| self.bad(key, "a time such as 2s or 10ms"))
    }

    /// How transfers are made, by the key `collective`.
    pub fn transfer(&self) -> Result<TransferMode> {
        Ok(if self.flag("collective")? { TransferMode::Collective } else { TransferMode::Independent })
    }

    /// An error about a value.
    pub fn bad(&self, key: &str, wanted: &str) -> Error {
        refuse(format!("{}: {key}={} should be {wanted}", self.kernel, self.text(key)))
    }
}

fn refuse(message: String) -> Error {
    Error::invalid("read keys", message)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::named::key;

    const KEYS: &[OptionSpec] = &[
        key("n", "N", "4", ""),
        key("grid", "ZxYxX", "2x3x4", ""),
        key("wait", "TIME", "0", ""),
        key("ratio", "NUMBER", "1.5", ""),
        key("collective", "yes|no", "no", ""),
    ];

    fn parse(words: &[&str]) -> Result<Values> {
        Values::parse("test", KEYS, words)
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let values = parse(&["n=2K", "wait=15ms"]).unwrap();
        assert_eq!(values.count("n").unwrap(), 2048);
        assert_eq!(values.extents_of::<3>("grid").unwrap(), [2, 3, 4]);
        assert_eq!(values.time("wait").unwrap(), Duration::from_millis(15));
        assert_eq!(values.decimal("ratio").unwrap(), 1.5);
        assert_eq!(values.transfer().unwrap(), TransferMode::Independent);
        assert!(values.is_given("n") && !values.is_given("grid"));
    }

    #[test]
    fn bad_keys_and_values_are_refused_with_a_way_out() {
        let said = |error: Error| format!("{error}");
        assert!(said(parse(&["grdi=1"]).unwrap_err()).contains("grid"));
        assert!(said(parse(&["n"]).unwrap_err()).contains("KEY=VALUE"));
        assert!(said(parse(&["n=1", "n=2"]).unwrap_err()).contains("twice"));
        let values = parse(&["n=0", "grid=0x1", "wait=2h", "ratio=-1", "collective=maybe"]).unwrap();
        assert!(said(values.count("n").unwrap_err()).contains("at least 1"));
        assert!(said(values.extents("grid").unwrap_err()).contains("64x64x64"));
        assert!(said(values.time("wait").unwrap_err()).contains("10ms"));
        assert!(said(values.decimal("ratio").unwrap_err()).contains("0.5"));
        assert!(said(values.flag("collective").unwrap_err()).contains("yes"));
        assert!(parse(&["grid=2x3"]).unwrap().extents_of::<3>("grid").is_err());
    }
}
