//! The calls in the user's own scripts that make datasets, and how they would read.

use hyperslab_core::Dims;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Larger scripts are not searched.
const MOST_BYTES: u64 = 4 << 20;
/// Functions of h5py and netCDF4 that make datasets, and their word for chunks.
const MAKERS: [(&str, &str); 3] =
    [("create_dataset", "chunks"), ("require_dataset", "chunks"), ("createVariable", "chunksizes")];

/// A call that makes a dataset of a name that stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MakingCall {
    /// The script.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// The call with its arguments, as it stands there.
    pub text: String,
    /// The word for chunks.
    pub keyword: &'static str,
}

impl MakingCall {
    /// The only call in the scripts of a command that makes a dataset of this name; nothing if there are several, or none.
    pub fn find(command: &[OsString], folder: &Path, dataset: &str) -> Option<Self> {
        let name = dataset.rsplit('/').next().unwrap_or(dataset);
        let mut found = Vec::new();
        for word in command {
            let path = folder.join(word);
            let python = path.extension().is_some_and(|end| end == "py");
            if !python || fs::metadata(&path).map_or(true, |about| about.len() > MOST_BYTES) {
                continue;
            }
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let file = word.to_string_lossy().into_owned();
            found.extend(calls(&text).into_iter().filter_map(|(line, call, keyword)| {
                names(&call, name).then(|| Self { file: file.clone(), line, text: call, keyword })
            }));
        }
        let first = found.pop()?;
        // Arguments in a variable, and a layout that is asked for, may contradict chunks.
        let clear = arguments(&first.text).iter().all(|(from, to)| {
            let said = &first.text[*from..*to];
            !said.starts_with('*') && !said.starts_with("contiguous")
        });
        (found.is_empty() && clear).then_some(first)
    }

