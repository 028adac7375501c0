//! What layers cost and what they gain, each figure a ratio of times measured in turns in one run.
//!
//! `cargo bench -p hyperslab-layers --bench layers -- [--check] [NAME...]`: NAMEs choose parts (overlap, fast, idle, epochs);
//! with `--check` it exits non-zero if a target is missed.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod epochs;
mod fast;
mod idle;
mod overlap;
mod stacks;

/// A part of the benchmark: prints what it measured, returns the targets that were missed.
type Part = fn() -> Vec<String>;

const PARTS: &[(&str, Part)] =
    &[("overlap", overlap::run), ("fast", fast::run), ("idle", idle::run), ("epochs", epochs::run)];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let chosen: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let parts = PARTS.iter().filter(|(name, _)| chosen.is_empty() || chosen.iter().any(|chosen| chosen == name));
    let missed: Vec<String> = parts.flat_map(|(_, run)| run()).collect();
    missed.iter().for_each(|what| println!("missed: {what}"));
    if check && !missed.is_empty() {
        std::process::exit(1);
    }
}
