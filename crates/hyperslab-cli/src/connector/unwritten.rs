//! Data that a program believed to be written: said, and told by the exit code.

use super::{Ended, Statistics, say};
use std::fmt::Write;
use std::process::ExitCode;

/// `EX_IOERR` of sysexits.h.
const NOT_WRITTEN: u8 = 74;

/// The exit code of a command that ended, after saying which data it believed to be written and is not. A code of its own wins.
pub fn exit_code(ended: Ended, statistics: &Statistics) -> ExitCode {
    let Some(text) = in_words(statistics) else { return ExitCode::from(ended.code()) };
    say(&text);
    ExitCode::from(if ended.code() == 0 { NOT_WRITTEN } else { ended.code() })
}

/// A line for each dataset.
fn in_words(statistics: &Statistics) -> Option<String> {
    let mut text = String::new();
    for lost in statistics.processes.iter().flat_map(|process| &process.unwritten) {
        let dataset = if lost.dataset.is_empty() { String::new() } else { format!(", {}", lost.dataset) };
        let _ = writeln!(text, "hyperslab: DATA NOT WRITTEN: {}{dataset}, {}", lost.file, lost.why);
        if lost.in_log {
            let _ = writeln!(text, "  what is in its log can be brought back: hyperslab recover");
        }
    }
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::super::statistics::{Process, Unwritten};
    use super::*;

    #[test]
    fn every_dataset_has_a_line() {
        assert_eq!(in_words(&Statistics::default()), None);
        let lost = |dataset: &str, in_log| Unwritten {
            file: "/d/a.h5".into(),
            dataset: dataset.into(),
            why: "write x: No space left on device (os error 28)".into(),
            in_log,
        };
        let process = Process { unwritten: vec![lost("x", false), lost("", true)], ..Process::default() };
        let text = in_words(&Statistics { processes: vec![process], ..Statistics::default() });
        assert_eq!(
            text.as_deref(),
            Some(
                "hyperslab: DATA NOT WRITTEN: /d/a.h5, x, write x: No space left on device (os error 28)\n\
                 hyperslab: DATA NOT WRITTEN: /d/a.h5, write x: No space left on device (os error 28)\n  \
                 what is in its log can be brought back: hyperslab recover\n"
            )
        );
    }
}
