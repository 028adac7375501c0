//! Where the time of the tests goes: each test program with its seconds, the longest first.

use std::time::Duration;

/// As many are listed.
const LISTED: usize = 12;
/// Shorter ones are not worth a line.
const LEAST: Duration = Duration::from_secs(2);

/// The test programs that ran, in order.
#[derive(Default)]
pub struct Durations {
    done: Vec<(String, Duration)>,
    /// The program that runs now.
    running: Option<String>,
}

impl Durations {
    /// A program that took so long.
    pub fn add(&mut self, name: String, time: Duration) {
        self.done.push((name, time));
    }

    /// Takes in one line of `cargo test`, of its standard output or its standard error.
    pub fn see(&mut self, line: &str) {
        let line = line.trim_start();
        if let Some(name) = line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests ")) {
            self.running = Some(shortened(name, line.starts_with("Doc-tests ")));
        } else if let Some(time) = finished(line) {
            let name = self.running.take().unwrap_or_else(|| "another program".to_owned());
            self.done.push((name, time));
        } else if let Some(time) = built(line) {
            self.done.push(("building".to_owned(), time));
        }
    }

    /// Lines for the summary; none if all were quick.
    pub fn longest(&self) -> Vec<String> {
        let mut sorted: Vec<&(String, Duration)> = self.done.iter().filter(|(_, time)| *time >= LEAST).collect();
        sorted.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let line = |(name, time): &&(String, Duration)| format!("{:>7.1} s  {name}", time.as_secs_f64());
        let mut lines: Vec<String> = sorted.iter().take(LISTED).map(line).collect();
        let rest = self.done.len() - lines.len();
        if rest > 0 && !lines.is_empty() {
            let listed: Duration = sorted.iter().take(LISTED).map(|(_, time)| *time).sum();
            let all: Duration = self.done.iter().map(|(_, time)| *time).sum();
            lines.push(format!("{:>7.1} s  {rest} others", (all - listed).as_secs_f64()));
        }
        lines
    }
}

/// `hyperslab-layers log` of `tests/log.rs (target/debug/deps/log-1f3b)`: cargo does not say the package, the folder often does.
fn shortened(name: &str, documentation: bool) -> String {
    if documentation {
        return format!("{name} (documentation)");
    }
    let source = name.trim_start_matches("unittests ").split(" (").next().unwrap_or(name);
    let program = name.rsplit('/').next().and_then(|file| file.rsplit_once('-')).map_or("", |(stem, _)| stem);
    match source {
        "src/lib.rs" | "src/main.rs" => format!("{program} (unit tests)"),
        _ => program.to_owned(),
    }
}

/// The time in `test result: ok. ...; finished in 1.23s`.
fn finished(line: &str) -> Option<Duration> {
    let time = line.strip_prefix("test result: ")?.rsplit_once("finished in ")?.1;
    time.trim_end_matches('s').parse().ok().map(Duration::from_secs_f64)
}

/// The time in ``Finished `test` profile [optimized] target(s) in 3m 04s``.
fn built(line: &str) -> Option<Duration> {
    let time = line.strip_prefix("Finished ")?.rsplit_once(" in ")?.1;
    let (minutes, seconds) = time.split_once("m ").unwrap_or(("0", time));
    let seconds: f64 = seconds.trim_end_matches('s').parse().ok()?;
    Some(Duration::from_secs_f64(minutes.parse::<f64>().ok()? * 60.0 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_timed() {
        assert_eq!(built("Finished `test` profile [optimized] target(s) in 3m 04s"), Some(Duration::from_secs(184)));
        assert_eq!(built("Finished `dev` profile in 0.50s"), Some(Duration::from_millis(500)));
        assert_eq!(built("Finished"), None);
    }

    #[test]
    fn the_longest_come_first() {
        let mut durations = Durations::default();
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/hyperslab_core-0a1b)",
            "test a ... ok",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.50s",
            "     Running tests/random_ranks.rs (target/debug/deps/random_ranks-1c)",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 91.25s",
            "   Doc-tests hyperslab_core",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
        ] {
            durations.see(line);
        }
        assert_eq!(
            durations.longest(),
            ["   91.2 s  random_ranks", "    3.5 s  hyperslab_core (unit tests)", "    0.1 s  1 others"]
        );
    }

    #[test]
    fn nothing_is_said_of_quick_tests() {
        let mut durations = Durations::default();
        durations.see("test result: ok. 1 passed; 0 failed; finished in 0.50s");
        assert!(durations.longest().is_empty());
    }
}
