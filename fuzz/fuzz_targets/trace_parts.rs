//! What two ranks of a run that was cut off left of a trace, the second behind a line with a single `=`: put together or refused.
#![no_main]

use hyperslab_layers::trace_parts;
use std::fs;
use std::sync::LazyLock;
use tempfile::TempDir;

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let between = text.windows(3).position(|bytes| bytes == b"\n=\n");
    let (first, second) = match between {
        Some(at) => (&text[..at + 1], &text[at + 3..]),
        None => (text, &text[..0]),
    };
    let trace = FOLDER.path().join("t.jsonl");
    for (rank, part) in [first, second].into_iter().enumerate() {
        fs::write(FOLDER.path().join(format!("t.jsonl.rank-{rank}.part")), part).expect("a write");
    }
    if let Some(parts) = trace_parts(&trace) {
        let _ = parts.merge();
    }
    let _ = fs::remove_file(trace);
});
