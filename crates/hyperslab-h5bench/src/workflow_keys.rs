//! The keys of a workflow's benchmarks by name, and the same workflow with other values.

use super::application::KINDS;
use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use std::path::Path;

/// A key of a benchmark.
#[derive(Debug)]
struct ConfiguredKey {
    /// Place of the benchmark in the list.
    place: usize,
    kind: String,
    name: String,
    value: String,
}

/// All keys that a workflow gives values.
#[derive(Debug, Default)]
pub struct WorkflowKeys(Vec<ConfiguredKey>);

/// The kind and the configuration of a benchmark, in either form.
fn configuration(entry: &mut Value) -> Option<(String, &mut Map<String, Value>)> {
    let map = entry.as_object_mut()?;
    if let Some(kind) = map.get("benchmark").and_then(Value::as_str).map(str::to_owned) {
        return Some((kind, map.get_mut("configuration")?.as_object_mut()?));
    }
    let (kind, inside) = map.iter_mut().next()?;
    Some((kind.clone(), inside.get_mut("configuration")?.as_object_mut()?))
}

fn benchmarks(top: &mut Value) -> impl Iterator<Item = &mut Value> {
    top.get_mut("benchmarks").and_then(Value::as_array_mut).into_iter().flatten()
}

impl WorkflowKeys {
    /// The keys of a file. What is wrong with it is said when it is read as a workflow.
    pub fn of_file(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut top: Value = serde_json::from_str(&text).unwrap_or_default();
        let mut keys = Vec::new();
        for (place, entry) in benchmarks(&mut top).enumerate() {
            let Some((kind, configured)) = configuration(entry) else { continue };
            keys.extend(configured.iter().map(|(name, value)| ConfiguredKey {
                place,
                kind: kind.clone(),
                name: name.clone(),
                value: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            }));
        }
        Self(keys)
    }

    /// Whether `KEY` has a value somewhere, or there is a benchmark of the kind of `KIND.KEY`.
    pub fn has(&self, name: &str) -> bool {
        match name.split_once('.') {
            Some((kind, _)) => self.0.iter().any(|key| key.kind == kind),
            None => self.0.iter().any(|key| key.name == name),
        }
    }

    /// Names of all keys, once each.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.iter().map(|key| key.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The values of a key, each with a name for it in that benchmark alone.
    pub fn values(&self, name: &str) -> Vec<(String, String)> {
        let found = self.0.iter().filter(|key| key.name == name);
        found.map(|key| (format!("{}.{name}", key.place), key.value.clone())).collect()
    }

    /// Refuses benchmarks whose work does not follow from `DIM_1` of each rank.
    pub fn only_patterns(&self) -> Result<()> {
        let others = ["metadata", "exerciser"].into_iter().chain(KINDS);
        match self.0.iter().find(|key| others.clone().any(|kind| kind == key.kind)) {
            Some(key) => bail!("the amount of work of {} follows from other keys; vary them by --sweep", key.kind),
            None => Ok(()),
        }
    }
}

/// The text of a workflow with other values: of `KEY` wherever it has one, of `KIND.KEY` in all benchmarks of that kind, of
/// `NUMBER.KEY` in the benchmark at that place.
pub fn with_values(text: &str, values: &[(String, String)]) -> Result<String> {
    let Ok(mut top) = serde_json::from_str::<Value>(text) else { return Ok(text.to_owned()) };
    for (name, value) in values {
        let (of, key) = name.split_once('.').map_or((None, name.as_str()), |(of, key)| (Some(of), key));
        let mut found = false;
        for (place, entry) in benchmarks(&mut top).enumerate() {
            let Some((kind, configured)) = configuration(entry) else { continue };
            let meant = of.is_none_or(|of| of == kind || of.parse() == Ok(place));
            if meant && (of.is_some() || configured.contains_key(key)) {
                configured.insert(key.to_owned(), Value::String(value.clone()));
                found = true;
            }
        }
        if !found {
            bail!("no benchmark of the workflow has {name}");
        }
    }
    serde_json::to_string(&top).context("write the workflow down with other values")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_where_they_are_meant() {
        let text = r#"{"benchmarks": [{"benchmark": "write", "configuration": {"DIM_1": 8, "MODE": "SYNC"}},
            {"read": {"configuration": {"DIM_1": "8"}}}]}"#;
        let of = |name: &str| with_values(text, &[(name.into(), "4".into())]).unwrap();
        assert_eq!(of("DIM_1").matches(r#""DIM_1":"4""#).count(), 2);
        assert_eq!(of("1.DIM_1").matches(r#""DIM_1":"4""#).count(), 1);
        assert!(of("write.DIM_2").contains(r#""DIM_2":"4""#));
        assert!(with_values(text, &[("DIM_9".into(), "4".into())]).is_err());
        assert!(with_values(text, &[("append.DIM_1".into(), "4".into())]).is_err());
    }
}
