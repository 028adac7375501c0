//! Metadata files as JSON.

use super::atomic_files::{self, AtomicFiles};
use hyperslab_core::{Error, ErrorKind, Result};
use serde_json::Value;
use std::borrow::Cow;
use std::path::Path;

/// The largest metadata file that is read: 64 MiB.
const MAX_BYTES: u64 = 1 << 26;

/// The document in a file; `None` when there is no such file.
pub fn read(path: &Path) -> Result<Option<Value>> {
    let Some(bytes) = atomic_files::read(path, MAX_BYTES)? else { return Ok(None) };
    parse(&bytes).map(Some).map_err(|error| error.target(path.display()))
}

/// The document of a file's content.
pub fn parse(bytes: &[u8]) -> Result<Value> {
    let corrupt = |message: String| Error::new(ErrorKind::Corrupt, "read zarr metadata", message);
    let text = std::str::from_utf8(bytes).map_err(|_| corrupt("not UTF-8".into()))?;
    serde_json::from_str(&quote_special_numbers(text)).map_err(|e| corrupt(format!("not JSON: {e}")))
}

/// Replaces the document in a file.
pub fn write(files: &AtomicFiles, path: &Path, document: &Value) -> Result<()> {
    let text = serde_json::to_vec_pretty(document)
        .map_err(|e| Error::new(ErrorKind::Io, "write zarr metadata", e.to_string()))?;
    files.replace(path, &[&text])
}

/// Python writes bare `NaN` and `Infinity` into JSON, which has neither; as strings they can be read, and strings are
/// what Zarr itself uses for them in fill values.
fn quote_special_numbers(text: &str) -> Cow<'_, str> {
    const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    if !text.contains("NaN") && !text.contains("Infinity") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut quoted = false;
    while let Some(c) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !quoted && rest.starts_with(**word));
        let taken = match (word, c) {
            (Some(word), _) => {
                out.push('"');
                out.push_str(word);
                out.push('"');
                rest = &rest[word.len()..];
                continue;
            }
            (None, '\\') if quoted => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (None, c) => {
                quoted ^= c == '"';
                c.len_utf8()
            }
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Cow::Owned(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bare_special_numbers_become_strings() {
        let text = r#"{"a": NaN, "b\"NaN": [-Infinity, "Infinity \\", Infinity]}"#;
        let value: Value = serde_json::from_str(&quote_special_numbers(text)).unwrap();
        assert_eq!(value, serde_json::json!({"a": "NaN", "b\"NaN": ["-Infinity", "Infinity \\", "Infinity"]}));
        assert_eq!(quote_special_numbers("{}"), "{}");
        let _ = quote_special_numbers("\"NaN\\");
    }
}
