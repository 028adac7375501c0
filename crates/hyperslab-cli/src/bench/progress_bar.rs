//! What the user sees while a case runs: a bar on a terminal, a line otherwise. All on standard error.

use super::plan::PlannedCase;
use hyperslab_core::units::display_size;
use hyperslab_run::{CaseResult, Progress, Status};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

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
        let bar = ProgressBar::new(case.bytes);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {binary_bytes}/{binary_total_bytes}") {
            bar.set_style(style);
        }
        bar.set_message(title.clone());
        let watcher = {
            let (bar, over, progress) = (bar.clone(), over.clone(), progress.clone());
            std::thread::spawn(move || {
                while !over.load(Relaxed) {
                    bar.set_position(progress.bytes());
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
