//! Two results files, apart by a line with a single `=`: read or refused, written as they were read, and compared without a
//! panic, in words and as JSON. No control character of a file reaches the terminal.
#![no_main]

use hyperslab_run::Results;
use std::path::PathBuf;

// The program is no library: its modules are built into this target, with what they need of its command line.
#[path = "../../crates/hyperslab-cli/src"]
#[allow(dead_code)]
mod program {
    pub mod compare;
    pub mod table;
    pub mod terminal;
}
use program::{compare, table, terminal};

/// The part of the command line that comparisons see.
#[allow(dead_code)]
mod cli {
    use std::path::PathBuf;

    pub const EXIT_FAILED: u8 = 1;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Metric {
        Observed,
        Raw,
    }

    impl Metric {
        pub fn name(self) -> &'static str {
            ["observed", "raw"][self as usize]
        }
    }

    #[derive(Debug)]
    pub struct CompareOptions {
        pub a: PathBuf,
        pub b: PathBuf,
        pub threshold: f64,
        pub metric: Metric,
        pub json: bool,
    }
}

use cli::{CompareOptions, Metric};

fn read(text: &[u8]) -> Option<Results> {
    let results = Results::from_json(text).ok()?;
    let written = serde_json::to_vec(&results).expect("what was read can be written");
    let again = Results::from_json(&written).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(serde_json::to_vec(&again).expect("again"), written);
    Some(again)
}

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let between = text.windows(3).position(|bytes| bytes == b"\n=\n");
    let (a, b) = between.map_or((text, text), |at| (&text[..at + 1], &text[at + 3..]));
    let (Some(a), Some(b)) = (read(a), read(b)) else { return };
    // A bootstrap of very many figures takes long, and is bounded elsewhere.
    let figures = |results: &Results| results.cases.iter().map(|case| case.repetitions.len()).sum::<usize>();
    if figures(&a) + figures(&b) > 200 {
        return;
    }
    for (metric, json) in [(Metric::Observed, false), (Metric::Raw, true)] {
        let (first, second) = (PathBuf::from("a"), PathBuf::from("b"));
        let options = CompareOptions { a: first, b: second, threshold: 5.0, metric, json };
        let text = compare::report(&compare::compare(&a, &b, &options), &options);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
});
