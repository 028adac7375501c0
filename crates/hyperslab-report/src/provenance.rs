//! Where results come from.

use crate::record::RunRecord;
use crate::words;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// A results file and what it was measured on.
#[derive(Debug, Serialize)]
pub struct RunFacts {
    /// The file.
    pub path: String,
    /// The machine.
    pub host: String,
    /// When it began, as ISO time.
    pub started: String,
    /// Whether it came to its end.
    pub complete: bool,
    /// The command that does it again.
    pub command: String,
    /// Everything else: what, and how it is.
    pub facts: Vec<(String, String)>,
}

/// What a file says about itself.
pub fn facts(path: &Path, run: &RunRecord) -> RunFacts {
    let mut facts = vec![("program".to_owned(), run.program.clone())];
    if let Some(launch) = &run.launch {
        facts.push(("launcher".into(), launch.clone()));
    }
    for (key, value) in run.machine.iter().chain(&run.provenance) {
        let name = key.replace('_', " ");
        match value {
            Value::Number(bytes) if key.starts_with("memory") => {
                facts.push((name, words::size(bytes.as_f64().unwrap_or(0.0))));
            }
            Value::Object(map) if !map.is_empty() && map.values().all(|v| !v.is_object() && !v.is_array()) => {
                let list = map.iter().map(|(key, value)| format!("{key} {}", text(value)));
                facts.push((name, list.collect::<Vec<_>>().join("; ")));
            }
            value => facts.push((name, text(value))),
        }
    }
    let host = run.machine.get("host").map(text).unwrap_or_else(|| "an unknown machine".into());
    RunFacts {
        path: path.display().to_string(),
        host,
        started: iso(&run.started),
        complete: run.complete,
        command: run.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        facts,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Seconds since 1970 of a start in either form; 0 if it is none.
pub fn started_seconds(started: &Value) -> f64 {
    match started {
        Value::Number(seconds) => seconds.as_f64().unwrap_or(0.0),
        Value::String(text) => from_iso(text).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn iso(started: &Value) -> String {
    match started {
        Value::String(text) => text.clone(),
        Value::Number(seconds) => hyperslab_core::units::iso_time(seconds.as_f64().unwrap_or(0.0)),
        _ => "at an unknown time".into(),
    }
}

/// `2026-11-19T02:09:24Z` as seconds since 1970.
fn from_iso(text: &str) -> Option<f64> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<i64>().ok());
    let mut next = || numbers.next().flatten();
    let (year, month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?, next()?);
    if !(1..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    // Days since 1970 of a date of the Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_both_forms() {
        assert_eq!(from_iso("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(from_iso("2026-11-19T02:09:24Z"), Some(1_795_054_164.0));
        assert_eq!(hyperslab_core::units::iso_time(1_795_054_164.0), "2026-11-19T02:09:24Z");
        assert_eq!(from_iso("yesterday"), None);
        assert_eq!(quoted("hdf5(chunk=8)"), "'hdf5(chunk=8)'");
    }
}
