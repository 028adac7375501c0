//! Unmodified programs plain and under the connector, taking turns. Prints medians, how much faster the connector is, and how
//! much it should be.
//!
//! `cargo xtask bench connector -- [--check] [--quick] [CASE ...]` runs the cases whose names contain a word; with `--check` it
//! exits non-zero when an aim is missed. Quick: one turn, a quarter of the data.
#![allow(clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[path = "connector/build.rs"]
mod build;
#[path = "connector/cases.rs"]
mod cases;
#[path = "connector/line.rs"]
mod line;
#[path = "connector/program.rs"]
mod program;
#[allow(dead_code, reason = "the benchmark of ordinary programs uses more of it")]
#[path = "connector/stage.rs"]
mod stage;

use cases::CASES;
use stage::Stage;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let (flags, words): (Vec<_>, Vec<_>) = arguments.iter().partition(|argument| argument.starts_with("--"));
    if let Some(word) = words.iter().find(|word| !CASES.iter().any(|(name, _)| name.contains(word.as_str()))) {
        let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
        eprintln!("no case has {word:?} in its name; there are {}", names.join(", "));
        std::process::exit(2);
    }
    let quick = flags.iter().any(|flag| *flag == "--quick");
    let stage = match Stage::new(quick) {
        Ok(stage) => stage,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    println!("{}", line::HEAD);
    let (mut missed, mut failed) = (0, 0);
    for (name, case) in CASES {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            continue;
        }
        match case(&stage) {
            Ok(lines) => {
                for line in lines {
                    missed += usize::from(line.missed());
                    println!("{line}");
                }
            }
            Err(why) if why.starts_with("skipped") => println!("{name}: {why}"),
            Err(why) => {
                failed += 1;
                println!("{name}: FAILED: {why}");
            }
        }
    }
    println!("\n{}", stage.words());
    if missed > 0 {
        println!("< {missed} below their aim");
    }
    if failed > 0 || (flags.iter().any(|flag| *flag == "--check") && missed > 0) {
        std::process::exit(1);
    }
}