    /// The call with other chunks; `None`: without any.
    pub fn with_chunks(&self, chunk: Option<&Dims>) -> String {
        let arguments = arguments(&self.text);
        let wanted = chunk.map(|chunk| format!("{}={}", self.keyword, tuple(chunk)));
        let wanted = wanted.or_else(|| (self.keyword == "chunksizes").then(|| "contiguous=True".to_owned()));
        let mut text = self.text.clone();
        let known = arguments.iter().find(|(from, to)| {
            let said = &self.text[*from..*to];
            said.strip_prefix(self.keyword).is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        match (known, wanted) {
            (Some((from, to)), Some(wanted)) => text.replace_range(*from..*to, &wanted),
            // The comma before goes with it.
            (Some((from, to)), None) => {
                let before = arguments.iter().map(|(_, end)| *end).filter(|end| end < from).max();
                text.replace_range(before.unwrap_or(*from)..*to, "");
            }
            (None, Some(wanted)) => {
                let end = arguments.last().map_or(text.len() - 1, |(_, end)| *end);
                text.replace_range(end..end, &format!(", {wanted}"));
            }
            (None, None) => {}
        }
        text
    }
}

/// A shape as Python writes it.
pub fn tuple(shape: &[u64]) -> String {
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    if let [one] = extents.as_slice() { format!("({one},)") } else { format!("({})", extents.join(", ")) }
}

/// All calls of makers: line, text from the name to the closing parenthesis, and the word for chunks.
fn calls(text: &str) -> Vec<(usize, String, &'static str)> {
    let mut found = Vec::new();
    for (maker, keyword) in MAKERS {
        for (at, _) in text.match_indices(&format!("{maker}(")) {
            let line_begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
            let before = text[line_begin..at].trim_start();
            if before.starts_with('#') || before.starts_with("def ") {
                continue;
            }
            let Some(length) = closed(&text[at..]) else { continue };
            let line = text[..at].matches('\n').count() + 1;
            found.push((line, text[at..at + length].to_owned(), keyword));
        }
    }
    found
}

/// Whether the first argument is this name, as text.
fn names(call: &str, name: &str) -> bool {
    let Some((from, to)) = arguments(call).into_iter().next() else { return false };
    let first = call[from..to].trim();
    let first = first.strip_prefix("name").map_or(first, |rest| rest.trim_start().trim_start_matches('=').trim());
    let inner = ['"', '\''].iter().find_map(|quote| first.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.is_some_and(|inner| inner.rsplit('/').next() == Some(name))
}

/// Bytes up to and with the parenthesis that closes the first one.
fn closed(text: &str) -> Option<usize> {
    let mut depth = 0;
    walk(text, |at, c| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        (depth == 0 && c == ')').then_some(at + 1)
    })
}

/// From where to where each argument of a call reaches, without comments around it.
fn arguments(call: &str) -> Vec<(usize, usize)> {
    let call = without_comments(call);
    let call = call.as_str();
    let (mut depth, mut begin, mut found) = (0, 0, Vec::new());
    walk(call, |at, c| {
        match c {
            '(' | '[' | '{' => {
                depth += 1;
                if depth == 1 {
                    begin = at + 1;
                }
            }
            ')' | ']' | '}' => {
                depth -= 1;
                if depth == 0 {
                    found.push((begin, at));
                    return Some(());
                }
            }
            ',' if depth == 1 => {
                found.push((begin, at));
                begin = at + 1;
            }
            _ => {}
        }
        None
    });
    let bare = |(from, to): (usize, usize)| {
        let text = &call[from..to];
        let blank = text.len() - text.trim_start().len();
        (!text.trim().is_empty()).then(|| (from + blank, from + text.trim_end().len()))
    };
    found.into_iter().filter_map(bare).collect()
}

/// The same text with blanks for comments, each byte where it was.
fn without_comments(text: &str) -> String {
    let (mut quote, mut comment, mut escaped) = (None, false, false);
    let blank = |c: char| {
        comment = match (quote, comment) {
            (None, true) => c != '\n',
            (None, false) => c == '#',
            (Some(_), _) => false,
        };
        match quote {
            _ if comment => return " ".repeat(c.len_utf8()),
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            _ => {}
        }
        c.to_string()
    };
    text.chars().map(blank).collect()
}

/// Goes over what is neither text nor comment.
fn walk<T>(text: &str, mut each: impl FnMut(usize, char) -> Option<T>) -> Option<T> {
    let (mut quote, mut comment, mut escaped) = (None, false, false);
    for (at, c) in text.char_indices() {
        match (quote, comment) {
            (Some(open), _) => {
                if escaped {
                    escaped = false;
                } else if c == '\\' {
                    escaped = true;
                } else if c == open {
                    quote = None;
                }
            }
            (None, true) => comment = c != '\n',
            (None, false) => match c {
                '"' | '\'' => quote = Some(c),
                '#' => comment = true,
                _ => {
                    if let Some(found) = each(at, c) {
                        return Some(found);
                    }
                }
            },
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn find(script: &str, name: &str) -> Option<MakingCall> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.py"), script).unwrap();
        MakingCall::find(&["python".into(), "s.py".into()], folder.path(), name)
    }

    #[test]
    fn chunks_are_put_in_replaced_and_left_out() {
        let chunk: Dims = [4, 5].into_iter().collect();
        let script = "# create_dataset('x')\nf.create_dataset('x', (8, 9),  # ')'\n    chunks=(1, 9), dtype='f4')\n";
        let call = find(script, "g/x").unwrap();
        assert_eq!(call.line, 2);
        let new = call.with_chunks(Some(&chunk));
        assert!(new.contains("\n    chunks=(4, 5), dtype='f4')"), "{new}");
        assert!(!call.with_chunks(None).contains("chunks") && call.with_chunks(None).ends_with("dtype='f4')"));
        let call = find("f.create_dataset('x', (8,),  # note\n)", "x").unwrap();
        let one: Dims = [4].into_iter().collect();
        assert_eq!(call.with_chunks(Some(&one)), "create_dataset('x', (8,), chunks=(4,),  # note\n)");
        let call = find("v = d.createVariable(\"t\", 'f4', ('y', 'x'))", "t").unwrap();
        assert_eq!(call.with_chunks(Some(&chunk)), "createVariable(\"t\", 'f4', ('y', 'x'), chunksizes=(4, 5))");
        assert!(call.with_chunks(None).ends_with("contiguous=True)"));
    }

    #[test]
    fn what_is_not_certain_is_not_shown() {
        assert_eq!(find("f.create_dataset(name, (8,))", "x"), None);
        assert_eq!(find("f.create_dataset('x', (8,))\nf.create_dataset('x', (9,))", "x"), None);
        assert_eq!(find("f.create_dataset('x', (8,", "x"), None);
        assert_eq!(find("f.create_dataset('x', (8,), **options)", "x"), None);
    }
}
