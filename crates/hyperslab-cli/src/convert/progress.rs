//! How far a conversion has come, on standard error.

use hyperslab_core::units::display_size;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a terminal is told.
const OFTEN: Duration = Duration::from_millis(100);
/// How often anything else is told.
const SELDOM: Duration = Duration::from_secs(10);

/// Counts bytes that were copied, and tells.
#[derive(Default)]
pub struct Copied {
    done: AtomicU64,
    /// Bytes brought to scratch arrays, which are work as well.
    staged: AtomicU64,
    total: AtomicU64,
}

impl Copied {
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_max(bytes, Relaxed);
    }

    /// Told by every rank, counted once.
    pub fn expect_staged(&self, bytes: u64, rank: usize) {
        if rank == 0 {
            self.total.fetch_add(bytes, Relaxed);
        }
    }

    pub fn add_staged(&self, bytes: u64) {
        self.staged.fetch_add(bytes, Relaxed);
    }

    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Relaxed);
    }

    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// How far all work has come.
    fn come(&self) -> u64 {
        self.done().saturating_add(self.staged.load(Relaxed))
    }
}

/// Tells until it is dropped.
pub struct Watch {
    over: Arc<AtomicBool>,
    teller: Option<JoinHandle<()>>,
}

impl Watch {
    pub fn start(copied: &Arc<Copied>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (copied, ends) = (copied.clone(), over.clone());
        let tell = move || if std::io::stderr().is_terminal() { bar(&copied, &ends) } else { lines(&copied, &ends) };
        Self { over, teller: Some(std::thread::spawn(tell)) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        if let Some(teller) = self.teller.take() {
            let _ = teller.join();
        }
    }
}

fn bar(copied: &Copied, over: &AtomicBool) {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {binary_bytes}/{binary_total_bytes} {eta}") {
        bar.set_style(style);
    }
    while !over.load(Relaxed) {
        bar.set_length(copied.total.load(Relaxed));
        bar.set_position(copied.come());
        std::thread::sleep(OFTEN);
    }
    bar.finish_and_clear();
}

fn lines(copied: &Copied, over: &AtomicBool) {
    let mut told = Instant::now();
    while !over.load(Relaxed) {
        std::thread::sleep(OFTEN);
        if told.elapsed() >= SELDOM {
            told = Instant::now();
            eprintln!("{} of {} ...", display_size(copied.come()), display_size(copied.total.load(Relaxed)));
        }
    }
}
