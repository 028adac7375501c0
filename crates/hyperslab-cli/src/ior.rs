//! `hyperslab ior` and `hyperslab mdtest`: the flags of both over every stack.

use crate::cli::{EXIT_BAD_INPUT, EXIT_FAILED};
use crate::mpi_job::InsideJob;
use anyhow::Result;
use clap::Args;
use hyperslab_ior::{Failure, RanksAre, RunEnd};
use std::io::{Write, stdout};
use std::process::ExitCode;

/// Everything after the name is read by the crate that knows these flags.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct IorOptions {
    /// The flags that its users know; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// One of both programs.
type Program = fn(&[String], RanksAre<'_>, &str, Box<dyn Write + Send>) -> Result<RunEnd, Failure>;

/// `hyperslab ior`.
pub fn run(options: &IorOptions) -> Result<ExitCode> {
    run_program(hyperslab_ior::run, options)
}

/// `hyperslab mdtest`.
pub fn run_mdtest(options: &IorOptions) -> Result<ExitCode> {
    run_program(hyperslab_ior::mdtest::run, options)
}

/// Runs the tests on threads, or on all ranks of the MPI job that this process is part of.
fn run_program(program: Program, options: &IorOptions) -> Result<ExitCode> {
    let job = InsideJob::join()?;
    let ranks = job.as_ref().map_or(RanksAre::Threads, |job| RanksAre::Job(job.comm()));
    let command_line = std::env::args().collect::<Vec<_>>().join(" ");
    let done = program(&options.flags, ranks, &command_line, Box::new(stdout()));
    let first = job.as_ref().is_none_or(|job| job.comm().rank() == 0);
    let code = match done {
        Ok(RunEnd::Right) => ExitCode::SUCCESS,
        Ok(RunEnd::WrongData) => ExitCode::from(EXIT_FAILED),
        Err(Failure::Asked(error)) => told(first, &error, EXIT_BAD_INPUT),
        Err(Failure::Ran(error)) => {
            if let Some(job) = &job {
                // The others may wait for this rank.
                job.comm().abort(&error);
            }
            told(true, &error, EXIT_FAILED)
        }
    };
    if let Some(job) = &job {
        job.served()?;
    }
    Ok(code)
}

fn told(tells: bool, error: &hyperslab_core::Error, code: u8) -> ExitCode {
    if tells {
        eprintln!("hyperslab: {error}");
    }
    ExitCode::from(code)
}
