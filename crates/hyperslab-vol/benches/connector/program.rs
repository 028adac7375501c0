//! A program that prints what it measured.

use std::process::{Command, Stdio};

/// Runs a command and returns the number it prints last: what it measured, in seconds or calls' seconds.
pub fn measure(command: &mut Command) -> Result<f64, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.lines().next_back().and_then(|line| line.trim().parse().ok());
    match (output.status.success(), number) {
        (true, Some(number)) => Ok(number),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let last: Vec<&str> = said.lines().rev().take(8).collect();
            Err(format!("{command:?}: {}\n{}", output.status, last.into_iter().rev().collect::<Vec<_>>().join("\n")))
        }
    }
}
