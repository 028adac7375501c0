//! Names of arrays that had none when they were made.

use hyperslab_core::{Error, Result};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Names that arrays got after their making was recorded, by the names they have in the recording. The trace has the later ones.
#[derive(Debug, Clone, Default)]
pub struct LateNames(Arc<Mutex<BTreeMap<String, String>>>);

impl LateNames {
    /// The array that is recorded as `recorded` is called `name` now. The first name stays.
    pub fn name(&self, recorded: &str, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.entry(recorded.to_owned()).or_insert_with(|| name.to_owned());
    }

    /// Whole lines of steps with the later names.
    pub(super) fn renamed<'a>(&self, lines: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some((first, _)), Some((last, _))) = (names.first_key_value(), names.last_key_value()) else {
            return Ok(Cow::Borrowed(lines));
        };
        // What all recorded names begin with: they are sorted.
        let shared = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count().max(1);
        let begin = &first.as_bytes()[..shared];
        let mentions = |line: &[u8]| line.windows(begin.len()).any(|part| part == begin);
        if !mentions(lines) {
            return Ok(Cow::Borrowed(lines));
        }
        let mut out = Vec::with_capacity(lines.len());
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            if !mentions(line) {
                out.extend_from_slice(line);
                continue;
            }
            let unreadable = |error: serde_json::Error| Error::invalid("trace", error.to_string());
            let mut step: Value = serde_json::from_slice(line).map_err(unreadable)?;
            // An attribute's `name` is its own, and its `object` the array's.
            let key = if step["do"] == "attribute" { "object" } else { "name" };
            if let Some(name) = step[key].as_str().and_then(|recorded| names.get(recorded)) {
                step[key] = Value::String(name.clone());
            }
            serde_json::to_writer(&mut out, &step).map_err(unreadable)?;
            out.push(b'\n');
        }
        Ok(Cow::Owned(out))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn steps_about_the_array_get_its_name_and_nothing_else_does() {
        let names = LateNames::default();
        names.name("unnamed-1", "x");
        names.name("unnamed-1", "later");
        let lines = concat!(
            "{\"do\":\"create\",\"slot\":0,\"file\":0,\"array\":0,\"name\":\"unnamed-1\"}\n",
            "{\"do\":\"create\",\"slot\":1,\"file\":0,\"array\":0,\"name\":\"unnamed-12\"}\n",
            "{\"do\":\"attribute\",\"file\":0,\"object\":\"unnamed-1\",\"name\":\"unnamed-1\",\"value\":{}}\n",
            "{\"do\":\"barrier\"}\n"
        );
        let renamed = names.renamed(lines.as_bytes()).unwrap();
        let text = std::str::from_utf8(&renamed).unwrap();
        assert!(text.contains("\"name\":\"x\"") && text.contains("\"name\":\"unnamed-12\""), "{text}");
        assert!(text.contains("\"object\":\"x\"") && text.contains("\"name\":\"unnamed-1\""), "{text}");
        assert_eq!(text.lines().count(), 4);
        assert!(matches!(LateNames::default().renamed(lines.as_bytes()).unwrap(), Cow::Borrowed(_)));
    }
}
