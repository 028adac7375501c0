//! The data plane against libhdf5 doing the same, both through the `hdf5` format, taking turns on a memory file system.
//! Prints medians, the ratio of libhdf5's time to the plane's, and what the ratio should be.
//!
//! `cargo bench -p hyperslab-formats --bench plane -- [--check] [--quick] [CASE ...]` runs the cases whose names contain a
//! word; with `--check` it exits non-zero when a ratio misses its target. Quick: one turn, a quarter of the data.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "plane/cases.rs"]
mod cases;
#[path = "plane/data.rs"]
mod data;
#[path = "plane/stage.rs"]
mod stage;

use cases::CASES;
use stage::Stage;

/// What a case is asked for.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Turns of each side.
    pub turns: usize,
    /// Divides the amount of data.
    pub less: u64,
}

/// One line of the table.
pub struct Line {
    /// What was done.
    pub what: String,
    /// Seconds of libhdf5, or of what else is compared with.
    pub before: f64,
    /// Seconds of the plane.
    pub after: f64,
    /// The least ratio of the two.
    pub target: f64,
    /// Anything to add.
    pub note: String,
}

impl Line {
    fn missed(&self) -> bool {
        self.before / self.after < self.target
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (flags, words): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.starts_with("--"));
    let quick = flags.iter().any(|flag| *flag == "--quick");
    let settings = if quick { Settings { turns: 1, less: 4 } } else { Settings { turns: 5, less: 1 } };
    let stage = Stage::new();
    println!("{:46} {:>10} {:>10} {:>7} {:>7}", "what", "libhdf5", "plane", "ratio", "aim");
    let mut missed = 0;
    for (name, case) in CASES {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        for line in case(&stage, settings) {
            missed += usize::from(line.missed());
            let mark = if line.missed() { "<" } else { " " };
            let ms = |seconds: f64| {
                if seconds < 1e-3 { format!("{:.2} us", seconds * 1e6) } else { format!("{:.1} ms", seconds * 1e3) }
            };
            println!(
                "{:46} {:>10} {:>10} {:>7.2} {:>6.2}{mark} {}",
                line.what,
                ms(line.before),
                ms(line.after),
                line.before / line.after,
                line.target,
                line.note
            );
        }
    }
    println!("\nmedians of {} turns in {}; ratio: libhdf5's time by the plane's", settings.turns, stage.where_it_is());
    if flags.iter().any(|flag| *flag == "--check") && missed > 0 {
        println!("{missed} below their aim");
        std::process::exit(1);
    }
}
