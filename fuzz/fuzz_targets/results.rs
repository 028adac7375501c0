//! Two results files, apart by a line with a single `=`: read or refused, written as they were read, and shown together as a
//! page and in every other form without a panic. Nothing of a file becomes a script or a control character.
#![no_main]

use hyperslab_report::{Form, Input, Report};
use hyperslab_run::Results;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Reads strictly, as `compare` does: what was read is written as it was read. Says how many figures there are.
fn figures(text: &[u8]) -> usize {
    let Ok(results) = Results::from_json(text) else { return 0 };
    let written = serde_json::to_vec(&results).expect("what was read can be written");
    let again = Results::from_json(&written).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(serde_json::to_vec(&again).expect("again"), written);
    results.cases.iter().map(|case| case.repetitions.len()).sum()
}

fn file(folder: &Path, name: &str, text: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a small file");
    path
}

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let between = text.windows(3).position(|bytes| bytes == b"\n=\n");
    let (a, b) = between.map_or((text, text), |at| (&text[..at + 1], &text[at + 3..]));
    // A bootstrap of very many figures takes long, and is bounded elsewhere.
    if figures(a) + figures(b) > 200 {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let paths = [file(folder.path(), "a.json", a), file(folder.path(), "b.json", b)];
    let Ok(inputs) = paths.iter().map(|path| Input::load(path)).collect::<Result<Vec<_>, _>>() else { return };
    let report = Report::of(inputs);
    let page = Form::Html.of(&report);
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert!(!page.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{page:?}");
    for form in [Form::Markdown, Form::Csv, Form::Svg, Form::Json] {
        let _ = form.of(&report);
    }
});
