//! Counts what the test programs report, line by line.

use std::fmt;

/// At most so many reasons are given in the summary, which is to fit on one screen.
const GIVEN: usize = 12;
/// At most so many lines of what failed tests printed are given again in the summary.
const TOLD: usize = 60;

/// What was seen so far.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Why tests were skipped, how many for that reason, and the first of them.
    reasons: Vec<(String, usize, String)>,
    /// What the failed tests printed: programs list it between two lines `failures:`.
    failures: Vec<String>,
    in_failures: bool,
}

impl Tally {
    /// Takes in one line of output.
    pub fn see(&mut self, line: &str) {
        if line == "failures:" {
            self.in_failures = !self.in_failures;
        } else if self.in_failures && !line.trim().is_empty() {
            self.failures.push(line.to_owned());
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.in_failures = false;
            self.passed += count(counts, " passed");
            self.failed += count(counts, " failed");
            self.ignored += count(counts, " ignored");
        } else if let Some((name, verdict)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "))
            && verdict.starts_with("ignored")
        {
            // The usual harness writes `ignored, reason`, libtest-mimic `ignored (reason)`.
            let reason =
                verdict.trim_start_matches("ignored").trim_start_matches([',', ' ', '(']).trim_end_matches(')');
            self.skip(name.trim(), if reason.is_empty() { "no reason given" } else { reason });
        }
    }

    /// Counts a program that ended as it must not, whatever it printed.
    pub fn fail(&mut self, what: String) {
        self.failures.push(what);
    }

    /// Adds what another has counted.
    pub fn take_in(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
        other.reasons.into_iter().for_each(|(reason, count, name)| self.skipped_too(&name, &reason, count));
    }

    fn skip(&mut self, name: &str, reason: &str) {
        self.skipped_too(name, reason, 1);
    }

    fn skipped_too(&mut self, name: &str, reason: &str, more: usize) {
        match self.reasons.iter_mut().find(|(known, ..)| known == reason) {
            Some((_, count, _)) => *count += more,
            None => self.reasons.push((reason.to_owned(), more, name.to_owned())),
        }
    }

    /// What failed tests printed, cut where it is long: a log of which only the end was kept still says what failed.
    pub fn failures(&self) -> &[String] {
        &self.failures[..self.failures.len().min(TOLD)]
    }

    /// Why tests were not run, with how many and an example; the first reasons, and how many more.
    pub fn skipped(&self) -> Vec<String> {
        let line = |(reason, count, name): &(String, usize, String)| match count {
            1 => format!("{name}: {reason}"),
            _ => format!("{name} and {} more: {reason}", count - 1),
        };
        let mut lines: Vec<String> = self.reasons.iter().take(GIVEN).map(line).collect();
        if self.reasons.len() > GIVEN {
            lines.push(format!("{} more reasons: look for `ignored` above", self.reasons.len() - GIVEN));
        }
        lines
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} ignored", self.passed, self.failed, self.ignored)
    }
}

/// 12 of `ok. 12 passed; 0 failed; 1 ignored`.
fn count(text: &str, label: &str) -> usize {
    let before = text.split(label).next().filter(|before| before.len() < text.len());
    before.and_then(|before| before.rsplit([' ', ';']).next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_programs_add_up() {
        let mut tally = Tally::default();
        for line in [
            "running 3 tests",
            "test a::b ... ok",
            "test c ... ignored, needs h5dump",
            "test e ... ignored, needs h5dump",
            "test [posix] d ... ignored",
            "test null::f     ... ignored (stores nothing)",
            "test result: ok. 12 passed; 0 failed; 4 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "something else: 7 passed",
        ] {
            tally.see(line);
        }
        assert_eq!(tally.to_string(), "15 passed, 1 failed, 4 ignored");
        assert_eq!(
            tally.skipped(),
            ["c and 1 more: needs h5dump", "[posix] d: no reason given", "null::f: stores nothing"]
        );
    }

    #[test]
    fn what_failed_is_kept() {
        let mut tally = Tally::default();
        for line in [
            "test a ... FAILED",
            "",
            "failures:",
            "",
            "---- a stdout ----",
            "left: 1, right: 2",
            "failures:",
            "    a",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test b ... ok",
        ] {
            tally.see(line);
        }
        assert_eq!(tally.failures(), ["---- a stdout ----", "left: 1, right: 2"]);
    }

    #[test]
    fn a_long_list_is_cut() {
        let mut tally = Tally::default();
        for number in 0..GIVEN + 5 {
            tally.see(&format!("test t{number} ... ignored, reason {number}"));
        }
        assert_eq!(tally.skipped().len(), GIVEN + 1);
        assert!(tally.skipped()[GIVEN].starts_with("5 more"));
    }
}
