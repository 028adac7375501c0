//! `hyperslab demo`: shows on this machine what a layer does, with pictures.

mod play;
mod probe;
mod steps;
mod svg;
mod terminal;
mod timeline;

use crate::cli::{EXIT_FAILED, EXIT_INTERRUPTED};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hyperslab_core::units::{display_size, parse_duration, parse_size};
use hyperslab_core::{ErrorKind, Stack};
use hyperslab_run::{Progress, memory_available, space_available};
use play::Side;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use steps::Shape;

/// What to show.
#[derive(Debug, Subcommand)]
pub enum Demo {
    /// The same time steps on slow storage, once waiting for each write and once with writes in the background
    Async(AsyncOptions),
}

/// Options of `demo async`.
#[derive(Debug, Args)]
pub struct AsyncOptions {
    /// Time steps: each computes, then writes
    #[arg(long, value_name = "N", default_value = "6", value_parser = clap::value_parser!(u64).range(1..=1000))]
    steps: u64,
    /// How long a time step computes
    #[arg(long, value_name = "TIME", default_value = "300ms", value_parser = parse_duration)]
    compute: Duration,
    /// What a time step writes
    #[arg(long, value_name = "SIZE", default_value = "32MiB", value_parser = parse_size)]
    size: u64,
    /// The storage to emulate
    #[arg(long, value_name = "LAYER", default_value = "slow(200MB/s,2ms)")]
    storage: String,
    /// The stack that waits [default: the storage above posix]
    #[arg(long, value_name = "STACK")]
    stack_sync: Option<Stack>,
    /// The stack whose outermost layer works in the background [default: async above the storage above posix]
    #[arg(long, value_name = "STACK")]
    stack_async: Option<Stack>,
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value = "hyperslab-demo-async.svg")]
    svg: PathBuf,
    /// Replace the file even if it is no picture of this command
    #[arg(long)]
    overwrite: bool,
}

/// Shows what was asked for.
pub fn run(demo: &Demo) -> Result<ExitCode> {
    let Demo::Async(options) = demo;
    let below: Stack = format!("{}/posix", options.storage).parse()?;
    let stack_sync = options.stack_sync.clone().unwrap_or_else(|| below.clone());
    let stack_async = options.stack_async.clone().map_or_else(|| format!("async/{below}").parse(), Ok)?;
    let sides = [Side::new("synchronous", stack_sync, 0)?, Side::new("asynchronous", stack_async, 1)?];
    let shape = Shape { steps: options.steps, compute: options.compute, bytes: options.size };
    let workload = steps::workload(&shape)?;
    svg::check_place(&options.svg, options.overwrite)?;
    let folder = tempfile::Builder::new().prefix("hyperslab-demo-").tempdir().context("create a temporary folder")?;
    check_room(&shape, space_available(folder.path())?)?;

    let progress = Arc::new(Progress::default());
    hyperslab_bench::stop_on_ctrl_c(&progress)?;
    let mut lines = Vec::new();
    for side in &sides {
        eprintln!("{}: {shape} on {} ...", side.name, side.stack);
        match side.play(&workload, folder.path(), &progress) {
            Ok(line) => lines.push(line),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
            Err(error) => {
                eprintln!("hyperslab: {error}");
                return Ok(ExitCode::from(EXIT_FAILED));
            }
        }
    }
    let rows: Vec<_> = sides.iter().zip(&lines).collect();
    println!("{}", terminal::picture(&rows, terminal::width(), terminal::colours()));
    println!("{}", terminal::words(&rows));
    std::fs::write(&options.svg, svg::picture(&shape.to_string(), &rows))
        .with_context(|| format!("write {}", options.svg.display()))?;
    println!("Picture: {}", options.svg.display());
    Ok(ExitCode::SUCCESS)
}

/// Refuses what the machine cannot hold: one file at a time, and a few buffers of one time step.
fn check_room(shape: &Shape, space: u64) -> Result<()> {
    let (file, memory) = (shape.bytes.saturating_mul(shape.steps), shape.bytes.saturating_mul(4));
    if file > space {
        bail!(
            "the temporary folder has room for {}, and {} are needed\n  try: --size or --steps, or set TMPDIR",
            display_size(space),
            display_size(file)
        );
    }
    match memory_available().filter(|available| memory > *available) {
        Some(available) => bail!(
            "{} of memory are available, and {} are needed\n  try: a smaller --size",
            display_size(available),
            display_size(memory)
        ),
        None => Ok(()),
    }
}
