//! `cargo xtask crashlab` runs this.

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match hyperslab_crashlab::run(&hyperslab_crashlab::Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("crashlab: {error:#}");
            ExitCode::from(2)
        }
    }
}
