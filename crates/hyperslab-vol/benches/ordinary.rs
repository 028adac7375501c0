//! Ordinary programs with HDF5, plain and under the connector alternately: nothing should get slower, and files and results
//! must be the same.
//!
//! `cargo xtask bench ordinary -- [--check] [--quick] [PROGRAM ...]` runs the programs whose names contain a word. It exits
//! non-zero if contents differ; with `--check` also if a program is slower than [`SLOWEST`], or the median below [`MEDIAN`].
#![allow(clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[allow(dead_code, reason = "the connector's benchmark compiles C programs too")]
#[path = "connector/build.rs"]
mod build;
#[path = "ordinary/comparison.rs"]
mod comparison;
#[allow(dead_code, reason = "the connector's benchmark uses more of it")]
#[path = "connector/stage.rs"]
mod stage;

use comparison::{Comparison, compare, names};
use stage::Stage;

/// Smallest ratio of the plain program's time to that under the connector.
const SLOWEST: f64 = 0.95;
/// Smallest median of the ratios.
const MEDIAN: f64 = 1.5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (flags, words): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|one| *one == flag);
    let rounds = if has("--quick") { 2 } else { 7 };
    let names = Stage::new(false).and_then(|stage| Ok((names(&stage)?, stage)));
    let (names, stage) = match names {
        Ok(found) => found,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    if let Some(word) = words.iter().find(|word| !names.iter().any(|name| name.contains(word.as_str()))) {
        eprintln!("no program has {word:?} in its name; there are {}", names.join(", "));
        std::process::exit(2);
    }
    println!(
        "{:22} {:>9} {:>10} {:>6} {:>7} {:>5}",
        "best of the rounds", "plain", "connector", "ratio", "median", "CPU"
    );
    let (mut ratios, mut slower, mut failed) = (Vec::new(), 0, 0);
    for name in names.iter().filter(|name| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))) {
        match compare(&stage, name, rounds) {
            Ok(Comparison::Skipped(why)) => println!("{name:22} skipped: {why}"),
            Ok(Comparison::Measured(measured)) => {
                let ratio = measured.ratio();
                slower += usize::from(ratio < SLOWEST);
                failed += usize::from(measured.differs.is_some());
                println!("{name:22} {measured}{}", if ratio < SLOWEST { " <" } else { "" });
                ratios.push(ratio);
            }
            Err(why) => {
                failed += 1;
                println!("{name:22} FAILED: {why}");
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
    println!(
        "\n{} programs, {slower} slower than {SLOWEST}, median {median:.2} (aim {MEDIAN}); {rounds} rounds in {}; \
         ratio: best time of the plain program by that under the connector; median: of the medians; CPU: of the processors' time",
        ratios.len(),
        stage.folder().display()
    );
    if failed > 0 || (has("--check") && (slower > 0 || median < MEDIAN)) {
        std::process::exit(1);
    }
}
