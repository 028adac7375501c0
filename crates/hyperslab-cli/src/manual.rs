//! What shells and `man` know of the program, from the same table as its help.

use crate::cli;
use anyhow::{Context, Result};
use clap::Args;
use clap_complete::Shell;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsOptions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Options of `manual`.
#[derive(Debug, Args)]
pub struct ManualOptions {
    /// The folder, such as share/man/man1
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the completions.
pub fn completions(options: &CompletionsOptions) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut cli::command(), "hyperslab", &mut text);
    print!("{}", String::from_utf8_lossy(&text));
    Ok(ExitCode::SUCCESS)
}

/// Writes a page for the program and one for each command.
pub fn pages(options: &ManualOptions) -> Result<ExitCode> {
    fs::create_dir_all(&options.folder).with_context(|| format!("make {}", options.folder.display()))?;
    let mut command = cli::command();
    command.build();
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set() && one.get_name() != "help");
    let all: Vec<clap::Command> = [command.clone()].into_iter().chain(shown.cloned()).collect();
    for one in all {
        let name = one.get_display_name().unwrap_or("hyperslab").to_owned();
        let mut text = Vec::new();
        clap_mangen::Man::new(one).render(&mut text).context("write a man page")?;
        let path = options.folder.join(format!("{name}.1"));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}
