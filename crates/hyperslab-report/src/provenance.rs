//! Where results come from.

use crate::record::RunRecord;
use crate::words;
use hyperslab_core::units::{iso_time, parse_iso_time};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Characters of a fact that are shown.
const LONGEST: usize = 3000;

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
            Value::Object(stacks) if key == "stacks" => {
                for (stack, elements) in stacks {
                    let element = |element: &Value| {
                        let options = element["options"].as_object().into_iter().flatten();
                        let options: Vec<String> =
                            options.map(|(name, value)| format!("{name}={}", text(value))).collect();
                        format!("{}: {}", text(&element["name"]), options.join(", "))
                    };
                    let elements = elements.as_array().into_iter().flatten().map(element);
                    facts.push((format!("stack {stack}"), elements.collect::<Vec<_>>().join("; ")));
                }
            }
            Value::Object(map) if !map.is_empty() && map.values().all(|v| !v.is_object() && is_flat(v)) => {
                let list = map.iter().map(|(key, value)| format!("{key} {}", text(value)));
                facts.push((name, list.collect::<Vec<_>>().join("; ")));
            }
            value => {
                // Inputs are whole in the results; here as much as can be read.
                let whole = text(value);
                let shown: String = whole.chars().take(LONGEST).collect();
                let more = if shown.len() < whole.len() { " ... (whole in the results file)" } else { "" };
                facts.push((name, shown + more));
            }
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

/// Neither an object nor a list with something other than words and numbers in it.
fn is_flat(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(list) => list.iter().all(|value| !value.is_object() && !value.is_array()),
        _ => true,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Array(list) if is_flat(value) => list.iter().map(text).collect::<Vec<_>>().join(", "),
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
        Value::String(text) => parse_iso_time(text).unwrap_or(0.0),
        _ => 0.0,
    }
}

fn iso(started: &Value) -> String {
    match started {
        Value::String(text) => text.clone(),
        Value::Number(seconds) => iso_time(seconds.as_f64().unwrap_or(0.0)),
        _ => "at an unknown time".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("hdf5(chunk=8)"), "'hdf5(chunk=8)'");
    }
}
