//! rustfmt and clippy, which a minimal Rust lacks.

use std::process::Command;

use super::{Environment, say};
use crate::shell;
use crate::workspace::Workspace;

/// Adds rustfmt and clippy with rustup where they are missing; without them those checks are skipped, and said to be.
pub fn provide(workspace: &Workspace, environment: &mut Environment) {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if available(workspace, subcommand) {
            continue;
        }
        if shell::find_program("rustup").is_some() {
            say("install", format!("{component} with rustup, for this Rust"));
            let log = workspace.state().join("log/rustup.txt");
            let mut command = Command::new("rustup");
            command.args(["component", "add", component]).current_dir(workspace.root());
            if let Err(error) = shell::run_quietly(&mut command, &log, "go on without it") {
                say("note", format!("{error:#}"));
            }
        }
        if !available(workspace, subcommand) {
            environment.missing.push(format!("{component}: install the component {component} of your Rust"));
        }
    }
}

/// Whether `cargo SUBCOMMAND` exists.
pub fn available(workspace: &Workspace, subcommand: &str) -> bool {
    shell::output(&mut workspace.cargo(&[subcommand, "--version"]), "").is_ok()
}
