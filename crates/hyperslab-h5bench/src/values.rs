//! The object of keys that h5bench configurations are made of: numbers or text, any order, unknown keys refused.

use anyhow::{Result, bail};
use hyperslab_core::suggest;
use serde_json::{Map, Value};
use std::time::Duration;

/// An object of a configuration, with its place in the file for messages.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    map: &'a Map<String, Value>,
    place: &'a str,
}

impl<'a> Keys<'a> {
    /// The object, all of whose keys must be among `known`.
    pub fn new(map: &'a Map<String, Value>, place: &'a str, known: &[&str]) -> Result<Self> {
        if let Some(wrong) = map.keys().find(|key| !known.contains(&key.as_str())) {
            bail!("{place}: unknown key {wrong:?}; {}", suggest::hint(wrong, known.iter().copied()));
        }
        Ok(Self { map, place })
    }

    /// The text of a value; numbers and booleans are taken as written. Empty text counts as absent.
    pub fn text(&self, key: &str) -> Result<Option<String>> {
        let text = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(flag)) => if *flag { "YES" } else { "NO" }.to_owned(),
            Some(_) => return self.refuse(key, "text or a number"),
        };
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A whole number with an optional binary unit: `8 M`, `64K`, `1024`.
    pub fn number(&self, key: &str) -> Result<Option<u64>> {
        match self.text(key)? {
            None => Ok(None),
            Some(text) => match hyperslab_core::units::parse_size(&text) {
                Ok(number) => Ok(Some(number)),
                Err(_) => self.refuse(key, "a whole number such as 1024 or 8 M"),
            },
        }
    }

    /// A number that must be at least 1.
    pub fn positive(&self, key: &str) -> Result<Option<u64>> {
        match self.number(key)? {
            Some(0) => self.refuse(key, "at least 1"),
            other => Ok(other),
        }
    }

    /// A time: `10`, `1 s`, `500 ms`, `20 us`, `2 min`.
    pub fn time(&self, key: &str) -> Result<Option<Duration>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let nanoseconds: Option<u64> = match unit.trim().to_ascii_lowercase().as_str() {
            "us" => Some(1_000),
            "ms" => Some(1_000_000),
            "" => Some(1_000_000_000),
            unit if unit.starts_with('s') => Some(1_000_000_000),
            unit if unit.starts_with('m') => Some(60_000_000_000),
            _ => None,
        };
        let total = number.parse::<u64>().ok().zip(nanoseconds).and_then(|(n, each)| n.checked_mul(each));
        match total {
            Some(nanoseconds) => Ok(Some(Duration::from_nanos(nanoseconds))),
            None => self.refuse(key, "a time such as 1 s, 500 ms or 2 min"),
        }
    }

    /// `YES` or `NO`, in any case; also true and false.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        Ok(match self.text(key)?.map(|t| t.to_ascii_uppercase()).as_deref() {
            None => None,
            Some("YES" | "Y" | "TRUE") => Some(true),
            Some("NO" | "N" | "FALSE") => Some(false),
            Some(_) => return self.refuse(key, "YES or NO"),
        })
    }

    /// One of several words, in any case.
    pub fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        match words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text)) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => bail!("{}: {key} is {text:?}; {}", self.place, suggest::hint(&text, words.iter().map(|(w, _)| *w))),
        }
    }

    /// The object under a key.
    pub fn object(&self, key: &str) -> Result<Option<&'a Map<String, Value>>> {
        match self.map.get(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(_) => self.refuse(key, "an object in braces"),
        }
    }

    /// The list under a key.
    pub fn list(&self, key: &str) -> Result<Option<&'a [Value]>> {
        match self.map.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => self.refuse(key, "a list in square brackets"),
        }
    }

    /// The value, or an error that says it is missing.
    pub fn need<T>(&self, key: &str, value: Option<T>) -> Result<T> {
        match value {
            Some(value) => Ok(value),
            None => bail!("{}: {key} is missing", self.place),
        }
    }

    fn refuse<T>(&self, key: &str, wanted: &str) -> Result<T> {
        bail!("{}: {key} is {}; it should be {wanted}", self.place, self.map.get(key).unwrap_or(&Value::Null))
    }
}
