//! Packages of the system, where root and apt can give them.

use std::process::Command;

use anyhow::Result;

use super::say;
use crate::shell;
use crate::workspace::Workspace;

/// Whether packages can be installed: apt is there and this is root.
pub fn usable() -> bool {
    shell::find_program("apt-get").is_some() && is_root()
}

fn is_root() -> bool {
    shell::output(Command::new("id").arg("-u"), "").is_ok_and(|text| text.trim() == "0")
}

/// Installs `packages`, saying so; the lists of packages are fetched anew only when the first attempt fails.
pub fn install(workspace: &Workspace, packages: &[&str], why: &str) -> Result<()> {
    say("install", format!("{} with apt-get, as root: {why}", packages.join(" ")));
    let log = workspace.state().join("log/apt-get.txt");
    let hint = format!("{}\nor forbid it with --no-apt", by_hand(packages));
    if shell::run_quietly(&mut install_command(packages), &log, &hint).is_ok() {
        return Ok(());
    }
    shell::fetch_quietly(&mut apt_get(&["update"]), &log, &hint)?;
    shell::fetch_quietly(&mut install_command(packages), &log, &hint)
}

/// What a person with the rights can type.
pub fn by_hand(packages: &[&str]) -> String {
    format!("on Debian or Ubuntu: sudo apt-get install {}", packages.join(" "))
}

fn install_command(packages: &[&str]) -> Command {
    let mut command = apt_get(&["install", "--yes", "--no-install-recommends"]);
    command.args(packages);
    command
}

fn apt_get(words: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    command
}
