//! What the user sees while a case runs: a bar on a terminal, a line otherwise. All on standard error.

use super::plan::PlannedCase;
use hyperslab_core::units::display_size;
use hyperslab_run::{CaseResult, Progress, Status};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Columns of the bar, the percentage and the time left.
const BESIDE: usize = 42;

/// Text of at most so many characters.
fn bounded(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most.max(1) - 1).chain(['…']).collect()
    }
}

/// How long a case still takes, from how long it took so far. Its counter begins anew with every repetition.
struct TimeLeft {
    begun: Instant,
    bytes: u64,
    runs: u64,
    finished: u64,
    last: u64,
}

impl TimeLeft {
    fn new(bytes: u64, runs: u64) -> Self {
        Self { begun: Instant::now(), bytes, runs, finished: 0, last: 0 }
    }

    /// Bytes of all runs up to now.
    fn done(&mut self, counted: u64) -> u64 {
        if counted < self.last {
            self.finished = (self.finished + 1).min(self.runs.saturating_sub(1));
        }
        self.last = counted;
        self.finished * self.bytes + counted.min(self.bytes)
    }

    /// In words; nothing before a twentieth is done, since it would be no better than a guess.
    fn words(&self, done: u64, took: Duration) -> String {
        let part = done as f64 / (self.bytes.saturating_mul(self.runs)).max(1) as f64;
        if !(0.05..1.0).contains(&part) {
            return String::new();
        }
        let seconds = took.as_secs_f64() * (1.0 - part) / part;
        match seconds {
            s if s < 1.0 => "less than 1 s left".into(),
            s if s < 100.0 => format!("about {s:.0} s left"),
            s if s < 5400.0 => format!("about {:.0} min left", s / 60.0),
            s => format!("about {:.0} h left", s / 3600.0),
        }
    }
}

/// A running case on the screen.
pub struct Screen {
    title: String,
    bar: ProgressBar,
    over: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl Screen {
    /// Announces the case and follows its progress.
    pub fn start(case: &PlannedCase, cases: usize, progress: &Arc<Progress>) -> Self {
        let times = if case.repeat > 1 { format!(", {} times", case.repeat) } else { String::new() };
        let title = format!(
            "[{}/{cases}] {} {} on {} ({}, {} ranks{times})",
            case.number,
            case.benchmark,
            display_size(case.bytes),
            case.stack,
            case.cache.name(),
            case.ranks,
        );
        let over = Arc::new(AtomicBool::new(false));
        if !std::io::stderr().is_terminal() {
            eprintln!("{title} ...");
            return Self { title, bar: ProgressBar::hidden(), over, watcher: None };
        }
        let runs = u64::from(case.repeat) + u64::from(case.warm_up);
        let bar = ProgressBar::new(case.bytes.saturating_mul(runs));
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:14} {percent:>3}% {prefix}") {
            bar.set_style(style);
        }
        let room = terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(columns, _)| usize::from(columns.0));
        bar.set_message(bounded(&title, room.saturating_sub(BESIDE)));
        let watcher = {
            let (bar, over, progress, bytes) = (bar.clone(), over.clone(), progress.clone(), case.bytes);
            std::thread::spawn(move || {
                let mut left = TimeLeft::new(bytes, runs);
                while !over.load(Relaxed) {
                    let done = left.done(progress.bytes());
                    bar.set_position(done);
                    bar.set_prefix(left.words(done, left.begun.elapsed()));
                    std::thread::sleep(Duration::from_millis(100));
                }
            })
        };
        Self { title, bar, over, watcher: Some(watcher) }
    }

    /// Replaces the bar by how it ended.
    pub fn finish(self, result: &CaseResult) {
        self.over.store(true, Relaxed);
        if let Some(watcher) = self.watcher {
            let _ = watcher.join();
        }
        self.bar.finish_and_clear();
        let title = self.title;
        match result.status {
            Status::Ok => {
                let rate = display_size(result.observed_rate.median as u64);
                eprintln!("{title}: {rate}/s in {:.3} s", result.observed.median);
            }
            _ => {
                let why = result.error.as_deref().unwrap_or("no reason known");
                eprintln!(
                    "{title}: {}\n  {}",
                    format!("{:?}", result.status).to_uppercase(),
                    why.replace('\n', "\n  ")
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_counts_all_runs() {
        let mut left = TimeLeft::new(100, 4);
        assert_eq!(left.done(10), 10);
        assert_eq!(left.words(10, Duration::from_secs(1)), "", "too early to tell");
        assert_eq!(left.done(100), 100);
        assert_eq!(left.words(100, Duration::from_secs(10)), "about 30 s left");
        assert_eq!(left.done(5), 105, "a repetition began");
        assert_eq!((left.done(100), left.done(0), left.done(100), left.done(1)), (200, 200, 300, 301));
        assert_eq!((left.done(0), left.done(100)), (300, 400), "never beyond the end");
        assert_eq!(left.words(400, Duration::from_secs(10)), "");
        assert_eq!(bounded("abcdef", 4), "abc…");
    }
}
