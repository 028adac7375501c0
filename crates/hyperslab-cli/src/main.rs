//! The command line of Hyperslab.
#![allow(clippy::print_stdout)]

mod advisor;
mod bench;
mod cli;
mod closed_pipe;
mod compare;
mod connector;
mod convert;
mod demo;
mod doctor;
mod formats;
mod ior;
mod layout;
mod manual;
mod recover;
mod report;
mod reproduce;
mod run;
mod show;
mod simulate;
mod trace;
mod tune;

use clap::FromArgMatches;
use cli::{Arguments, Command};
use hyperslab_bench::mpi_job;
use hyperslab_h5bench::filter_words;
use hyperslab_report::{table, terminal};
use std::process::ExitCode;

fn main() -> ExitCode {
    closed_pipe::quietly(run_command)
}

fn run_command() -> ExitCode {
    // Pages about kernels come from the kernels.
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(page) = hyperslab_bench::help_asked(&words) {
        println!("{page}");
        return ExitCode::SUCCESS;
    }
    let matches = cli::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match arguments.command {
        Command::Advise(options) if options.system.is_some() => simulate::advice::run(&options),
        Command::Advise(options) => advisor::advise(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Convert(options) => convert::run(&options),
        Command::Layout(options) => layout::run(&options),
        Command::Demo(demo) => demo::run(&demo),
        Command::Ior(options) => ior::run(&options),
        Command::Mdtest(options) => ior::run_mdtest(&options),
        Command::Predict(options) => advisor::predict(&options),
        Command::Recover(options) => recover::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Reproduce(options) => reproduce::run(&options),
        Command::Run(options) => run::run(&options),
        Command::Show(options) => show::run(&options),
        Command::Simulate(options) => simulate::run(&options),
        Command::Trace(options) => trace::run(&options),
        Command::Train(options) => advisor::train(&options),
        Command::Tune(options) => tune::run(&options),
        Command::Formats(options) => formats::run(&options),
        Command::Completions(options) => manual::completions(&options),
        Command::Manual(options) => manual::pages(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::MpiHello => mpi_job::hello().map(|words| {
            words.into_iter().for_each(|words| println!("{words}"));
            ExitCode::SUCCESS
        }),
        Command::MpiRank { folder } => mpi_job::run_rank(&folder).map(|()| ExitCode::SUCCESS),
    };
    done.unwrap_or_else(|error| {
        eprintln!("hyperslab: {error:#}");
        ExitCode::from(cli::EXIT_BAD_INPUT)
    })
}
