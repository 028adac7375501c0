//! A program that prints what it measured.

use std::process::{Command, Stdio};

/// Runs a command and returns the number it prints last: what it measured, in seconds or calls' seconds.
pub fn measure(command: &mut Command) -> Result<f64, String> {
    measure_all(command).map(|[number]| number)
}

/// The numbers of its last line.
pub fn measure_all<const N: usize>(command: &mut Command) -> Result<[f64; N], String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.lines().next_back().unwrap_or_default().split_whitespace();
    let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
    match (output.status.success(), numbers.try_into()) {
        (true, Ok(numbers)) => Ok(numbers),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let last: Vec<&str> = said.lines().rev().take(8).collect();
            Err(format!("{command:?}: {}\n{}", output.status, last.into_iter().rev().collect::<Vec<_>>().join("\n")))
        }
    }
}
